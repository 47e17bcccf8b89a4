package agent

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/claudomator/claudomator/internal/sandbox"
)

const (
	tailSize    = 4 << 10
	maxWarnings = 20
	maxWarning  = 4 << 10  // bytes
	maxError    = 16 << 10 // bytes of why it failed
	eventCost   = 96       // bytes of a transcript line beside its texts, roughly

	// What a program tells of one run and what cannot be: a sum of it over all runs
	// of a task must stay a number.
	maxCost   = 1e6 // USD
	maxTokens = 1e15
	lastYear  = 9999 // that JSON's time can say
)

// Session is one run as its adapter sees it: it takes the events and what the
// program reports, and passes clean events on, in order, within the
// transcript's limit. Safe for concurrent use.
type Session struct {
	now    func() time.Time
	limits Limits
	tail   *sandbox.Tail

	private private

	mu       sync.Mutex
	sink     Sink
	closed   bool
	spent    int64 // bytes of transcript
	dropped  int64
	end      End
	met      LimitKind
	errText  string
	question *Question
	limit    *Limit
	usage    Usage
	cost     float64
	handle   string
	noResume bool
	stopping bool // the program is asked to end
	warnings []string

	reported chan struct{} // closed with the first report of an end
	broke    chan struct{} // closed when the budget is spent
}

func newSession(now func() time.Time, limits Limits, sink Sink) *Session {
	return &Session{
		now: now, limits: limits, sink: sink, tail: sandbox.NewTail(tailSize),
		reported: make(chan struct{}), broke: make(chan struct{}),
	}
}

// Emit records an event, which is the session's from then on, and takes from it
// what bears on the run's outcome: usage, cost, a question, a limit. Progress after
// a limit means it was overcome.
func (s *Session) Emit(e Event) {
	e.sanitize()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.learn(&e)
	if s.admit(&e) {
		s.pass(e)
	}
}

func (s *Session) learn(e *Event) {
	switch e.Kind {
	case KindUsage:
		if e.Usage != nil {
			s.usage = *e.Usage
		}
		s.cost = e.CostUSD
		if s.limits.BudgetUSD > 0 && s.cost > s.limits.BudgetUSD {
			closeOnce(s.broke)
		}
	case KindQuestion:
		s.question = e.Question
		s.report(EndQuestion, "")
	case KindLimit:
		s.limit = e.Limit
		if e.Limit != nil && e.Limit.Kind != LimitWarning {
			s.met = e.Limit.Kind
		}
	case KindText, KindThought, KindTool, KindEdit:
		s.met = ""
	case KindBlocker, KindLog, KindRaw:
	}
}

// overspent says whether the budget is spent.
func (s *Session) overspent() bool {
	select {
	case <-s.broke:
		return true
	default:
		return false
	}
}

// End records the program's own report of its end. The first report stands.
// The program then has a moment to leave before it is made to. errText says
// why it failed, in the program's words.
func (s *Session) End(end End, errText string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.report(end, cut(Sanitize(errText), maxError))
}

func (s *Session) report(end End, errText string) {
	if s.end == EndSuccess && end == EndFailure && !s.stopping { // asked to end, many say that they failed
		s.warn("after its success the agent reported a failure: " + cmp.Or(errText, "it does not say which"))
	}
	if s.end == EndNone {
		s.end, s.errText = end, errText
		closeOnce(s.reported)
	}
}

// stop tells that the program is asked to end.
func (s *Session) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopping = true
}

// SetHandle records what resumes the conversation.
func (s *Session) SetHandle(handle string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handle = handle
}

// NoResume records that the conversation named by Job.Resume cannot go on: the
// program does not know it, began another one, or says that it is too long.
func (s *Session) NoResume() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noResume = true
}

// Warn tells whoever will review the work, and the transcript, of something
// that the outcome alone does not say.
func (s *Session) Warn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.warn(text)
}

func (s *Session) warn(text string) {
	text = cut(Sanitize(text), maxWarning)
	if !s.closed {
		s.notice(text)
	}
	if len(s.warnings) < maxWarnings {
		s.warnings = append(s.warnings, text)
	}
}

