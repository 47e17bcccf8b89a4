package store

import (
	"context"
	"database/sql"
	"strings"
	"unicode/utf8"

	"github.com/claudomator/claudomator/internal/work"
)

const (
	shortest = 3 // how many characters of an id name it at least
	told     = 5 // how many matches an ambiguous ref is told of
)

// match is one thing that a ref may mean.
type match struct{ id, name string }

// named finds the one thing that ref means: the one with that id; else that
// name; else the only one whose id begins with it. byPrefix takes the range of
// ids, byName (may be empty) the name; both give ids and names.
func (s *Store) named(ctx context.Context, what, ref, byPrefix, byName string) (string, error) {
	// What cannot be stored is not there; Postgres would refuse the question.
	if ref == "" || !utf8.ValidString(ref) || strings.ContainsRune(ref, 0) {
		return "", unknown(what, ref)
	}
	scan := func(row scanner) (m match, err error) { return m, row.Scan(&m.id, &m.name) }
	rows, err := s.read.QueryContext(ctx, byPrefix, ref, ref+string(utf8.MaxRune))
	found, err := collect(rows, err, scan)
	if err != nil {
		return "", mapped("look up "+what, err)
	}
	if len(found) > 0 && found[0].id == ref { // an id sorts before those that begin with it
		return ref, nil
	}
	if byName != "" {
		rows, err := s.read.QueryContext(ctx, byName, ref)
		named, err := collect(rows, err, scan)
		if err != nil || len(named) > 0 {
			return only(what, ref, named, mapped("look up "+what, err))
		}
	}
	if utf8.RuneCountInString(ref) < shortest {
		found = nil
	}
	return only(what, ref, found, nil)
}

func only(what, ref string, found []match, err error) (string, error) {
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", unknown(what, ref)
	case len(found) == 1:
		return found[0].id, nil
	}
	var list []string
	for _, m := range found[:min(len(found), told)] {
		list = append(list, strings.TrimSpace(m.id+" "+m.name))
	}
	all := strings.Join(list, ", ")
	if len(found) > told {
		all += ", …"
	}
	return "", work.Errorf(work.Invalid, "%q means more than one %s: %s", ref, what, all).WithReason("ambiguous").
		With("matches", list).WithHint("use the id")
}

// single is the one row that is there, or the error that says it is not.
func single[T any](what, ref string, rows *sql.Rows, err error, scan func(scanner) (T, error)) (T, error) {
	item, found, err := first(collect(rows, err, scan))
	if err == nil && !found {
		err = unknown(what, ref)
	}
	return item, mapped("look up "+what, err)
}

// ResolveTask finds a task by its id, by the name of a current attempt, or by
// the beginning of its id.
func (s *Store) ResolveTask(ctx context.Context, ref string) (work.TaskID, error) {
	id, err := s.named(ctx, "task", ref,
		`SELECT id, name FROM tasks WHERE id >= $1 AND id < $2 ORDER BY id LIMIT 6`,
		`SELECT id, name FROM tasks WHERE name = $1 AND shown = 1 ORDER BY id LIMIT 6`)
	return work.TaskID(id), err
}

// TreeOf is the tree a task belongs to.
func (s *Store) TreeOf(ctx context.Context, id work.TaskID) (work.TreeID, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT tree_id FROM tasks WHERE id = $1`, string(id))
	return single("task", string(id), rows, err, text[work.TreeID])
}

// Task is one task by its id.
func (s *Store) Task(ctx context.Context, id work.TaskID) (*work.Task, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT `+taskColumns+` FROM tasks t WHERE t.id = $1`, string(id))
	return single("task", string(id), rows, err, scanTask)
}

// Execution is one execution by its id or the beginning of it.
func (s *Store) Execution(ctx context.Context, ref string) (*work.Execution, error) {
	id, err := s.named(ctx, "execution", ref, `SELECT id, '' FROM executions WHERE id >= $1 AND id < $2 ORDER BY id LIMIT 6`, "")
	if err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, `SELECT `+executionColumns+` FROM executions x JOIN tasks t ON t.id = x.task_id WHERE x.id = $1`, id)
	return single("execution", ref, rows, err, scanExecution)
}

// ExecutionByToken is the execution that a run token (its hash) speaks for.
func (s *Store) ExecutionByToken(ctx context.Context, hash string) (*work.Execution, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT `+executionColumns+` FROM executions x JOIN tasks t ON t.id = x.task_id
		WHERE x.token_hash = $1 AND x.token_hash <> ''`, hash)
	return single("execution", "with this token", rows, err, scanExecution)
}

// Merge is one landing by its id or the beginning of it.
func (s *Store) Merge(ctx context.Context, ref string) (*work.Merge, error) {
	id, err := s.named(ctx, "merge", ref, `SELECT id, '' FROM merges WHERE id >= $1 AND id < $2 ORDER BY id LIMIT 6`, "")
	if err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, `SELECT `+mergeColumns+` FROM merges m JOIN tasks t ON t.id = m.task_id WHERE m.id = $1`, id)
	return single("merge", ref, rows, err, scanMerge)
}

// Idempotent is what a client's key was used for, nil when it is unknown.
func (s *Store) Idempotent(ctx context.Context, key string) (*work.Idempotency, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT key, request, response, at FROM idempotency WHERE key = $1`, key)
	found, err := collect(rows, err, func(row scanner) (*work.Idempotency, error) {
		var i work.Idempotency
		var at int64
		err := row.Scan(&i.Key, &i.Request, &i.Response, &at)
		i.At = instant(at)
		return &i, err
	})
	if err != nil || len(found) == 0 {
		return nil, mapped("look up idempotency key", err)
	}
	return found[0], nil
}
