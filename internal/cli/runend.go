package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// settle deals with what a task came to. Again: it goes on, and is followed.
func (f *foreground) settle(ctx context.Context) (again bool, err error) {
	asking, err := f.asking(ctx)
	if err != nil {
		return false, err
	}
	if asking != nil {
		return f.question(ctx, asking)
	}
	if err := f.summary(ctx); err != nil {
		return false, err
	}
	switch {
	case f.stopped:
		return false, errInterrupted
	case f.o.yes:
		return false, f.landUnasked(ctx)
	case f.input != nil && len(f.offers()) > 0:
		return f.decide(ctx)
	}
	if err := f.next(); err != nil {
		return false, err
	}
	return false, f.waiter.verdict()
}

// asking is the task that has asked something: the one that is followed, or one
// below or beside it in its tree.
func (f *foreground) asking(ctx context.Context) (*work.Task, error) {
	v := f.waiter.view
	if v.Waiting(work.Blocked, work.OnQuestion) {
		return &v.Task, nil
	}
	if !v.Waiting(work.Blocked, work.OnChildren) && !v.Waiting(work.Ready, work.OnJudges) {
		return nil, nil
	}
	root, err := f.api.TaskTree(ctx, string(v.ID))
	if err != nil {
		return nil, err
	}
	return findAsking(root), nil
}

func findAsking(n *app.TreeNode) *work.Task {
	for _, t := range append([]*work.Task{n.Task}, n.Judges...) {
		if t.Waiting(work.Blocked, work.OnQuestion) && t.Question != nil {
			return t
		}
	}
	for _, child := range n.Children {
		if t := findAsking(child); t != nil {
			return t
		}
	}
	return nil
}

// question asks what a task has asked, and sends the answer.
func (f *foreground) question(ctx context.Context, t *work.Task) (again bool, err error) {
	err = f.say("question", map[string]any{"task": t.ID, "question": t.Question}, func(p *page) {
		p.line("")
		if t.ID != f.waiter.view.ID {
			p.paragraph(dim, "", "· "+t.Name+" asks:")
		}
		p.question(t.Question.Text, t.Question.Options)
	})
	if err != nil {
		return false, err
	}
	id := head(string(t.ID), 8)
	if f.input == nil {
		if f.o.yes {
			return false, work.Errorf(work.Conflict, "task %s asks, and nobody can answer", t.ID).WithReason("question").
				WithHint("claudomator task answer %s TEXT, then claudomator run --task %s", id, head(string(f.waiter.view.ID), 8))
		}
		return false, f.notice("answer it: claudomator task answer %s TEXT, then claudomator run --task %s", id, head(string(f.waiter.view.ID), 8))
	}
	for {
		answer, err := f.input.ask(ctx, "answer:")
		switch {
		case errors.Is(err, io.EOF):
			return false, f.notice("it waits for the answer: claudomator task answer %s TEXT", id)
		case err != nil:
			return false, err
		case answer == "":
			continue
		}
		if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(t.Question.Options) {
			answer = t.Question.Options[n-1]
		}
		view, err := f.api.AnswerTask(ctx, string(t.ID), answer)
		if err != nil {
			return false, err
		}
		return true, f.say("answer", map[string]any{"task": view.ID, "text": answer}, func(p *page) { p.line("") })
	}
}

// summary says what came of it.
func (f *foreground) summary(ctx context.Context) error {
	if f.shell.format == jsonFormat {
		return nil // the result has it
	}
	view, err := f.api.Task(ctx, f.waiter.ref)
	if err != nil {
		return err
	}
	f.waiter.view = view
	d, err := readDossier(ctx, f.api, view)
	if err != nil {
		return err
	}
	stat, err := readStat(ctx, f.api, f.waiter.ref)
	if err != nil {
		return err
	}
	return f.screen.write(func(p *page) { p.summary(d, stat, f) })
}

