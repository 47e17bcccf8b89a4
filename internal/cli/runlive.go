package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// look is how the task stood when it was looked at.
type look struct {
	view       *app.TaskView
	executions []*work.Execution
}

// follow shows what happens until nothing automatic is left to happen.
func (f *foreground) follow(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	looks, over := make(chan look), make(chan error, 1)
	go func() { over <- f.watch(watching, looks) }()
	ended := false
	defer func() {
		if stop(); !ended {
			<-over //nolint:errcheck // it was told to end
		}
	}()
	pause := quickRead
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case seen := <-looks:
			if err := f.see(ctx, seen); err != nil {
				return err
			}
			timer.Reset(quickRead)
		case err := <-over:
			if ended = true; err != nil {
				return err
			}
			return f.screen.clear()
		case <-timer.C:
			if f.serverGone() { // the stream of events would go on trying
				return errServerGone
			}
			grown, err := f.log.read(ctx)
			if err != nil {
				return err
			}
			if pause = min(2*pause, idleRead); grown {
				pause = quickRead
			}
			timer.Reset(pause)
		case <-f.pressed:
			if err := f.interrupted(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return errInterrupted
		}
		if err := f.screen.status(f.statusLine); err != nil {
			return err
		}
	}
}

// watch sends how the task stands, every time something happens in its tree,
// and returns when it rests.
func (f *foreground) watch(ctx context.Context, looks chan<- look) error {
	w := waiter{api: f.api, ref: f.waiter.ref}
	return (&watch{
		api:      f.api,
		since:    func(ctx context.Context) (int64, error) { return lastEvent(ctx, f.api, w.ref) },
		concerns: w.concerns,
		pace:     w.pace,
		look: func(ctx context.Context) (bool, error) {
			over, err := w.look(ctx)
			if work.CodeOf(err) == work.Unavailable && err != nil && f.serverGone() {
				err = errServerGone
			}
			if err != nil {
				return false, err
			}
			seen := look{view: w.view}
			if seen.executions, err = f.api.Executions(ctx, w.ref); err != nil {
				return false, err
			}
			select {
			case looks <- seen:
			case <-ctx.Done():
			}
			return over, nil
		},
	}).run(ctx)
}

// see takes in how the task stands: what its runs have printed first, then what
// has become of it.
func (f *foreground) see(ctx context.Context, seen look) error {
	if before := f.waiter.view; before != nil && before.ID != seen.view.ID {
		if err := f.notice("attempt %d begins: %s", seen.view.AttemptNo, firstLine(rejection(&seen.view.Task))); err != nil {
			return err
		}
	}
	f.waiter.view, f.waiter.ref = seen.view, string(seen.view.ID)
	if err := f.log.see(ctx, seen.executions); err != nil {
		return err
	}
	v := seen.view
	state := string(v.ID) + " " + stateText(&v.Task)
	if state == f.told {
		return nil
	}
	f.told = state
	var text func(*page)
	if words := progress(&v.Task); words != "" {
		text = func(p *page) { p.paragraph(dim, "", "· "+words+until(p, &v.Task)) }
	}
	facts := map[string]any{"task": v.ID, "attempt_no": v.AttemptNo, "state": v.State}
	for name, value := range map[string]string{"blocked_on": string(v.BlockedOn), "hold": string(v.Hold), "reason": v.Reason} {
		if value != "" {
			facts[name] = value
		}
	}
	return f.say("state", facts, text)
}

// progress is what a state means that is worth a line while one watches.
func progress(t *work.Task) string {
	switch {
	case t.State == work.Queued && (t.BlockedOn == work.OnSlot || t.BlockedOn == work.NotBlocked):
		return "" // for a moment only, or the line below says so
	case t.State == work.Queued:
		return strings.TrimSuffix("waits for "+onText(t.BlockedOn)+": "+t.Reason, ": ")
	case t.State == work.Blocked && t.BlockedOn == work.OnChildren:
		return "waits for its children"
	case t.State == work.Ready && t.BlockedOn == work.OnGates:
		return "its gates are run"
	case t.State == work.Ready && t.BlockedOn == work.OnJudges:
		return "its judges look at it"
	}
	return ""
}

