package agenttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/agent"
	"github.com/claudomator/claudomator/internal/sandbox"
)

// run does a job and expects an outcome.
func (f *fixture) run(t *testing.T, ctx context.Context, job agent.Job, want agent.Outcome) (agent.Result, *transcript) {
	t.Helper()
	tr := &transcript{t: t}
	result, err := f.Agent.Run(ctx, job, tr)
	tr.end()
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	if result.Outcome != want {
		t.Fatalf("outcome %s (%s: %s), want %s", result.Outcome, result.Rule, result.Error, want)
	}
	if explained := result.Error != ""; explained != (want != agent.Success && want != agent.Asked) {
		t.Errorf("outcome %s with error %q", want, result.Error)
	}
	return result, tr
}

func describe(t *testing.T, f *fixture) {
	d, err := f.Agent.Describe(t.Context())
	if err != nil || d.Name == "" {
		t.Errorf("Describe = %+v, %v", d, err)
	}
}

func success(t *testing.T, f *fixture) {
	job := f.job(t, "cat >/dev/null; echo one; echo two >&2; printf last; pwd >where")
	result, tr := f.run(t, t.Context(), job, agent.Success)
	for _, line := range []string{"one", "two", "last"} {
		if !tr.has(line) {
			t.Errorf("no event has the line %q", line)
		}
	}
	where, _ := os.ReadFile(filepath.Join(job.Dir, "where"))
	if real, _ := filepath.EvalSymlinks(job.Dir); strings.TrimSpace(string(where)) != real && strings.TrimSpace(string(where)) != job.Dir {
		t.Errorf("ran in %q, want %q", where, job.Dir)
	}
	if result.Facts.Exit != agent.ExitZero || !strings.Contains(result.Tail, "last") || result.OutputBytes < 11 || result.Level != sandbox.LevelNone {
		t.Errorf("result %+v", result)
	}
}

func failure(t *testing.T, f *fixture) {
	result, _ := f.run(t, t.Context(), f.job(t, "cat >/dev/null; echo why >&2; exit 3"), agent.Failed)
	if result.Error == "" || result.AgentFault {
		t.Errorf("result %+v", result)
	}
}

func endedBySignal(t *testing.T, f *fixture) {
	f.run(t, t.Context(), f.job(t, "kill -9 $$"), agent.Failed)
}

func missingProgram(t *testing.T, f *fixture) {
	job := f.job(t, "")
	f.Missing(t, &job)
	result, err := f.Agent.Run(t.Context(), job, &transcript{t: t})
	if !errors.Is(err, sandbox.ErrNoProgram) || result.Outcome != agent.Failed || !result.AgentFault || result.Error == "" {
		t.Errorf("err %v, result %+v", err, result)
	}
}

func missingDirectory(t *testing.T, f *fixture) {
	job := f.job(t, "exit 0")
	job.Dir = filepath.Join(job.Dir, "gone")
	result, err := f.Agent.Run(t.Context(), job, &transcript{t: t})
	if !errors.Is(err, sandbox.ErrNoDirectory) || result.Outcome != agent.Failed || result.AgentFault {
		t.Errorf("err %v, result %+v", err, result)
	}
}

func alreadyCancelled(t *testing.T, f *fixture) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(agent.ErrCancelled)
	job := f.job(t, "echo >ran")
	f.run(t, ctx, job, agent.Cancelled)
	if _, err := os.Stat(filepath.Join(job.Dir, "ran")); err == nil {
		t.Error("the program ran")
	}
}

