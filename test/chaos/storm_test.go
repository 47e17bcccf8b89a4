package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// killer ends what it likes, when it likes.
type killer struct {
	w     *world
	dice  *rand.Rand
	whole bool // it kills agents as a whole, and no commands of the server's

	servers, agents, gits, early, stops int
	caught                              bool // a deployment was cut off
}

func (k *killer) kills() int { return k.servers + k.agents + k.gits }

func (k *killer) figures() string {
	return fmt.Sprintf("kills %d (server %d, %d of them while it started; processes of runs %d; git of the server %d); clean stops %d;",
		k.kills(), k.servers, k.early, k.agents, k.gits, k.stops)
}

// rage kills n times: now a server, now one process of a run, now both, now one
// of the server's own git commands.
func (k *killer) rage(n int) {
	for k.kills() < n && !k.w.Failed() {
		k.wait(20, 900)
		switch roll := k.dice.IntN(100); {
		case roll < 35:
			k.server()
		case roll < 60:
			k.agent()
		case roll < 75: // both, in either order
			if k.dice.IntN(2) == 0 {
				k.agent()
			}
			k.w.kill()
			k.servers++
			k.agent()
			k.restart()
		case roll < 85: // frozen, an agent killed, thawed or killed as well
			k.freeze()
		case roll < 95:
			k.git()
		default:
			k.stop()
		}
	}
}

// haunt kills servers and agents n times, until over. If there is anything to kill,
// the first deployment of which a file tells is cut off, too. A gate that is killed
// has failed, and an agent without one of its helpers may say anything: only whole
// agents are killed here.
func (k *killer) haunt(n int, deployed string, over <-chan struct{}) {
	for rest := time.Now(); !k.w.Failed(); {
		select {
		case <-over:
			return
		case <-time.After(20 * time.Millisecond):
		}
		switch {
		case n == 0:
		case !k.caught && deploying(deployed):
			k.w.kill()
			k.servers++
			k.caught = deploying(deployed) // then it was cut off for certain
			k.restart()
		case k.kills() < n && time.Now().After(rest):
			k.strike()
			rest = time.Now().Add(time.Duration(100+k.dice.IntN(1000)) * time.Millisecond)
		}
	}
}

func deploying(file string) bool {
	text, _ := os.ReadFile(file)
	return strings.Count(string(text), "begun") > strings.Count(string(text), "ended")
}

func (k *killer) strike() {
	switch roll := k.dice.IntN(100); {
	case roll < 50:
		k.server()
	case roll < 75:
		k.agent()
	case roll < 95:
		k.agent()
		k.server()
	default:
		k.stop()
	}
}

// stop ends the server in good order, and starts it again.
func (k *killer) stop() {
	if err := k.w.stop(); err != nil {
		k.w.Errorf("a clean stop: %v", err)
	}
	k.stops++
	k.w.start()
}

func (k *killer) wait(least, most int) {
	time.Sleep(time.Duration(least+k.dice.IntN(most-least)) * time.Millisecond)
}

func (k *killer) server() {
	k.w.kill()
	k.servers++
	k.restart()
}

// restart starts the server again; sometimes it is killed while it starts.
func (k *killer) restart() {
	for k.dice.IntN(4) == 0 {
		k.w.launch()
		k.wait(2, 120)
		k.w.kill()
		k.servers++
		k.early++
	}
	k.w.start()
}

// agent kills one process of one run, or all of them.
func (k *killer) agent() {
	all := k.w.processes()
	if k.whole {
		all = slices.DeleteFunc(all, func(p process) bool { return strings.Contains(p.execution, ".") })
	}
	if len(all) == 0 {
		return
	}
	victim := all[k.dice.IntN(len(all))]
	whole := k.whole || k.dice.IntN(4) == 0
	all = slices.DeleteFunc(all, func(p process) bool { return p != victim && !(whole && p.execution == victim.execution) })
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} { // none goes on without the others
		for _, p := range all {
			_ = syscall.Kill(p.pid, signal)
		}
	}
	k.agents++
}

func (k *killer) freeze() {
	k.w.mu.Lock()
	pid := k.w.server.PID()
	k.w.mu.Unlock()
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	k.wait(50, 600)
	k.agent()
	if k.dice.IntN(2) == 0 {
		k.server()
		return
	}
	_ = syscall.Kill(pid, syscall.SIGCONT)
}

// git kills one of the server's own git processes, if there is one at the moment.
func (k *killer) git() {
	k.w.mu.Lock()
	pid := k.w.server.PID()
	k.w.mu.Unlock()
	for range 200 {
		for _, p := range processes() {
			if p.parent == pid && filepath.Base(p.program) == "git" {
				_ = syscall.Kill(p.pid, syscall.SIGKILL)
				k.gits++
				return
			}
		}
		time.Sleep(time.Millisecond)
	}
}

// process is one of the process table.
type process struct {
	pid, parent int
	execution   string // the mark it carries
	program     string
}

func (p process) String() string {
	return fmt.Sprintf("process %d (%s) of execution %q", p.pid, p.program, p.execution)
}

// processes lists the living ones that can be read.
func processes() []process {
	var all []process
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		stat, err := os.ReadFile(dir + "/stat")
		end := strings.LastIndexByte(string(stat), ')')
		if err != nil || end < 0 {
			continue
		}
		fields := strings.Fields(string(stat[end+1:]))
		if len(fields) < 2 || fields[0] == "Z" || fields[0] == "X" {
			continue
		}
		p := process{program: strings.TrimLeft(strings.SplitN(string(stat[:end]), "(", 2)[1], "(")}
		p.pid, _ = strconv.Atoi(filepath.Base(dir))
		p.parent, _ = strconv.Atoi(fields[1])
		all = append(all, p)
	}
	return all
}

// processes lists those of this world's runs: they carry the mark of a run and
// the name of this folder, or work in one of its workspaces.
func (w *world) processes() []process {
	var ours []process
	for _, p := range processes() {
		dir := fmt.Sprintf("/proc/%d", p.pid)
		environ, _ := os.ReadFile(dir + "/environ")
		mine := false
		for entry := range strings.SplitSeq(string(environ), "\x00") {
			if id, ok := strings.CutPrefix(entry, "CLAUDOMATOR_EXECUTION_ID="); ok {
				p.execution = id
			}
			mine = mine || entry == "CHAOS="+w.dir
		}
		cwd, _ := os.Readlink(dir + "/cwd")
		if mine && p.execution != "" || strings.HasPrefix(cwd, w.path("data/workspaces")+"/") {
			ours = append(ours, p)
		}
	}
	return ours
}
