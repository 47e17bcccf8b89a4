package store

import (
	"context"
	"time"

	"github.com/claudomator/claudomator/internal/work"
)

// OpenTrees lists the trees in which something may still happen by itself.
func (s *Store) OpenTrees(ctx context.Context) ([]work.TreeID, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT id FROM trees WHERE is_open = 1 ORDER BY id`)
	trees, err := collect(rows, err, text[work.TreeID])
	return trees, mapped("list open trees", err)
}

// DueTrees lists the trees in which something is due by now, most overdue
// first, and the next later instant at which something will be (zero: none).
func (s *Store) DueTrees(ctx context.Context, now time.Time) (due []work.TreeID, next time.Time, err error) {
	const doing = "list due trees"
	rows, err := s.read.QueryContext(ctx, `SELECT id FROM trees WHERE wake_at > 0 AND wake_at <= $1 ORDER BY wake_at, id`, now.UnixMicro())
	if due, err = collect(rows, err, text[work.TreeID]); err != nil {
		return nil, time.Time{}, mapped(doing, err)
	}
	row := s.read.QueryRowContext(ctx, `SELECT COALESCE(MIN(wake_at), 0) FROM trees WHERE wake_at > 0 AND wake_at > $1`, now.UnixMicro())
	var wake int64
	if err := row.Scan(&wake); err != nil {
		return nil, time.Time{}, mapped(doing, err)
	}
	return due, instant(wake), nil
}

// selectWaiting takes the first of two ordered indices: tasks that wait for a
// slot, and runs that are not the task's own ([work.ExecutionKind.Own]). Neither
// grows with finished work. What waits behind a run in the same place that has
// not ended yet cannot start.
const (
	selectWaiting = `SELECT execution, task, tree_id, project_id, agent, patience, since FROM (
		SELECT * FROM (SELECT x.id AS execution, t.id AS task, t.tree_id, t.project_id,
				CASE x.kind WHEN 'agent' THEN t.agent ELSE '' END AS agent, t.patience, t.queued_at AS since
			FROM tasks t JOIN executions x ON x.id = t.current_execution
			WHERE t.state = 'QUEUED' AND t.blocked_on = 'slot' AND x.state = 'queued' AND ` + noneRuns + `
			ORDER BY t.queued_at + t.patience, t.id LIMIT $1) AS slots
		UNION ALL
		SELECT * FROM (SELECT x.id AS execution, t.id AS task, t.tree_id, t.project_id, '' AS agent, t.patience, x.created_at AS since
			FROM executions x JOIN tasks t ON t.id = x.task_id
			WHERE x.state = 'queued' AND x.kind IN ` + elsewhere + ` AND ` + noneRuns + `
			ORDER BY x.created_at + t.patience, t.id LIMIT $1) AS others
		) AS waiting ORDER BY since + patience, task LIMIT $1`
	noneRuns = `NOT EXISTS (SELECT 1 FROM executions y WHERE y.task_id = x.task_id AND (y.kind IN ` + elsewhere + `) = (x.kind IN ` + elsewhere + `) AND y.state = 'running')`
	// elsewhere are the kinds that do not run in the task's own workspace.
	elsewhere = `('gates', 'deploy', 'smoke')`
)

// Waiting lists executions that could start now, in the order of their age less
// their priority's patience ([work.Priority.Patience]).
func (s *Store) Waiting(ctx context.Context, limit int) ([]work.Waiting, error) {
	rows, err := s.read.QueryContext(ctx, selectWaiting, limit)
	waiting, err := collect(rows, err, func(row scanner) (w work.Waiting, err error) {
		var patience, since int64
		if err := row.Scan(&w.Execution, &w.Task, &w.Tree, &w.Project, &w.Agent, &patience, &since); err != nil {
			return w, err
		}
		for _, p := range work.Priorities() {
			if p.Patience().Microseconds() == patience {
				w.Priority = p
			}
		}
		w.Since = instant(since)
		return w, nil
	})
	return waiting, mapped("list waiting executions", err)
}

// Held lists running executions of a node, or, when node is empty, of any node
// whose lease has expired by now.
func (s *Store) Held(ctx context.Context, node string, now time.Time) ([]work.Execution, error) {
	const running = `SELECT ` + executionColumns + ` FROM executions x JOIN tasks t ON t.id = x.task_id WHERE x.state = 'running' AND `
	query, arg := running+`x.node = $1 ORDER BY x.created_at, x.id`, any(node)
	if node == "" {
		query, arg = running+`x.lease_until <= $1 ORDER BY x.created_at, x.id`, micros(now)
	}
	rows, err := s.read.QueryContext(ctx, query, arg)
	held, err := collect(rows, err, func(row scanner) (work.Execution, error) {
		x, err := scanExecution(row)
		if err != nil {
			return work.Execution{}, err
		}
		return *x, nil
	})
	return held, mapped("list held executions", err)
}

// RenewLeases moves the lease of every running execution of a node. It is the
// one write to a tree's rows beside Commit: a lease is no decision, and changes no
// version.
func (s *Store) RenewLeases(ctx context.Context, node string, until time.Time) error {
	return s.change(ctx, "renew leases", func(t *transaction) error {
		_, err := t.exec(`UPDATE executions SET lease_until = $1 WHERE state = 'running' AND node = $2`, micros(until), node)
		return err
	})
}
