package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// killer ends what it likes, when it likes.
type killer struct {
	w    *world
	dice *rand.Rand

	servers, agents, gits, early, stops int
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
			if err := k.w.stop(); err != nil {
				k.w.Errorf("a clean stop: %v", err)
			}
			k.stops++
			k.w.start()
		}
	}
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
	if len(all) == 0 {
		return
	}
	victim := all[k.dice.IntN(len(all))]
	whole := k.dice.IntN(4) == 0
	for _, p := range all {
		if p == victim || whole && p.execution == victim.execution {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
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