func cancelCauses(t *testing.T, f *fixture) {
	for _, tt := range []struct {
		cause error
		want  agent.Outcome
	}{
		{agent.ErrCancelled, agent.Cancelled},
		{fmt.Errorf("shutdown: %w", agent.ErrStopping), agent.Cancelled},
		{agent.ErrBudget, agent.BudgetExceeded},
		{agent.ErrTimeout, agent.TimedOut},
		{agent.ErrParked, agent.Asked},
		{errors.New("of a caller's own"), agent.Cancelled},
	} {
		job := f.job(t, "echo >ready; sleep 3600")
		ctx, cancel := context.WithCancelCause(t.Context())
		var group sync.WaitGroup
		group.Go(func() { eventually(t, filepath.Join(job.Dir, "ready")); cancel(tt.cause) })
		f.run(t, ctx, job, tt.want)
		group.Wait()
	}
}

// daemon leaves a process that left the session twice and ignores requests.
const daemon = `(setsid sh -c '(trap "" TERM INT HUP; setsid sh -c "trap \"\" TERM INT HUP; echo \$\$ >daemon.new; mv daemon.new daemon; while :; do sleep 1; done" &) ; exit 0' >/dev/null 2>&1 </dev/null &)
while ! test -e daemon; do sleep 0.01; done
`

func cancelLeavesNoDaemon(t *testing.T, f *fixture) {
	job := f.job(t, `trap "" TERM INT; `+daemon+`echo >ready; while :; do sleep 1; done`)
	ctx, cancel := context.WithCancelCause(t.Context())
	var group sync.WaitGroup
	group.Go(func() { eventually(t, filepath.Join(job.Dir, "ready")); cancel(agent.ErrCancelled) })
	result, _ := f.run(t, ctx, job, agent.Cancelled)
	group.Wait()
	if alive(t, filepath.Join(job.Dir, "daemon")) {
		t.Error("the daemon is alive")
	}
	if result.Killed < 2 {
		t.Errorf("killed %d, want the program and its daemon at least", result.Killed)
	}
}

func orphanHoldsThePipe(t *testing.T, f *fixture) {
	job := f.job(t, `cat >/dev/null; setsid sh -c 'echo $$ >orphan; exec sleep 3600' & while ! test -s orphan; do sleep 0.01; done; echo done`)
	begun := time.Now()
	_, tr := f.run(t, t.Context(), job, agent.Success)
	if took := time.Since(begun); took > patient/2 || !tr.has("done") { // it stays for an hour
		t.Errorf("took %v; output complete: %v", took, tr.has("done"))
	}
	if alive(t, filepath.Join(job.Dir, "orphan")) {
		t.Error("the orphan is alive")
	}
}

func wallLimit(t *testing.T, f *fixture) {
	inTime(t, time.Second, func(limit time.Duration) (reached bool) {
		job := f.job(t, daemon+"while :; do echo tick; sleep 0.05; done")
		job.Limits.Wall = limit
		f.run(t, t.Context(), job, agent.TimedOut)
		daemon := filepath.Join(job.Dir, "daemon")
		if _, err := os.Stat(daemon); err != nil {
			return false
		}
		if alive(t, daemon) {
			t.Error("the daemon is alive")
		}
		return true
	})
}

// inTime tries with a time limit, and with a longer one where the program did not even
// reach in it what the test is about.
func inTime(t *testing.T, limit time.Duration, try func(limit time.Duration) (reached bool)) {
	t.Helper()
	for ; !try(limit); limit *= 3 {
		if limit > time.Minute {
			t.Fatalf("the program does not get that far in %s", limit)
		}
	}
}

func silenceLimit(t *testing.T, f *fixture) {
	inTime(t, 1600*time.Millisecond, func(limit time.Duration) (reached bool) {
		job := f.job(t, "echo hello; echo >said; sleep 3600")
		job.Limits.Silence = limit
		begun := time.Now()
		_, tr := f.run(t, t.Context(), job, agent.Silenced)
		said, err := os.Stat(filepath.Join(job.Dir, "said"))
		if err != nil || said.ModTime().Sub(begun) > limit/8 {
			return false // perhaps it was ended before that came here
		}
		if !tr.has("hello") {
			t.Error("what was said before is not recorded")
		}
		return true
	})
}

