package cli

import (
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
	if said := []work.Hold{work.HoldHuman, work.HoldFlagged, work.HoldNoChanges}; d.Reason != "" && !slices.Contains(said, d.Hold) {
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
