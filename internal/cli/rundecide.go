package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

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
		err = f.breakable(ctx, f.land)
		return false, err == nil, err
	case "accept":
		no := false
		err = f.breakable(ctx, func(ctx context.Context) error { return f.accept(ctx, app.AcceptInput{Land: &no}) })
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

// breakable lets Ctrl-C end a wait, and the end of the server. What a server has
// begun goes on.
func (f *foreground) breakable(ctx context.Context, wait func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	over, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		ticker := time.NewTicker(idleRead)
		defer ticker.Stop()
		for {
			select {
			case <-f.pressed:
				cancel(errInterrupted)
				return
			case <-ticker.C:
				if f.serverGone() {
					cancel(errServerGone)
					return
				}
			case <-over:
				return
			}
		}
	}()
	err := wait(ctx)
	close(over)
	<-gone
	for _, why := range []error{errInterrupted, errServerGone} {
		if err != nil && errors.Is(context.Cause(ctx), why) {
			return why
		}
	}
	return err
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
	return f.breakable(ctx, f.land)
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
		return cmp.Or(strings.TrimPrefix(holdText(v.Hold), ", "), string(v.Hold)), nil
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