func outputIsNotSilence(t *testing.T, f *fixture) {
	// A busy machine is silent for a while, too: then the whole is slower.
	inTime(t, 700*time.Millisecond, func(limit time.Duration) (reached bool) {
		job := f.job(t, fmt.Sprintf("cat >/dev/null; for i in 1 2 3 4 5 6 7 8 9 10; do printf . >&2; sleep %.1f; done", limit.Seconds()/7))
		job.Limits.Silence = limit
		result, err := f.Agent.Run(t.Context(), job, &transcript{t: t})
		if err != nil || result.Outcome != agent.Success && result.Outcome != agent.Silenced {
			t.Fatalf("%+v, %v", result, err)
		}
		return result.Outcome == agent.Success
	})
}

func promptByteForByte(t *testing.T, f *fixture) {
	for _, prompt := range []string{
		"", "x", "--version", "- [ ] do it", "-", "a\x00b\r\nc\r\n", "$(id) `id` \"'\\", "\xff\xfe\n",
		strings.Repeat("p", 131_071), strings.Repeat("p", 131_072), strings.Repeat("long prompt \n", 200_000),
	} {
		job := f.job(t, "cat >got; echo ok")
		job.Prompt = prompt
		f.run(t, t.Context(), job, agent.Success)
		got, err := os.ReadFile(filepath.Join(job.Dir, "got"))
		if f.Unicode {
			prompt = string([]rune(prompt))
		}
		if err != nil || string(got) != prompt {
			t.Errorf("prompt of %d bytes %.20q arrived as %d bytes %.20q, %v", len(prompt), prompt, len(got), got, err)
		}
	}
}

func promptNotRead(t *testing.T, f *fixture) {
	job := f.job(t, "echo ok")
	job.Prompt = strings.Repeat("long prompt \n", 200_000)
	f.run(t, t.Context(), job, agent.Success)
	job = f.job(t, "exec <&-; sleep 0.2; echo ok")
	job.Prompt = strings.Repeat("long prompt \n", 200_000)
	f.run(t, t.Context(), job, agent.Success)
}

func noTerminal(t *testing.T, f *fixture) {
	job := f.job(t, "cat >/dev/null; (read x </dev/tty) 2>/dev/null && echo >terminal; (echo x >/dev/tty) 2>/dev/null && echo >terminal; read y; echo ok")
	f.run(t, t.Context(), job, agent.Success)
	if _, err := os.Stat(filepath.Join(job.Dir, "terminal")); err == nil {
		t.Error("there is a controlling terminal")
	}
}

func environment(t *testing.T, f *fixture) {
	job := f.job(t, "cat >/dev/null; env >env.out; echo ok")
	job.Env = append(job.Env, "PROJECT=p", "LANG=of-the-job", "CLAUDOMATOR_TASK_ID=forged")
	job.MCP = agent.Endpoint{URL: "http://127.0.0.1:1/mcp", Token: "run-token"}
	job.Bin = "/opt/claudomator"
	_, tr := f.run(t, t.Context(), job, agent.Success)
	data, err := os.ReadFile(filepath.Join(job.Dir, "env.out"))
	if err != nil {
		t.Fatal(err)
	}
	env := make(map[string]string)
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		env[name] = value
	}
	for name, want := range map[string]string{
		"PROJECT": "p", "LANG": "of-the-job", "LC_TIME": "C", "TERM": "dumb",
		"PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME"), "GIT_TERMINAL_PROMPT": "0",
		"CLAUDOMATOR_TASK_ID": "task-1", "CLAUDOMATOR_EXECUTION_ID": job.ID,
		"CLAUDOMATOR_MCP_URL": job.MCP.URL, "CLAUDOMATOR_MCP_TOKEN": "run-token", "CLAUDOMATOR_BIN": job.Bin,
	} {
		if env[name] != want {
			t.Errorf("%s = %q, want %q", name, env[name], want)
		}
	}
	for _, name := range []string{
		"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "ANTHROPIC_API_KEY", "CLAUDOMATOR_TOKEN", "DATABASE_URL", "SSH_AUTH_SOCK", "GIT_DIR",
	} {
		if value, ok := env[name]; ok {
			t.Errorf("inherited %s=%s", name, value)
		}
	}
	if tr.has("run-token") {
		t.Error("the run's token is in the transcript")
	}
}

