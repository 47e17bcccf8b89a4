package store

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/claudomator/claudomator/internal/work"
)

// How rows are spelled. A row's columns are what queries ask for; everything
// else is in its JSON, so that a new field of the domain needs no migration.

// encode spells values as JSON, for rows; texts that are not UTF-8 are mended.
func encode(value any) (string, error) {
	b, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("encode %T: %w", value, err)
	}
	return string(b), nil
}

func decode(text string, value any) error {
	if err := json.Unmarshal([]byte(text), value); err != nil {
		return fmt.Errorf("decode %T: %w", value, err)
	}
	return nil
}

const taskColumns = `t.tree_id, t.name, t.description, t.body, t.book`

func scanTask(row scanner) (*work.Task, error) {
	t := &work.Task{}
	var tree work.TreeID
	var name, description, body, book string
	if err := row.Scan(&tree, &name, &description, &body, &book); err != nil {
		return nil, err
	}
	if err := decode(body, t); err != nil {
		return nil, err
	}
	if err := decode(book, &t.Book); err != nil {
		return nil, err
	}
	t.TreeID, t.Name, t.Description = tree, name, description
	return t, nil
}

// upsertTask leaves alone what rarely changes, see placeTask: an index is
// written for each column that is set, changed or not.
const upsertTask = `INSERT INTO tasks (id, tree_id, parent_id, story_id, project_id, top, created_at, shown, state, blocked_on, patience,
	current_execution, queued_at, agent, name, tags, body, book, description)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, blocked_on = excluded.blocked_on, patience = excluded.patience,
	current_execution = excluded.current_execution, agent = excluded.agent, tags = excluded.tags, body = excluded.body,
	book = excluded.book, description = excluded.description,
	queued_at = CASE WHEN excluded.queued_at = 0 THEN tasks.queued_at ELSE excluded.queued_at END
WHERE tasks.tree_id = $20`

// placeTask follows a task to where lists find it, when that has changed: it
// was superseded, renamed, or moved to a tree of its own.
const placeTask = `UPDATE tasks SET tree_id = $1, parent_id = $2, story_id = $3, project_id = $4, top = $5, created_at = $6, shown = $7, name = $8
WHERE id = $9 AND NOT (tree_id = $1 AND parent_id = $2 AND story_id = $3 AND project_id = $4 AND top = $5 AND created_at = $6 AND shown = $7 AND name = $8)`

// taskArguments are those of upsertTask and of placeTask, for a commit to tree.
// queuedAt is when the task's current execution was queued, where this commit
// does that.
func taskArguments(t *work.Task, tree work.TreeID, queuedAt int64) (upsert, place []any, err error) {
	rest := *t
	rest.Name, rest.Description, rest.TreeID = "", "", "" // in columns
	body, err := encode(&rest)
	if err != nil {
		return nil, nil, err
	}
	book, err := encode(&t.Book)
	if err != nil {
		return nil, nil, err
	}
	tags, err := encode(t.Tags)
	if err != nil {
		return nil, nil, err
	}
	id, name, created := string(t.ID), t.Name, micros(t.CreatedAt)
	belongs := []any{string(t.TreeID), string(t.ParentTaskID), string(t.StoryID), string(t.ProjectID)}
	top, shown := bit(t.ParentTaskID == "" && !t.Apart()), bit(t.SupersededBy == "" && !t.Apart())
	upsert = slices.Concat([]any{id}, belongs, []any{
		top, created, shown, string(t.State), string(t.BlockedOn), t.Priority.Patience().Microseconds(), string(t.Book.Current), queuedAt,
		t.Agent.Type, name, tags, body, book, t.Description, string(tree),
	})
	return upsert, slices.Concat(belongs, []any{top, created, shown, name, id}), nil
}

// executionBody is an execution with what its own JSON hides from surfaces,
// but for what has a column.
type executionBody struct {
	*work.Execution
	Stopping work.Outcome   `json:"stopping,omitempty"`
	Round    int            `json:"round,omitempty"`
	Commit   string         `json:"commit,omitempty"`
	Reported *work.Verdict  `json:"reported,omitempty"`
	Asked    *work.Question `json:"asked,omitempty"`
	Spec     work.AgentSpec `json:"spec"`
}

// executionColumns are read from executions x joined with their tasks t.
const executionColumns = `t.tree_id, x.fence, x.lease_until, x.job_id, x.token_hash, x.body`

func scanExecution(row scanner) (*work.Execution, error) {
	x := &work.Execution{}
	var tree work.TreeID
	var fence, lease, job int64
	var hash, text string
	if err := row.Scan(&tree, &fence, &lease, &job, &hash, &text); err != nil {
		return nil, err
	}
	body := executionBody{Execution: x}
	if err := decode(text, &body); err != nil {
		return nil, err
	}
	x.Stopping, x.Round, x.Commit, x.Reported, x.Asked, x.Spec = body.Stopping, body.Round, body.Commit, body.Reported, body.Asked, body.Spec
	x.TreeID, x.Fence, x.LeaseUntil, x.JobID, x.TokenHash = tree, fence, instant(lease), job, hash
	return x, nil
}

