package engine

import (
	"context"
	"sync"

	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"modernc.org/sqlite"
)

// bus is River's SQLite driver with a listener inside this process. River's own
// polls a table every 50 ms; this one is told by SQLite's hooks of every
// committed row, so that a job starts a millisecond after its commit and an
// idle server does nothing.
//
// It rests on two facts of River 0.51: notifications are rows of
// river_notification (columns id, created_at, payload, topic), and its client
// leaves that row out for a second insert within FetchCooldown, which watching
// river_job makes good. bus_test.go fails when either changes.
type bus struct {
	*riversqlite.Driver
	out    chan *riverdriver.Notification
	queues []string

	mu      sync.Mutex
	jobs    bool // the open transaction inserted jobs
	pending []*riverdriver.Notification
}

const sqliteInsert = 18 // SQLITE_INSERT, as the pre-update hook gives it

func newBus(queues ...string) *bus {
	return &bus{out: make(chan *riverdriver.Notification, 1024), queues: queues}
}

// GetListener replaces the polling listener.
func (b *bus) GetListener(*riverdriver.GetListenenerParams) riverdriver.Listener { return listener{b} }

// hook registers with one connection. Only the writer's matters: readers commit
// nothing.
func (b *bus) hook(conn sqlite.ExecQuerierContext, _ string) error {
	h, ok := conn.(sqlite.HookRegisterer)
	if !ok {
		return nil
	}
	h.RegisterPreUpdateHook(b.changed)
	h.RegisterCommitHook(func() int32 {
		for _, n := range b.take() {
			b.publish(n)
		}
		return 0
	})
	h.RegisterRollbackHook(func() { b.take() })
	return nil
}

func (b *bus) changed(d sqlite.SQLitePreUpdateData) {
	switch {
	case d.TableName == "river_job" && d.Op == sqliteInsert:
		b.mu.Lock()
		b.jobs = true
		b.mu.Unlock()
	case d.TableName == "river_notification" && d.Op == sqliteInsert:
		row := make([]any, 4) // New replaces the elements; it does not scan into pointers
		if d.New(row...) != nil {
			return
		}
		payload, _ := row[2].(string)
		topic, _ := row[3].(string)
		b.mu.Lock()
		b.pending = append(b.pending, &riverdriver.Notification{Topic: topic, Payload: payload})
		b.mu.Unlock()
	}
}

func (b *bus) take() []*riverdriver.Notification {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.pending
	if b.jobs {
		for _, q := range b.queues {
			out = append(out, &riverdriver.Notification{Topic: "river_insert", Payload: `{"queue":"` + q + `"}`})
		}
	}
	b.pending, b.jobs = nil, false
	return out
}

func (b *bus) publish(n *riverdriver.Notification) {
	select {
	case b.out <- n:
	default: // full: River's own poll catches up
	}
}

// listener is River's view of the bus.
type listener struct{ b *bus }

func (listener) Close(context.Context) error            { return nil }
func (listener) Connect(context.Context) error          { return nil }
func (listener) Listen(context.Context, string) error   { return nil }
func (listener) Ping(context.Context) error             { return nil }
func (listener) Schema() string                         { return "" }
func (listener) SetAfterConnectExec(string)             {}
func (listener) Unlisten(context.Context, string) error { return nil }

func (l listener) WaitForNotification(ctx context.Context) (*riverdriver.Notification, error) {
	select {
	case n := <-l.b.out:
		return n, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