func hugeLine(t *testing.T, f *fixture) {
	job := f.job(t, "cat >/dev/null; echo before; yes | tr -d '\\n' | head -c 50000000; echo; echo after")
	_, tr := f.run(t, t.Context(), job, agent.Success)
	if !tr.has("before") || !tr.has("after") {
		t.Errorf("around the long line: before %v, after %v", tr.has("before"), tr.has("after"))
	}
	if tr.bytes > 4*agent.MaxLine {
		t.Errorf("transcript of %d bytes", tr.bytes)
	}
}

func badText(t *testing.T, f *fixture) {
	job := f.job(t, `cat >/dev/null; printf '\377\376 bad\n'; printf 'nul\000nul\n'; printf '\033[31mred\033[0m \033]0;title\007x\n'; printf '\342\202'; sleep 0.1; printf '\254\n'; printf 'one\rtwo\r\n'; printf '{"half": '`)
	_, tr := f.run(t, t.Context(), job, agent.Success)
	for _, line := range []string{"nulnul", "red x", "€", "one", "two"} {
		if !tr.has(line) {
			t.Errorf("no event has the line %q", line)
		}
	}
}

func flood(t *testing.T, f *fixture) {
	job := f.job(t, "cat >/dev/null; yes 0123456789 | head -c 110000000; echo the end")
	job.Limits.Transcript = 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	result, tr := f.run(t, t.Context(), job, agent.Success)
	runtime.ReadMemStats(&after)
	if tr.bytes > 3<<20 || result.Dropped == 0 {
		t.Errorf("transcript of %d bytes, %d events left out", tr.bytes, result.Dropped)
	}
	// A program that reports on its output has its report behind the end.
	if at := strings.LastIndex(result.Tail, "the end"); at < max(0, len(result.Tail)-1<<10) || len(result.Tail) > 8<<10 {
		t.Errorf("tail of %d bytes ends %q", len(result.Tail), result.Tail[max(0, len(result.Tail)-20):])
	}
	if grown := int64(after.HeapInuse) - int64(before.HeapInuse); grown > 200<<20 {
		t.Errorf("heap grew by %d bytes", grown)
	}
	if !tr.has("the end") {
		t.Error("the end of the output is not in the transcript")
	}
}

func floodOnStderr(t *testing.T, f *fixture) {
	job := f.job(t, "cat >/dev/null; yes | head -c 50000000 >&2; echo result")
	job.Limits.Transcript = 1 << 20
	f.run(t, t.Context(), job, agent.Success)
}

func manyAtOnce(t *testing.T, f *fixture) {
	var group sync.WaitGroup
	for i := range 12 {
		want, status := agent.Success, 0
		if i%3 == 0 {
			want, status = agent.Failed, 1
		}
		job := f.job(t, fmt.Sprintf("cat >got; setsid sleep 3600 & echo %d; exit %d", i, status))
		job.Prompt = strings.Repeat(fmt.Sprint(i), 100_000)
		group.Go(func() {
			tr := &transcript{t: t}
			result, err := f.Agent.Run(t.Context(), job, tr)
			tr.end()
			if err != nil || result.Outcome != want || !tr.has(fmt.Sprint(i)) {
				t.Errorf("run %d: %v, %+v", i, err, result)
			}
			if got, _ := os.ReadFile(filepath.Join(job.Dir, "got")); !bytes.Equal(got, []byte(job.Prompt)) {
				t.Errorf("run %d got another prompt", i)
			}
		})
	}
	group.Wait()
}