func (p *page) summary(d dossier, stat *diffstat, f *foreground) {
	facts := []string{took(f.elapsed())}
	if cost := f.log.cost(); cost > 0 {
		facts = append(facts, dollars(cost))
	}
	p.line("")
	state, means, more := string(d.State), inert(situation(p, &d.Task)), strings.Join(facts, " · ")
	gap := "  "
	if p.width > 0 && columns(state+means+gap+more) > p.width {
		gap = "\n"
	}
	p.line("%s%s%s%s", p.style(colorOf(state), state), p.clip(means, columns(state)), gap, p.style(dim, more))
	if d.Reason != "" && d.Hold != work.HoldHuman {
		p.paragraph("", "", d.Reason)
	}
	p.block("Summary", d.Summary)
	if d.Result != nil && d.Result.NoChanges {
		p.line("\n%s", p.style(yellow, "nothing was changed"))
	}
	p.diffstat(stat)
	if d.Result != nil {
		for _, warning := range d.Result.Warnings {
			p.paragraph(yellow, "  ", "! "+warning)
		}
		if len(d.Result.HeldBack) > 0 {
			p.paragraph(yellow, "  ", "! held back: "+strings.Join(d.Result.HeldBack, ", "))
		}
	}
	p.verdicts(d)
	p.block("Checker report", d.CheckerReport)
	p.block("Blockers", strings.Join(d.Blockers, "\n"))
	if d.Landed != nil {
		p.line("\nlanded on %s as %s", inert(d.Landed.Branch), head(d.Landed.Commit, 12))
	}
}

// verdicts prints what each judge says, and the proof for each criterion.
func (p *page) verdicts(d dossier) {
	judged := false
	for _, j := range d.judges {
		if j.Verdict == nil {
			continue
		}
		word, color := "rejected", red
		if j.Verdict.Approved {
			word, color = "approved", green
		}
		p.line("\n%s %s", p.style(bold, inert(string(j.Agent.Role))), p.style(color, word))
		if d.CheckerReport == "" && (!j.Verdict.Approved || len(j.Verdict.Criteria) == 0) { // the report has it, too
			p.paragraph("", "  ", j.Verdict.Reasoning)
		}
		for _, c := range j.Verdict.Criteria {
			mark, color := "✓", green
			if !c.Met {
				mark, color = "✗", red
			}
			p.paragraph(color, "  ", mark+" "+c.Criterion)
			if c.How != "" {
				p.paragraph(dim, "    ", c.How)
			}
		}
		judged = true
	}
	if !judged {
		p.criteria(d)
	}
}

func (p *page) gate(g work.GateResult) {
	verdict, color := "passed", green
	switch {
	case g.TimedOut:
		verdict, color = "timed out", red
	case !g.Passed():
		verdict, color = "failed (exit "+strconv.Itoa(g.ExitCode)+")", red
	}
	p.callLine(call{name: "gate", input: strings.Join(strings.Fields(g.Command), " ")}, verdict, color)
}

// offers is what a person can do now, in the order in which it is shown.
func (f *foreground) offers() []string {
	v := f.waiter.view
	can := func(a work.Action) bool { return slices.Contains(v.Actions, a) }
	var out []string
	add := func(word string, when bool) {
		if when {
			out = append(out, word)
		}
	}
	ready := v.State == work.Ready
	add("land", ready && can(work.DoAccept) || v.State == work.Completed && can(work.DoMerge) && v.Landed == nil && !unchanged(v))
	add("accept", ready && can(work.DoAccept))
	add("reject", can(work.DoReject))
	add("retry", can(work.DoRetry) && v.State.EndedBadly())
	add("message", can(work.DoMessage))
	if len(out) == 0 {
		return nil
	}
	add("diff", !unchanged(v))
	return append(out, "keep")
}

func unchanged(v *app.TaskView) bool { return v.Result == nil || v.Result.NoChanges }

