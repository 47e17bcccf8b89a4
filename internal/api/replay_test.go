package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/app/apptest"
	"github.com/claudomator/claudomator/internal/work"
)

// at once makes n requests in parallel.
func (w *world) atOnce(n int, method, path, body string, edits ...func(*http.Request)) []received {
	w.Helper()
	out := make([]received, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { out[i] = w.ask(method, path, body, edits...) })
	}
	all.Wait()
	return out
}

// Case B58: one task for one key, however often and whenever it is asked for.
func TestOneTaskForOneKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Project("house")
	ids := map[work.TaskID]int{}
	for _, got := range w.atOnce(20, "POST", "/api/tasks", `{"name":"a","start":true}`, apptest.Header("Idempotency-Key", "k1")) {
		var view app.TaskView
		if err := json.Unmarshal(got.body, &view); err != nil || got.status != 201 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		ids[view.ID]++
	}
	if len(ids) != 1 {
		t.Errorf("tasks: %v", ids)
	}
	got := w.ask("POST", "/api/tasks", `{"name":"b"}`, apptest.Header("Idempotency-Key", "k1"))
	if got.status != 409 || got.Reason != "key_reused" || got.Hint == "" {
		t.Errorf("another request with the key: %d %s", got.status, got.body)
	}
	for range 2 {
		w.ask("POST", "/api/tasks", `{"name":"a"}`)
	}
	page, err := w.Service.Tasks(w.Owner(), app.TaskQuery{})
	if err != nil || len(page.Items) != 3 {
		t.Errorf("%d tasks, %v; without a key each request makes one", len(page.Items), err)
	}
}

// Case B58: fifty starts at once make one execution; the others are told so.
func TestOneRunForManyStarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Project("house")
	task := w.Task(app.TaskRequest{Name: "a"})
	started := 0
	for _, got := range w.atOnce(50, "POST", "/api/tasks/"+string(task.ID)+"/start", "") {
		switch {
		case got.status == 200:
			started++
		case got.status != 409 || got.Reason != "already_started" || got.Details["execution"] == "":
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	runs, err := w.Service.Executions(w.Owner(), string(task.ID))
	if err != nil || started != 1 || len(runs) != 1 {
		t.Errorf("%d were started, executions %v, %v", started, runs, err)
	}
}

// A repeated key repeats the answer, for everything that changes something.
func TestKeysRepeatAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.Project("house")
	task := w.Task(app.TaskRequest{Name: "a"})
	for i, r := range []struct{ method, path, body string }{
		{"POST", "/api/projects", `{"name":"garden"}`},
		{"PATCH", "/api/projects/" + string(p.ID), `{"setup":"make"}`},
		{"POST", "/api/tokens", `{"name":"x","scope":"read"}`},
		{"PUT", "/api/roles/checker", `{"model":"m"}`},
		{"POST", "/api/tasks/" + string(task.ID) + "/start", ""},
		{"POST", "/api/tasks/" + string(task.ID) + "/cancel", ""},
		{"DELETE", "/api/tasks/" + string(task.ID), ""},
	} {
		key := apptest.Header("Idempotency-Key", fmt.Sprint("key", i))
		answers := w.atOnce(8, r.method, r.path, r.body, key)
		replayed := 0
		for _, got := range answers {
			if got.status/100 != 2 || string(got.body) != string(answers[0].body) {
				t.Errorf("%s %s: %d %s, not %s", r.method, r.path, got.status, got.body, answers[0].body)
			}
			if got.header.Get("Idempotency-Replayed") == "true" {
				replayed++
			}
		}
		if replayed != len(answers)-1 {
			t.Errorf("%s %s: %d of %d were replayed", r.method, r.path, replayed, len(answers))
		}
	}
	versions, err := w.Service.Role(w.Owner(), "checker")
	if err != nil || versions[len(versions)-1].Version != 1 {
		t.Errorf("versions of the role: %+v, %v", versions, err)
	}
	if got := w.ask("POST", "/api/projects", `{"name":"other"}`, apptest.Header("Idempotency-Key", "key0")); got.status != 409 || got.Reason != "key_reused" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A refusal is not remembered: the request may be made again.
func TestRefusalsAreNotRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Project("house")
	task := w.Task(app.TaskRequest{Name: "a", Start: true})
	key := apptest.Header("Idempotency-Key", "k")
	path := "/api/tasks/" + string(task.ID) + "/accept"
	if got := w.ask("POST", path, "", key); got.status != 409 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	w.Run(task.ID, apptest.Changed())
	if got := w.ask("POST", path, "", key); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// What one credential was answered, another is not.
func TestKeysBelongToTheirCredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other, err := w.Service.CreateToken(w.Owner(), "other", app.ScopeRead)
	if err != nil {
		t.Fatal(err)
	}
	key := apptest.Header("Idempotency-Key", "k")
	w.ask("POST", "/api/tokens", `{"name":"x","scope":"admin"}`, key)
	got := w.ask("POST", "/api/tokens", `{"name":"x","scope":"admin"}`, key, apptest.Header("Authorization", "Bearer "+other.Secret))
	if got.status != 403 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// The memory is bounded in number and size; the newest stay.
func TestReplaysAreBounded(t *testing.T) {
	t.Parallel()
	p := &replays{}
	for i := range 3 * keptReplies {
		id := [32]byte{byte(i), byte(i >> 8)}
		r, mine, err := p.begin(t.Context(), id, id)
		if err != nil || !mine {
			t.Fatal(mine, err)
		}
		_, _ = r.Write(make([]byte, 64<<10))
		p.end(id, r, true)
	}
	if len(p.known) != len(p.order) || len(p.order) > keptReplies || p.bytes > keptReplyBytes || p.bytes != len(p.order)*64<<10 {
		t.Errorf("%d known, %d in order, %d bytes", len(p.known), len(p.order), p.bytes)
	}
	last := 3*keptReplies - 1
	id := [32]byte{byte(last), byte(last >> 8)}
	if _, mine, _ := p.begin(t.Context(), id, id); mine {
		t.Error("the newest is forgotten")
	}
}