// Unenforced warns of what the job restricts and the program has no setting for.
func (s *Session) Unenforced(job Job, program string) {
	if len(job.AllowedTools) > 0 {
		s.Warn("the list of allowed tools was not enforced: " + program + " has no setting for it")
	}
	if job.MaxTurns > 0 {
		s.Warn("the limit of turns was not enforced: " + program + " has no setting for it")
	}
}

// admit charges an event to the transcript's limit. What people and outcomes
// rest on may use as much again, so that a flood of output cannot displace it.
func (s *Session) admit(e *Event) bool {
	limit := s.limits.Transcript
	switch e.Kind {
	case KindUsage, KindQuestion, KindLimit, KindBlocker:
		limit *= 2
	case KindText, KindThought, KindTool, KindEdit, KindLog, KindRaw:
	}
	if size := e.size(); s.spent+size <= limit {
		s.spent += size
		return true
	}
	if s.dropped == 0 {
		s.notice(fmt.Sprintf("transcript limit of %d bytes reached: only the end of the output will be recorded", s.limits.Transcript))
	}
	s.dropped++
	s.spent = max(s.spent, s.limits.Transcript) // nothing smaller slips in behind the gap
	return false
}

// full says that output lines need not be prepared any more.
func (s *Session) full() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped > 0
}

func (s *Session) notice(text string) {
	s.pass(Event{Kind: KindLog, Stream: Notice, Text: text})
}

func (s *Session) pass(e Event) {
	if e.At.IsZero() {
		e.At = s.now().UTC()
	}
	s.sink.Emit(e)
}

// close ends the transcript. Whatever comes later is not passed on.
func (s *Session) close(tail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped > 0 {
		s.notice(fmt.Sprintf("%d events left out; the output ends:\n%s", s.dropped, tail))
	}
	s.closed = true
}

// LogLine records a line of output as a log event. A line cut to size says so.
func (s *Session) LogLine(stream Stream, line Line) {
	if s.full() {
		s.mu.Lock()
		s.dropped++
		s.mu.Unlock()
		return
	}
	text := string(line.Text)
	if line.Cut > 0 {
		text += fmt.Sprintf(" [%d more bytes of this line left out]", line.Cut)
	}
	s.Emit(Event{Kind: KindLog, Stream: stream, Text: text, Cut: line.Cut})
}

// cut keeps the beginning of what people read, and is stored beside the transcript.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

func closeOnce(c chan struct{}) { // under the session's lock
	select {
	case <-c:
	default:
		close(c)
	}
}

// texts are all strings of an event that come from outside.
func (e *Event) texts() []*string {
	list := []*string{&e.Text}
	if e.Tool != nil {
		list = append(list, &e.Tool.ID, &e.Tool.Name, &e.Tool.Input, &e.Tool.Output)
	}
	if e.Edit != nil {
		list = append(list, &e.Edit.Path, &e.Edit.Diff)
	}
	if e.Question != nil {
		list = append(list, &e.Question.Text)
		for i := range e.Question.Options {
			list = append(list, &e.Question.Options[i])
		}
	}
	if e.Limit != nil {
		list = append(list, &e.Limit.Text)
	}
	return list
}

// sanitize makes what comes from outside such that it can be stored, and
// numbers such that they can be added up.
func (e *Event) sanitize() {
	for _, text := range e.texts() {
		*text = Sanitize(*text)
	}
	if e.CostUSD = min(e.CostUSD, maxCost); !(e.CostUSD > 0) { // also what is no number
		e.CostUSD = 0
	}
	if u := e.Usage; u != nil {
		for _, n := range []*int64{&u.Input, &u.Output, &u.CacheRead, &u.CacheWrite} {
			*n = max(0, min(*n, maxTokens))
		}
	}
	if e.Limit != nil {
		if year := e.Limit.ResetAt.UTC().Year(); year < 1 || year > lastYear {
			e.Limit.ResetAt = time.Time{}
		}
	}
}

func (e *Event) size() int64 {
	size := int64(eventCost)
	for _, text := range e.texts() {
		size += int64(len(*text))
	}
	return size
}
