package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/engine"
	"github.com/claudomator/claudomator/internal/work"
)

// actor is an agent whose runs are played by the test, by the task's name.
type actor struct {
	parts map[string]func(ctx context.Context, s *scene) error

	mu   sync.Mutex
	runs map[work.TaskID]int
	w    *world
}

// scene is one run as an actor sees it.
type scene struct {
	job     agent.Job
	caller  app.RunCaller
	service *app.Service
	run     int // 1 for the task's first run
	attempt int
}

func (*actor) Installed() error { return nil }

func (*actor) Describe(context.Context) (agent.Description, error) {
	return agent.Description{Name: "actor"}, nil
}

func (a *actor) Run(ctx context.Context, job agent.Job, _ agent.Sink) (agent.Result, error) {
	result := agent.Result{Outcome: agent.Success}
	if err := a.act(ctx, job); err != nil {
		result.Outcome, result.Error = agent.Failed, err.Error()
		if ctx.Err() != nil {
			result.Outcome = agent.Cancelled
		}
	}
	return result, nil
}

func (a *actor) act(ctx context.Context, job agent.Job) error {
	caller, err := a.w.service.AuthenticateRun(ctx, job.MCP.Token)
	if err != nil {
		return err
	}
	facts, err := a.w.service.Context(ctx, caller)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.runs[caller.Task]++
	s := &scene{job: job, caller: caller, service: a.w.service, run: a.runs[caller.Task], attempt: facts.Task.AttemptNo}
	part := a.parts[facts.Task.Name]
	a.mu.Unlock()
	if part == nil {
		return fmt.Errorf("no part for %s", facts.Task.Name)
	}
	return part(ctx, s)
}

func (s *scene) write(name, text string) error {
	return os.WriteFile(filepath.Join(s.job.Dir, name), []byte(text), 0o600)
}

func (s *scene) spawn(ctx context.Context, name string, on ...string) error {
	_, err := s.service.Spawn(ctx, s.caller, app.SpawnInput{Name: name, Instructions: name, DependsOn: on})
	return err
}

// crash ends the server as kill -9 does: nothing is reported any more.
func (w *world) crash() {
	w.Helper()
	w.crashed = true
	if err := w.store.Close(); err != nil {
		w.Fatal(err)
	}
	w.stop()
	w.crashed = false
}

// judges makes every judging role a command; reject names a role's script.
func (w *world) judges(reject map[work.Role]string) {
	w.Helper()
	for _, role := range work.Roles() {
		if role == work.Builder {
			continue
		}
		script, ok := reject[role]
		if !ok {
			script = "exit 0"
		}
		argv := []string{"sh", "-c", "cat >/dev/null; " + script}
		if _, err := w.service.SetRole(w.ctx, string(role), app.RoleInput{Command: &argv}); err != nil {
			w.Fatal(err)
		}
	}
}

// told lists the events of a tree as the trace tells them: what judges do among
// themselves is left out.
func (w *world) told(tree work.TreeID, names map[work.TaskID]string) []string {
	w.Helper()
	events, err := w.store.Events(w.ctx, 0, tree, "", 10_000)
	if err != nil {
		w.Fatal(err)
	}
	var out []string
	for _, e := range events {
		name, ours := names[e.Task]
		if !ours {
			t, err := w.store.Task(w.ctx, e.Task)
			if err != nil {
				w.Fatal(err)
			}
			if t.Judges == nil {
				w.Fatalf("event %s of an unknown task %s %q", e.Kind, t.ID, t.Name)
			}
			if e.Kind != "judge.spawned" && e.Kind != "verdict.reported" {
				continue
			}
			name = string(t.Role()) + " of " + names[t.Judges.TaskID]
			if strings.HasPrefix(string(t.Role()), "evaluator") {
				name = "evaluator of " + names[t.Judges.TaskID]
			}
		}
		out = append(out, e.Kind+" "+name)
	}
	return out
}