// decide asks a person what becomes of the work.
func (f *foreground) decide(ctx context.Context) (again bool, err error) {
	var refusal error
	for {
		offers := f.offers()
		if len(offers) == 0 { // the refused action has changed what is possible
			return false, refusal
		}
		if err := f.say("", nil, func(p *page) { p.line("") }); err != nil {
			return false, err
		}
		answer, err := f.input.ask(ctx, prompt(offers))
		if errors.Is(err, io.EOF) {
			answer, err = "keep", nil
		}
		if err != nil {
			return false, err
		}
		word := chosen(answer, offers...)
		_, rest, _ := strings.Cut(answer, " ")
		again, over, err := f.act(ctx, word, strings.TrimSpace(rest))
		if refused := work.CodeOf(err); err != nil && (refused == work.Illegal || refused == work.Conflict || refused == work.Invalid) && !over {
			if refusal = err; f.refused(ctx, err) != nil {
				return false, err
			}
			continue
		}
		if err != nil || again || over {
			return again, err
		}
	}
}

// prompt shows the offers, each with the letter that is enough.
func prompt(offers []string) string {
	words := make([]string, len(offers))
	for i, word := range offers {
		words[i] = "[" + word[:1] + "]" + word[1:]
		if word == "retry" && slices.Contains(offers, "reject") {
			words[i] = "[ret]ry"
		}
	}
	return strings.Join(words, " ") + " ?"
}

// refused tells why something was not done, and how the task stands now.
func (f *foreground) refused(ctx context.Context, why error) error {
	text := why.Error()
	if e, ok := work.AsError(why); ok && e.Hint != "" {
		text += " (" + e.Hint + ")"
	}
	if err := f.say("", nil, func(p *page) { p.paragraph(red, "", "! "+text) }); err != nil {
		return err
	}
	view, err := f.api.Task(ctx, f.waiter.ref)
	if err == nil {
		f.waiter.view = view
	}
	return err
}

// act does what was chosen. Again: the task goes on; over: it is decided.
func (f *foreground) act(ctx context.Context, word, text string) (again, over bool, err error) {
	ref := f.waiter.ref
	switch word {
	case "land":
		err = f.land(ctx)
		return false, err == nil, err
	case "accept":
		no := false
		err = f.accept(ctx, app.AcceptInput{Land: &no})
		if err == nil {
			err = cmp.Or(f.notice("accepted, not landed"), f.next())
		}
		return false, err == nil, err
	case "reject", "message":
		if text == "" {
			if text, err = f.input.ask(ctx, "what should be different?"); errors.Is(err, io.EOF) || (err == nil && text == "") {
				return false, false, nil
			}
		}
		if err == nil && word == "reject" {
			_, err = f.api.RejectTask(ctx, ref, app.RejectInput{Comment: text})
		} else if err == nil {
			_, err = f.api.MessageTask(ctx, ref, text)
		}
		return err == nil, false, err
	case "retry":
		_, err = f.api.RetryTask(ctx, ref, false)
		return err == nil, false, err
	case "diff":
		patch := patchWriter{shell: f.shell}
		if err = f.api.TaskDiff(ctx, ref, &patch); err == nil {
			err = patch.end()
		}
		return false, false, err
	case "keep":
		return false, true, cmp.Or(f.next(), f.waiter.verdict())
	}
	return false, false, nil
}

func (f *foreground) accept(ctx context.Context, in app.AcceptInput) error {
	view, err := f.api.AcceptTask(ctx, f.waiter.ref, in)
	if err != nil {
		return err
	}
	if view, err = f.shell.accepted(ctx, f.api, view); err != nil {
		return err
	}
	f.waiter.view = view
	return notAccepted(ctx, f.api, view)
}

// land accepts the work where that is still to be done, and lands it.
func (f *foreground) land(ctx context.Context) error {
	if f.waiter.view.State == work.Ready {
		yes := true
		if err := f.accept(ctx, app.AcceptInput{Land: &yes}); err != nil {
			return err
		}
	}
	if f.waiter.view.Landed == nil {
		m, err := f.api.StartMerge(ctx, f.waiter.ref, "")
		if err == nil {
			m, err = waitMerge(ctx, f.api, m)
		}
		if err != nil {
			return err
		}
		f.merge = m
		if err := mergeError(m); err != nil {
			return err
		}
	}
	view, err := f.api.Task(ctx, f.waiter.ref)
	if err != nil {
		return err
	}
	f.waiter.view = view
	return f.say("landed", map[string]any{"landed": view.Landed}, func(p *page) {
		if view.Landed == nil {
			p.line("there was nothing to land")
			return
		}
		p.line("%s", p.style(green, "landed on "+inert(view.Landed.Branch)+" as "+head(view.Landed.Commit, 12)))
	})
}

