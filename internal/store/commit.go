package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/claudomator/claudomator/internal/work"
)

// The statements of a commit, besides those of rows.
const (
	insertKey     = `INSERT INTO idempotency (key, request, response, at) VALUES ($1, $2, $3, $4) ON CONFLICT (key) DO NOTHING`
	raiseEdges    = `UPDATE counters SET value = value + 1 WHERE name = 'edges' AND value = $1`
	selectTree    = `SELECT ` + summaryColumns + ` FROM trees r WHERE r.id = $1 AND r.version = $2`
	deleteTree    = `DELETE FROM trees WHERE id = $1 AND version = $2`
	deleteTask    = `DELETE FROM tasks WHERE id = $1 AND tree_id = $2`
	selectEdges   = `SELECT position FROM edges WHERE tree_id = $1`
	insertEdge    = `INSERT INTO edges (tree_id, position) VALUES ($1, $2)`
	deleteEdge    = `DELETE FROM edges WHERE tree_id = $1 AND position = $2`
	deleteEdges   = `DELETE FROM edges WHERE tree_id = $1`
	lockTree      = `UPDATE trees SET version = version WHERE id = $1`
	selectWaiters = `SELECT tree_id FROM edges WHERE position = $1 ORDER BY tree_id`
	raiseEvents   = `UPDATE counters SET value = value + $1 WHERE name = 'events' RETURNING value`

	insertTree = `INSERT INTO trees (id, project_id, story_id, current_task, state, head, accepted, landed, is_open, wake_at, inbox, version)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1) ON CONFLICT (id) DO NOTHING`
	updateTree = `UPDATE trees SET project_id = $1, story_id = $2, current_task = $3, state = $4, head = $5, accepted = $6, landed = $7,
	is_open = $8, wake_at = $9, inbox = $10, version = version + 1 WHERE id = $11 AND version = $12`
)

// commitStatements are what Commit runs in most of its transactions.
func commitStatements() []string {
	return []string{
		insertKey, raiseEdges, selectTree, insertTree, updateTree, upsertTask, placeTask, upsertExecution, upsertMerge, upsertStory,
		selectEdges, insertEdge, deleteEdge, lockTree, selectWaiters, raiseEvents, insertEvent,
	}
}

// commit is one change set on its way into the database.
type commit struct {
	*transaction
	work.ChangeSet
	removed bool // the whole tree goes
	version int64
	before  work.Summary
	effects []work.Effect
}