// TestWorkedTrace plays the specification's worked trace against the real
// engine, database, git and processes, and compares the events one by one.
func TestWorkedTrace(t *testing.T) {
	t.Parallel()
	a := &actor{runs: map[work.TaskID]int{}}
	w := makeWorld(t, 8, engine.Catalog{"actor": a})
	a.w, w.patience = w, patient
	name := "actor"
	w.project(app.ProjectInput{Agent: &name, Validate: &[]string{"true"}})
	// Security rejects c1's first attempt; arbitration follows it.
	unsafe := "test ! -f one || test -f one.safe"
	w.judges(map[work.Role]string{work.EvaluatorSecurity: unsafe, work.Arbitration: unsafe})

	began, third := make(chan struct{}), make(chan struct{})
	a.parts = map[string]func(context.Context, *scene) error{
		"P": func(ctx context.Context, s *scene) error { // 3, 5
			for _, spawn := range [][]string{{"c1"}, {"c2", "c1"}} {
				if err := s.spawn(ctx, spawn[0], spawn[1:]...); err != nil {
					return err
				}
			}
			if s.run == 1 {
				close(began)
				<-ctx.Done() // 4: until the server is killed
				return ctx.Err()
			}
			return s.write("p", "p\n")
		},
		"c1": func(_ context.Context, s *scene) error { // 6, 10
			if s.attempt == 2 {
				return s.write("one.safe", "yes\n")
			}
			return s.write("one", "one\n")
		},
		"c2": func(ctx context.Context, s *scene) error { // 12, 13
			if s.attempt == 2 {
				return s.write("p", "p\nboth\n")
			}
			if _, err := os.Stat(filepath.Join(s.job.Dir, "one.safe")); err != nil {
				return fmt.Errorf("c2 does not see c1's work: %w", err)
			}
			select {
			case <-third: // another sibling is integrated meanwhile
			case <-ctx.Done():
			}
			return s.write("p", "p\nof c2\n")
		},
		"c3": func(_ context.Context, s *scene) error { return s.write("p", "p\nof c3\n") },
	}

	p := w.task(app.TaskRequest{Name: "P", Agent: app.AgentInput{Role: "builder"}}) // 1, 2
	<-began
	w.crash() // 4
	w.start()
	kids := w.children(p.ID, 2)
	c1, c2 := kids[0].ID, kids[1].ID
	w.until(c2, func(v *app.TaskView) bool { return v.State == work.Running }) // up to 12
	c3, err := w.service.CreateTask(w.ctx, app.TaskRequest{Name: "c3", ParentTaskID: string(p.ID), Review: "none"})
	if err != nil {
		t.Fatal(err)
	}
	w.state(c3.ID, work.Completed)
	close(third)
	w.state(p.ID, work.Completed) // 14

	names := map[work.TaskID]string{p.ID: "P", c1: "c1", c2: "c2", c3.ID: "c3"}
	for id, name := range map[work.TaskID]string{c1: "c1'", c2: "c2'"} {
		v, err := w.service.Task(w.ctx, string(id))
		if err != nil {
			t.Fatal(err)
		}
		names[v.CurrentID] = name
		if v.State != work.Ready || v.SupersededBy != v.CurrentID {
			t.Errorf("the rejected %s is %s, superseded by %q; want READY as it was", v.Name, v.State, v.SupersededBy)
		}
	}
	if diff := cmp.Diff(trace(), w.told(p.TreeID, names)); diff != "" {
		t.Errorf("events differ from the trace (-want +got):\n%s", diff)
	}
	done := w.state(p.ID, work.Completed)
	for file, want := range map[string]string{"one": "one", "one.safe": "yes", "p": "p\nboth"} {
		vault := filepath.Join(w.dir, "vaults", string(done.ProjectID)+".git")
		if got := w.git("--git-dir", vault, "show", "claudomator/"+string(p.ID)+":"+file); got != want {
			t.Errorf("%s on P's branch is %q, want %q", file, got, want)
		}
	}
}

// trace is the worked trace's events, step by step; "c3" is the sibling that
// step 12 mentions.
func trace() []string {
	judged := func(task string, rejected bool) []string {
		out := []string{"gates.started " + task, "gates.passed " + task} // 6, 7
		for _, kind := range []string{"judge.spawned", "verdict.reported"} {
			out = append(out, slices.Repeat([]string{kind + " evaluator of " + task}, 4)...) // 7, 8
		}
		out = append(out, "judge.spawned arbitration of "+task, "verdict.reported arbitration of "+task) // 8
		if rejected {
			return append(out, "decision.rejected "+task)
		}
		return append(out, "decision.approved "+task)
	}
	ran := func(task string) []string {
		return []string{"execution.started " + task, "execution.ended " + task, "task.ready " + task}
	}
	integrated := func(task string) []string { return []string{"task.integrated " + task, "task.completed " + task} }
	return slices.Concat(
		[]string{"task.created P", "task.queued P"},                            // 1
		[]string{"execution.started P", "task.created c1", "task.created c2"},  // 2, 3
		[]string{"execution.lost P"},                                           // 4
		[]string{"execution.started P", "execution.ended P", "task.blocked P"}, // 5
		[]string{"task.queued c1", "task.queued c2"},                           // 5
		ran("c1"), judged("c1", true), []string{"fix.spawned c1'"}, // 6–9
		ran("c1'"), judged("c1'", false), integrated("c1'"), // 10, 11
		[]string{"execution.started c2", "task.created c3", "task.queued c3"}, // 12
		ran("c3"), integrated("c3"), // 12
		[]string{"execution.ended c2", "task.ready c2"}, judged("c2", false), // 12
		[]string{"integrate.conflict c2", "fix.spawned c2'"}, // 12
		ran("c2'"), judged("c2'", false), integrated("c2'"), // 13
		[]string{"task.ready P"}, judged("P", false), []string{"task.completed P"}, // 13, 14
	)
}