// upsertExecution keeps the later lease of one run: leases are renewed beside
// the tree, and a decision may have been made on an older one.
const upsertExecution = `INSERT INTO executions (id, task_id, kind, number, state, agent, node, fence, lease_until, job_id, token_hash,
	cost_usd, created_at, body)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
ON CONFLICT (id) DO UPDATE SET state = excluded.state, agent = excluded.agent, node = excluded.node, fence = excluded.fence,
	job_id = excluded.job_id, token_hash = excluded.token_hash, cost_usd = excluded.cost_usd, body = excluded.body,
	lease_until = CASE WHEN executions.fence = excluded.fence AND executions.lease_until > excluded.lease_until
		THEN executions.lease_until ELSE excluded.lease_until END
WHERE executions.task_id = excluded.task_id`

func executionArguments(x *work.Execution) ([]any, error) {
	text, err := encode(executionBody{x, x.Stopping, x.Round, x.Commit, x.Reported, x.Asked, x.Spec})
	if err != nil {
		return nil, err
	}
	return []any{
		string(x.ID), string(x.TaskID), string(x.Kind), int64(x.Number), string(x.State), x.Agent, x.Node, x.Fence,
		micros(x.LeaseUntil), x.JobID, x.TokenHash, x.CostUSD, micros(x.CreatedAt), text,
	}, nil
}

// mergeBody is a merge with what its own JSON hides.
type mergeBody struct {
	*work.Merge
	Accepting bool       `json:"accepting,omitempty"`
	By        work.Actor `json:"by"`
}

// mergeColumns are read from merges m joined with their tasks t.
const mergeColumns = `t.tree_id, m.body`

func scanMerge(row scanner) (*work.Merge, error) {
	m := &work.Merge{}
	var tree work.TreeID
	var text string
	if err := row.Scan(&tree, &text); err != nil {
		return nil, err
	}
	body := mergeBody{Merge: m}
	if err := decode(text, &body); err != nil {
		return nil, err
	}
	m.TreeID, m.Accepting, m.By = tree, body.Accepting, body.By
	return m, nil
}

const upsertMerge = `INSERT INTO merges (id, task_id, status, created_at, body) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (id) DO UPDATE SET status = excluded.status, body = excluded.body WHERE merges.task_id = excluded.task_id`

func mergeArguments(m *work.Merge) ([]any, error) {
	text, err := encode(mergeBody{m, m.Accepting, m.By})
	return []any{string(m.ID), string(m.TaskID), string(m.Status), micros(m.CreatedAt), text}, err
}

// scanBody reads a row that is all JSON.
func scanBody[T any](row scanner) (*T, error) {
	item := new(T)
	var body string
	if err := row.Scan(&body); err != nil {
		return nil, err
	}
	return item, decode(body, item)
}

const summaryColumns = `r.id, r.project_id, r.story_id, r.current_task, r.state, r.head, r.accepted, r.landed, r.is_open, r.wake_at, r.inbox`

func scanSummary(row scanner) (work.Summary, error) {
	var sum work.Summary
	var landed, open, wake int64
	var inbox string
	if err := row.Scan(&sum.ID, &sum.ProjectID, &sum.StoryID, &sum.Current, &sum.State, &sum.Head, &sum.Accepted, &landed, &open, &wake, &inbox); err != nil {
		return sum, err
	}
	sum.Landed, sum.Open, sum.WakeAt = landed == 1, open == 1, instant(wake)
	if inbox == "" {
		return sum, nil
	}
	return sum, decode(inbox, &sum.Inbox)
}

// summaryArguments are those of insertTree and updateTree, after the id.
func summaryArguments(sum work.Summary) ([]any, error) {
	inbox := ""
	if len(sum.Inbox) > 0 {
		var err error
		if inbox, err = encode(sum.Inbox); err != nil {
			return nil, err
		}
	}
	return []any{
		string(sum.ProjectID), string(sum.StoryID), string(sum.Current), string(sum.State), sum.Head, sum.Accepted,
		bit(sum.Landed), bit(sum.Open), micros(sum.WakeAt), inbox,
	}, nil
}

const insertEvent = `INSERT INTO events (seq, at, actor_kind, actor_id, tree_id, task_id, kind, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

func eventArguments(e work.Event) ([]any, error) {
	text := ""
	if len(e.Body) > 0 {
		var err error
		if text, err = encode(e.Body); err != nil {
			return nil, err
		}
	}
	return []any{e.Seq, micros(e.At), string(e.Actor.Kind), e.Actor.ID, string(e.Tree), string(e.Task), e.Kind, text}, nil
}

const eventColumns = `seq, at, actor_kind, actor_id, tree_id, task_id, kind, body`

func scanEvent(row scanner) (work.Event, error) {
	var e work.Event
	var at int64
	var body string
	if err := row.Scan(&e.Seq, &at, &e.Actor.Kind, &e.Actor.ID, &e.Tree, &e.Task, &e.Kind, &body); err != nil {
		return e, err
	}
	e.At = instant(at)
	if body == "" {
		return e, nil
	}
	return e, decode(body, &e.Body)
}