func until(p *page, t *work.Task) string {
	if t.WakeAt.IsZero() {
		return ""
	}
	return ", " + p.ago(t.WakeAt)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// statusLine is the line that changes: how the task stands, what is under way,
// for how long, at which cost.
func (f *foreground) statusLine(p *page) {
	v := f.waiter.view
	facts := []string{strings.ToLower(string(v.State))}
	switch {
	case v.State == work.Running:
	case v.BlockedOn != work.NotBlocked:
		facts[0] = "waits for " + onText(v.BlockedOn)
	}
	facts = append(facts, clock(f.elapsed()))
	if cost := f.log.cost(); cost > 0 {
		facts = append(facts, dollars(cost))
	}
	if busy := f.log.teller.busy(); busy != "" {
		facts = append(facts, inert(busy))
	}
	p.line("%s", p.style(dim, p.clip("… "+strings.Join(facts, " · "), 1)))
}

// clock is a time that runs: 0:07, 12:34, 1:02:03.
func clock(d time.Duration) string {
	h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	if h > 0 {
		return fmt.Sprintf("%d:%02d:%02d", h, m, s)
	}
	return fmt.Sprintf("%d:%02d", m, s)
}

func dollars(cost float64) string { return fmt.Sprintf("$%.2f", cost) }

// runLog shows what the runs of a task's agent print, one after the other.
type runLog struct {
	f       *foreground
	task    work.TaskID
	teller  teller
	current *transcript
	done    map[work.ExecutionID]bool
	spent   map[work.ExecutionID]float64 // what ended runs have cost
}

// see takes in which runs there are; what one that is over has printed is shown
// to its end before the next one's.
func (l *runLog) see(ctx context.Context, all []*work.Execution) error {
	if l.done == nil {
		l.done, l.spent = map[work.ExecutionID]bool{}, map[work.ExecutionID]float64{}
	}
	for _, x := range all {
		if !x.Live() {
			l.spent[x.ID] = x.CostUSD
		}
		if x.Kind == work.GateRun && !x.Live() && !l.done[x.ID] {
			l.done[x.ID] = true
			if err := l.gates(x); err != nil {
				return err
			}
		}
		if x.Kind != work.AgentRun || x.State == work.ExecutionQueued || l.done[x.ID] {
			continue
		}
		if l.current == nil || l.current.run.ID != x.ID {
			if err := l.start(x); err != nil {
				return err
			}
		}
		l.current.run = x
		if _, err := l.read(ctx); err != nil {
			return err
		}
	}
	return nil
}

// moved goes on reading from another server.
func (l *runLog) moved(api app.API) {
	if l.current != nil {
		l.current.api = api
	}
}

func (l *runLog) start(x *work.Execution) error {
	l.current = &transcript{api: l.f.api, run: x, line: l.print, pause: func() error { return l.tell(l.teller.release) }}
	l.teller = teller{task: x.TaskID}
	if x.Number == 1 {
		return nil
	}
	return l.f.notice("run %d begins", x.Number)
}

func (l *runLog) gates(x *work.Execution) error {
	for _, g := range x.Gates {
		if err := l.f.say("gate", map[string]any{"execution": x.ID, "gate": g}, func(p *page) { p.gate(g) }); err != nil {
			return err
		}
	}
	return nil
}

// read shows what was printed since, and whether it was something.
func (l *runLog) read(ctx context.Context) (grown bool, err error) {
	t := l.current
	if t == nil || l.done[t.run.ID] {
		return false, nil
	}
	before, over := t.offset, !t.run.Live()
	err = t.copy(ctx, over)
	switch {
	case err != nil && work.CodeOf(err) == work.Unavailable && !over:
		return false, nil // the server is gone for a moment; who watches the task decides
	case err != nil:
		return false, err
	case over:
		l.done[t.run.ID] = true
		return true, l.end(t.run)
	}
	return t.offset != before, nil
}

// end says how a run ended, when not as one hopes.
func (l *runLog) end(x *work.Execution) error {
	if err := l.tell(l.teller.finish); err != nil {
		return err
	}
	l.teller = teller{}
	var how string
	switch {
	case x.Outcome == work.Success || x.Outcome == work.Asked:
		return nil
	case x.State == work.ExecutionLost:
		how = "was lost with the server"
	default:
		how = "ended: " + strings.ReplaceAll(string(x.Outcome), "_", " ")
	}
	if x.Error != "" {
		how += ": " + x.Error
	}
	return l.f.notice("run %d %s", x.Number, how)
}

func (l *runLog) print(text []byte) error {
	if l.f.shell.format == jsonFormat {
		l.teller.price(text)
		event := json.RawMessage(text)
		if !json.Valid(text) {
			quoted, err := json.Marshal(map[string]string{"kind": "raw", "text": string(text)})
			if err != nil {
				return fmt.Errorf("print the event: %w", err)
			}
			event = quoted
		}
		return l.f.say("agent", map[string]any{"execution": l.current.run.ID, "event": event}, nil)
	}
	return l.tell(func(p *page) { l.teller.tell(p, text) })
}

func (l *runLog) tell(text func(*page)) error { return l.f.say("", nil, text) }

// cost is what the task has cost so far, in US dollars.
func (l *runLog) cost() float64 {
	if l == nil {
		return 0
	}
	sum := l.teller.cost
	for _, cost := range l.spent {
		sum += cost
	}
	return sum
}

// interrupted asks what Ctrl-C means. It returns nil when the task is watched on.
func (f *foreground) interrupted(ctx context.Context) error {
	if f.input == nil {
		return errInterrupted
	}
	if err := f.screen.clear(); err != nil {
		return err
	}
	detach, prompt := "detach", "[s]top the task, [d]etach (it goes on), [k]eep watching ?"
	if f.own {
		detach, prompt = "leave", "[s]top the task, [l]eave, [k]eep watching ?"
		leaving := "this command is the task's server: left now, its run ends, and begins again with the next server"
		if err := f.say("", nil, func(p *page) { p.paragraph(dim, "", "· "+leaving) }); err != nil {
			return err
		}
	}
	for {
		answer, err := f.input.ask(ctx, prompt)
		if errors.Is(err, io.EOF) {
			return errInterrupted
		}
		if err != nil {
			return err
		}
		switch chosen(answer, "stop", detach, "keep") {
		case "stop":
			_, err := f.api.CancelTask(ctx, f.waiter.ref)
			if err != nil && work.CodeOf(err) != work.Illegal { // it may just have ended
				return err
			}
			f.stopped = err == nil
			return nil
		case "detach":
			return errDetached
		case "leave":
			return errInterrupted
		case "keep":
			return nil
		}
	}
}

// chosen is the one of the words that an answer begins, or "".
func chosen(answer string, words ...string) string {
	first, _, _ := strings.Cut(strings.ToLower(answer), " ")
	if first == "" {
		return ""
	}
	for _, word := range words {
		if strings.HasPrefix(word, first) {
			return word
		}
	}
	return ""
}
