package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/claudomator/claudomator/internal/work"
)

// The statements of LoadTree, besides those of a project and a story.
const (
	loadTree       = `SELECT version, project_id, story_id FROM trees WHERE id = $1`
	loadTasks      = `SELECT ` + taskColumns + ` FROM tasks t WHERE t.tree_id = $1`
	loadExecutions = `SELECT ` + executionColumns + ` FROM tasks t JOIN executions x ON x.task_id = t.id
		WHERE t.tree_id = $1 AND (x.state IN ('queued', 'running') OR NOT EXISTS (SELECT 1 FROM executions y
			WHERE y.task_id = x.task_id AND y.kind = x.kind AND y.number > x.number AND y.state IN ('ended', 'lost')))`
	loadMerges = `SELECT ` + mergeColumns + ` FROM tasks t JOIN merges m ON m.task_id = t.id
		WHERE t.tree_id = $1 AND m.status IN ('running', 'conflicted')`
	loadOuter = `SELECT ` + summaryColumns + ` FROM edges e JOIN trees r ON r.id = e.position WHERE e.tree_id = $1`
)

// loadStatements are what LoadTree runs.
func loadStatements() []string {
	return []string{loadTree, loadTasks, loadExecutions, loadMerges, loadOuter, selectStory, selectProject}
}

// LoadTree reads a tree at one instant: all its tasks, its live executions and
// the newest ended one of each task and kind, its open merges, its story, its
// project, and the summaries of the trees its root depends on.
func (s *Store) LoadTree(ctx context.Context, id work.TreeID) (tree *work.Tree, err error) {
	doing := fmt.Sprintf("load tree %s", id)
	var options *sql.TxOptions
	if s.pool != nil { // SQLite's transactions are such by themselves
		options = &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	}
	tx, err := s.read.BeginTx(ctx, options)
	if err != nil {
		return nil, mapped(doing, err)
	}
	defer func() {
		if rollback := tx.Rollback(); err == nil && !errors.Is(rollback, sql.ErrTxDone) {
			err = mapped(doing, rollback)
		}
	}()
	l := loader{ctx: ctx, tx: tx, id: id}
	if err := l.load(); err != nil {
		return nil, mapped(doing, err)
	}
	return l.tree, nil
}

type loader struct {
	ctx  context.Context
	tx   *sql.Tx
	id   work.TreeID
	tree *work.Tree
}

func (l *loader) query(statement string, args ...any) (*sql.Rows, error) {
	return l.tx.QueryContext(l.ctx, statement, args...)
}

func (l *loader) load() error {
	var version int64
	var project work.ProjectID
	var story work.StoryID
	row := l.tx.QueryRowContext(l.ctx, loadTree, string(l.id))
	if err := row.Scan(&version, &project, &story); errors.Is(err, sql.ErrNoRows) {
		return unknown("tree", string(l.id))
	} else if err != nil {
		return err
	}
	if err := l.rows(); err != nil {
		return err
	}
	l.tree.Version = version
	return l.around(project, story)
}

// rows reads what belongs to the tree itself.
func (l *loader) rows() error {
	rows, err := l.query(loadTasks, string(l.id))
	tasks, err := collect(rows, err, scanTask)
	if err != nil {
		return err
	}
	rows, err = l.query(loadExecutions, string(l.id))
	executions, err := collect(rows, err, scanExecution)
	if err != nil {
		return err
	}
	rows, err = l.query(loadMerges, string(l.id))
	merges, err := collect(rows, err, scanMerge)
	if err != nil {
		return err
	}
	l.tree = work.NewTree(l.id, tasks, executions, merges)
	return nil
}

// around reads what the tree's decisions look at besides.
func (l *loader) around(project work.ProjectID, story work.StoryID) error {
	rows, err := l.query(selectProject, string(project))
	p, found, err := first(collect(rows, err, scanProject))
	if err != nil {
		return err
	}
	l.tree.Project = work.Project{ID: project}
	if found {
		l.tree.Project = *p
	}
	if story != "" {
		rows, err := l.query(selectStory, string(story))
		if l.tree.Story, _, err = first(collect(rows, err, scanStory)); err != nil {
			return err
		}
	}
	rows, err = l.query(loadOuter, string(l.id))
	outer, err := collect(rows, err, scanSummary)
	for _, sum := range outer {
		l.tree.Outer[work.Position(sum.ID)] = sum
	}
	return err
}

// Refresh reads again what others decide: the project, when it has changed,
// and Outer, when the root depends on other trees.
func (s *Store) Refresh(ctx context.Context, tree *work.Tree) error {
	doing := fmt.Sprintf("refresh tree %s", tree.ID)
	rows, err := s.read.QueryContext(ctx, selectProject+` AND version <> $2`, string(tree.Project.ID), tree.Project.Version)
	p, changed, err := first(collect(rows, err, scanProject))
	if err != nil {
		return mapped(doing, err)
	}
	if changed {
		tree.Project = *p
	}
	root := tree.Current(tree.Root())
	if root == nil {
		return nil
	}
	outside := root.Outside()
	if len(outside) == 0 && len(tree.Outer) == 0 {
		return nil
	}
	outer, err := s.Outer(ctx, outside)
	if err != nil {
		return err
	}
	tree.Outer = outer
	return nil
}

// Outer reads the summaries of other trees, by position; missing ones are left
// out.
func (s *Store) Outer(ctx context.Context, positions []work.Position) (map[work.Position]work.Outer, error) {
	out := map[work.Position]work.Outer{}
	if len(positions) == 0 {
		return out, nil
	}
	rows, err := s.read.QueryContext(ctx, `SELECT `+summaryColumns+` FROM trees r WHERE r.id IN (`+holders(1, len(positions))+`)`, anys(positions)...)
	summaries, err := collect(rows, err, scanSummary)
	for _, sum := range summaries {
		out[work.Position(sum.ID)] = sum
	}
	return out, mapped("read other trees", err)
}

// Reach reads the cross-tree dependency graph from some positions on, and its
// version: the version first, so that a graph that is newer than it makes the
// commit look again, never the other way round.
func (s *Store) Reach(ctx context.Context, from []work.Position) (map[work.Position][]work.Position, int64, error) {
	const doing = "read the dependencies between trees"
	var version int64
	if err := s.read.QueryRowContext(ctx, `SELECT value FROM counters WHERE name = 'edges'`).Scan(&version); err != nil {
		return nil, 0, mapped(doing, err)
	}
	reach := map[work.Position][]work.Position{}
	if len(from) == 0 {
		return reach, version, nil
	}
	rows, err := s.read.QueryContext(ctx, `WITH RECURSIVE reach (tree_id, position) AS (
			SELECT tree_id, position FROM edges WHERE tree_id IN (`+holders(1, len(from))+`)
			UNION SELECT e.tree_id, e.position FROM edges e JOIN reach r ON e.tree_id = r.position)
		SELECT tree_id, position FROM reach ORDER BY tree_id, position`, anys(from)...)
	type edge struct{ from, to work.Position }
	edges, err := collect(rows, err, func(row scanner) (e edge, err error) { return e, row.Scan(&e.from, &e.to) })
	for _, e := range edges {
		reach[e.from] = append(reach[e.from], e.to)
	}
	return reach, version, mapped(doing, err)
}