// Commit writes a change set in one transaction and gives the tree's new
// version; the events of the change set get their seq.
//
// The order of its statements is the order of its locks in Postgres: the
// idempotency key, the version of the edges, the tree, then other trees, at
// last the events' counter, which every commit wants and which is therefore
// held as briefly as can be.
func (s *Store) Commit(ctx context.Context, changes work.ChangeSet) (int64, error) {
	c := commit{ChangeSet: changes, effects: slices.Clone(changes.Effects)}
	// A tree without a current task has lost its last row.
	c.removed = changes.Version > 0 && changes.Summary.Current == ""
	err := s.change(ctx, fmt.Sprintf("commit tree %s", changes.Tree), func(t *transaction) error {
		c.transaction = t
		for _, step := range []func() error{
			c.claim, c.writeTree, c.writeTasks, c.writeRuns, c.writeEdges, c.recheck, c.deliver, c.writeEvents,
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return c.version, nil
}

// claim takes what may be taken once: the client's key, and the version of the
// edges.
func (c *commit) claim() error {
	if key := c.Idempotency; key != nil {
		if n, err := c.exec(insertKey, key.Key, key.Request, key.Response, micros(key.At)); err != nil {
			return err
		} else if n == 0 {
			return work.Errorf(work.Conflict, "a request with this idempotency key was carried out meanwhile").WithReason("idempotent")
		}
	}
	if c.Edges == nil {
		return nil
	}
	if n, err := c.exec(raiseEdges, *c.Edges); err != nil {
		return err
	} else if n == 0 {
		return work.Errorf(work.Conflict, "the dependencies between trees have changed").WithReason("edges")
	}
	return nil
}

func (c *commit) stale() error {
	return work.Errorf(work.Conflict, "tree %s has changed since version %d", c.Tree, c.Version).WithReason("version")
}

// writeTree moves the tree to its next version, if it still has the one the
// decision was made on.
func (c *commit) writeTree() error {
	summary, err := summaryArguments(c.Summary)
	if err != nil {
		return err
	}
	if c.Version == 0 {
		return c.once(c.stale(), insertTree, append([]any{string(c.Tree)}, summary...)...)
	}
	rows, err := c.query(selectTree, string(c.Tree), c.Version)
	before, found, err := first(collect(rows, err, scanSummary))
	if err != nil {
		return err
	}
	if !found {
		return c.stale()
	}
	c.before = before
	if c.removed {
		return c.once(c.stale(), deleteTree, string(c.Tree), c.Version)
	}
	return c.once(c.stale(), updateTree, append(summary, string(c.Tree), c.Version)...)
}

// once runs a statement that must change one row, or else fails with refusal.
func (c *commit) once(refusal error, statement string, args ...any) error {
	n, err := c.exec(statement, args...)
	if err != nil {
		return err
	}
	if n != 1 {
		return refusal
	}
	return nil
}

func (c *commit) writeTasks() error {
	c.version = c.Version + 1
	queued := map[work.ExecutionID]int64{}
	for _, x := range c.Executions {
		queued[x.ID] = micros(x.CreatedAt)
	}
	for _, t := range c.Tasks {
		upsert, place, err := taskArguments(t, c.Tree, queued[t.Book.Current])
		if err != nil {
			return err
		}
		taken := work.Errorf(work.Conflict, "task %s exists in another tree", t.ID).WithReason("exists")
		if err := c.once(taken, upsertTask, upsert...); err != nil {
			return err
		}
		if _, err := c.exec(placeTask, place...); err != nil {
			return err
		}
	}
	for _, sum := range c.NewTrees {
		args, err := summaryArguments(sum)
		if err != nil {
			return err
		}
		taken := work.Errorf(work.Conflict, "tree %s exists already", sum.ID).WithReason("exists")
		if err := c.once(taken, insertTree, append([]any{string(sum.ID)}, args...)...); err != nil {
			return err
		}
	}
	for _, id := range c.Removed { // with its executions and merges
		if _, err := c.exec(deleteTask, string(id), string(c.Tree)); err != nil {
			return err
		}
	}
	return nil
}

// writeRuns writes the executions, merges and story.
func (c *commit) writeRuns() error {
	for _, x := range c.Executions {
		args, err := executionArguments(x)
		if err != nil {
			return err
		}
		taken := work.Errorf(work.Conflict, "execution %s belongs to another task", x.ID).WithReason("exists")
		if err := c.once(taken, upsertExecution, args...); err != nil {
			return err
		}
	}
	for _, m := range c.Merges {
		args, err := mergeArguments(m)
		if err != nil {
			return err
		}
		taken := work.Errorf(work.Conflict, "merge %s belongs to another task", m.ID).WithReason("exists")
		if err := c.once(taken, upsertMerge, args...); err != nil {
			return err
		}
	}
	if c.Story == nil {
		return nil
	}
	args, err := storyArguments(c.Story, c.Tree)
	if err != nil {
		return err
	}
	taken := work.Errorf(work.Conflict, "story %s belongs to another tree", c.Story.ID).WithReason("exists")
	return c.once(taken, upsertStory, args...)
}

// writeEdges keeps the edges of the tree equal to what its root depends on or
// is built on: what it is built on has been a dependency before.
// All of a root's dependencies are other trees: it has no siblings.
func (c *commit) writeEdges() error {
	if c.removed {
		_, err := c.exec(deleteEdges, string(c.Tree))
		return err
	}
	i := slices.IndexFunc(c.Tasks, func(t *work.Task) bool { return t.ID == c.Summary.Current })
	if i < 0 {
		return nil // the root has not changed
	}
	root := c.Tasks[i]
	rows, err := c.query(selectEdges, string(c.Tree))
	stored, err := collect(rows, err, text[work.Position])
	if err != nil {
		return err
	}
	for _, pos := range stored {
		if slices.Contains(root.Outside(), pos) {
			continue
		}
		if _, err := c.exec(deleteEdge, string(c.Tree), string(pos)); err != nil {
			return err
		}
	}
	for _, pos := range root.DependsOn {
		if slices.Contains(stored, pos) {
			continue
		}
		if err := c.addEdge(pos); err != nil {
			return err
		}
		stored = append(stored, pos)
	}
	return nil
}

// addEdge lets the tree depend on the one at pos. A commit of that tree that
// runs at this moment, its removal included, either sees the edge or is over
// when this one goes on: the lock on its row decides which.
func (c *commit) addEdge(pos work.Position) error {
	if c.Edges == nil {
		return work.Errorf(work.Internal, "tree %s comes to depend on %s, but was not decided on a version of the edges", c.Tree, pos)
	}
	if _, err := c.exec(insertEdge, string(c.Tree), string(pos)); err != nil {
		return err
	}
	gone := work.Errorf(work.Conflict, "there is no task %s to depend on any more", pos).WithReason("edges")
	if err := c.once(gone, lockTree, string(pos)); err != nil {
		return err
	}
	c.addEffect(work.Effect{Kind: work.Recheck, Tree: c.Tree})
	return nil
}

func (c *commit) addEffect(e work.Effect) {
	if !slices.Contains(c.effects, e) {
		c.effects = append(c.effects, e)
	}
}

// recheck lets the trees that wait for this one look again when what they see
// of it has changed.
func (c *commit) recheck() error {
	a, b := c.before, c.Summary
	if c.Version == 0 || (a.Current == b.Current && a.State == b.State && a.Head == b.Head && a.Accepted == b.Accepted && a.Landed == b.Landed) {
		return nil
	}
	rows, err := c.query(selectWaiters, string(c.Tree))
	waiters, err := collect(rows, err, text[work.TreeID])
	if err != nil {
		return err
	}
	if c.removed && len(waiters) > 0 {
		return work.Errorf(work.Illegal, "task %s depends on task %s", waiters[0], c.Tree).WithReason("needed").
			WithHint("edit the dependencies of %s first", waiters[0])
	}
	for _, tree := range waiters {
		c.addEffect(work.Effect{Kind: work.Recheck, Tree: tree})
	}
	return nil
}

func (c *commit) deliver() error {
	if len(c.effects) == 0 {
		return nil
	}
	if err := c.check("ENQUEUE"); err != nil {
		return err
	}
	if err := c.store.enqueue(c.ctx, c.tx, c.effects); err != nil {
		return fmt.Errorf("enqueue effects: %w", err)
	}
	return nil
}

// writeEvents numbers the events; the counter's lock lasts until the commit
// is seen, so that nobody sees a number before those below it.
func (c *commit) writeEvents() error {
	if len(c.Events) == 0 {
		return nil
	}
	rows, err := c.query(raiseEvents, int64(len(c.Events)))
	last, found, err := first(collect(rows, err, func(row scanner) (seq int64, err error) { return seq, row.Scan(&seq) }))
	if err != nil {
		return err
	}
	if !found {
		return work.Errorf(work.Internal, "the counter of events is gone")
	}
	for i := range c.Events {
		e := &c.Events[i]
		e.Seq = last - int64(len(c.Events)-1-i)
		args, err := eventArguments(*e)
		if err != nil {
			return err
		}
		if _, err := c.exec(insertEvent, args...); err != nil {
			return err
		}
	}
	return nil
}
