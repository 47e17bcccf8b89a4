package engine

import (
	"context"
	"encoding/json"
	"slices"
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
//
// A commit tells each queue once, and only the queues it has jobs for: River
// answers every word with a fetch, and a second one within FetchCooldown with
// another at its end.
type bus struct {
	*riversqlite.Driver
	out    chan *riverdriver.Notification
	queues []string

	mu       sync.Mutex
	inserted []string                    // queues that the open transaction has jobs for
	pending  []*riverdriver.Notification // its other words
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
	if d.Op != sqliteInsert || (d.TableName != "river_job" && d.TableName != "river_notification") {
		return
	}
	row := make([]any, d.Count()) // New replaces the elements; it does not scan into pointers
	if d.New(row...) != nil {
		return
	}
	if d.TableName == "river_job" {
		for _, value := range row { // wherever its column is: nothing else is called as a queue is
			if queue, ok := value.(string); ok && slices.Contains(b.queues, queue) {
				b.insert(queue)
			}
		}
		return
	}
	payload, _ := row[2].(string)
	topic, _ := row[3].(string)
	var told struct{ Queue string }
	if topic == topicInsert && json.Unmarshal([]byte(payload), &told) == nil && told.Queue != "" {
		b.insert(told.Queue)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending = append(b.pending, &riverdriver.Notification{Topic: topic, Payload: payload})
}

const topicInsert = "river_insert"

func (b *bus) insert(queue string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(b.inserted, queue) {
		b.inserted = append(b.inserted, queue)
	}
}

func (b *bus) take() []*riverdriver.Notification {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.pending
	for _, queue := range b.inserted {
		out = append(out, &riverdriver.Notification{Topic: topicInsert, Payload: `{"queue":"` + queue + `"}`})
	}
	b.inserted, b.pending = nil, nil
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