// landUnasked is --yes: it lands what nothing speaks against.
func (f *foreground) landUnasked(ctx context.Context) error {
	v := f.waiter.view
	if err := f.waiter.verdict(); err != nil {
		return err
	}
	why, err := f.objection(ctx)
	if err != nil {
		return err
	}
	if why != "" {
		return work.Errorf(work.Conflict, "task %s is not landed: %s", v.ID, why).WithReason("not_accepted").
			WithHint("look at it, and decide: claudomator run --task %s", head(string(v.ID), 8))
	}
	if v.State == work.Completed && (v.Landed != nil || unchanged(v)) {
		return nil
	}
	return f.land(ctx)
}

// objection is what speaks against taking the work as it is, or "".
func (f *foreground) objection(ctx context.Context) (string, error) {
	v := f.waiter.view
	executions, err := f.api.Executions(ctx, f.waiter.ref)
	if err != nil {
		return "", err
	}
	var gates []work.GateResult // of the newest run of them
	for _, x := range executions {
		if x.Kind == work.GateRun {
			gates = x.Gates
		}
	}
	failed := slices.IndexFunc(gates, func(g work.GateResult) bool { return !g.Passed() })
	switch {
	case v.State == work.Completed:
		return "", nil
	case !v.Waiting(work.Ready, work.OnPerson):
		return "it is " + stateText(&v.Task), nil
	case unchanged(v):
		return "it changed nothing", nil
	case v.Hold != work.HoldHuman && v.Hold != work.NoHold:
		return orElse(strings.TrimPrefix(holdText(v.Hold), ", "), string(v.Hold)), nil
	case failed >= 0:
		return "a gate has failed: " + gates[failed].Command, nil
	case v.CheckerReport != "":
		return "there is a report against it", nil
	case len(v.Result.HeldBack) > 0:
		return "files were held back: " + strings.Join(v.Result.HeldBack, ", "), nil
	}
	return "", nil
}

// next says how a person goes on with a task that is left as it is.
func (f *foreground) next() error {
	v := f.waiter.view
	id := head(string(v.ID), 8)
	var ways [][2]string
	switch {
	case f.own && v.State == work.Ready:
		ways = [][2]string{{"run --task " + id, "decide about it"}, {"run --task " + id + " --yes", "accept and land it"}}
	case f.own && v.State == work.Completed && v.Landed == nil && !unchanged(v):
		ways = [][2]string{{"run --task " + id + " --yes", "land it"}}
	case f.own && v.State != work.Completed:
		ways = [][2]string{{"run --task " + id, "go on with it"}}
	case v.State == work.Ready:
		ways = [][2]string{{"task diff " + id, "see what it changed"}, {"task accept " + id + " --land", "accept and land it"}, {"task reject " + id + " -m TEXT", "have it done differently"}}
	case v.State == work.Completed && v.Landed == nil && !unchanged(v):
		ways = [][2]string{{"merge start " + id + " --wait", "land it"}}
	case v.State.EndedBadly():
		ways = [][2]string{{"task logs " + id, "see what happened"}, {"task retry " + id, "run it again"}}
	case v.State != work.Completed:
		ways = [][2]string{{"task show " + id, "see what it waits for"}, {"attention", "see what needs you"}}
	}
	if len(ways) == 0 {
		return nil
	}
	return f.say("", nil, func(p *page) {
		p.heading("Go on")
		for _, way := range ways {
			line := "  claudomator " + pad(way[0], 28)
			if p.width > 0 && columns(line+"  "+way[1]) > p.width { // the command can be copied whole
				line, way[1] = strings.TrimRight(line, " "), ""
			}
			p.line("%s", strings.TrimRight(line+"  "+p.style(dim, way[1]), " "))
		}
	})
}
