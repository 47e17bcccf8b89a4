package store

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/claudomator/claudomator/internal/work"
)

const (
	defaultPage = 50
	largestPage = 500
	longestText = 1000 // of a text that is looked for
)

// Tasks is one page of tasks, newest first. A filter by text or tag reads the
// tasks that the other filters leave, until the page is full.
func (s *Store) Tasks(ctx context.Context, f work.TaskFilter) (work.Page[*work.Task], error) {
	var page work.Page[*work.Task]
	if f.Limit == 0 {
		f.Limit = defaultPage
	}
	if f.Limit < 0 || f.Limit > largestPage {
		return page, work.Errorf(work.Invalid, "limit is %d, it must be 1 to %d", f.Limit, largestPage)
	}
	query, args, err := taskQuery(f)
	if err != nil {
		return page, err
	}
	rows, err := s.read.QueryContext(ctx, query, args...)
	if page.Items, err = collect(rows, err, scanTask); err != nil {
		return page, mapped("list tasks", err)
	}
	if len(page.Items) > f.Limit { // one more was read, to know whether there is more
		page.Items = page.Items[:f.Limit]
		page.Next = cursorAfter(page.Items[f.Limit-1])
	}
	return page, nil
}

// taskQuery spells a filter. Each state is a query of its own, ordered and
// limited by its index, and the page is the first of all of them: one query
// for several states would read and sort everything that was ever in them.
func taskQuery(f work.TaskFilter) (string, []any, error) {
	c := conditions{}
	c.equal("t.project_id", string(f.Project))
	c.equal("t.tree_id", string(f.Tree))
	c.equal("t.parent_id", string(f.Parent))
	c.equal("t.story_id", string(f.Story))
	if !f.All {
		c.add("t.shown = 1")
	}
	if f.TopLevel {
		c.add("t.top = 1")
	}
	if err := c.search(f); err != nil {
		return "", nil, err
	}
	if err := c.after(f.After); err != nil {
		return "", nil, err
	}
	const columns = taskColumns + `, t.created_at, t.id`
	order := fmt.Sprintf(` ORDER BY t.created_at DESC, t.id DESC LIMIT %d`, f.Limit+1)
	var arms []string
	for _, state := range f.States {
		arm := c
		arm.equal("t.state", string(state))
		c.args = arm.args
		arms = append(arms, `SELECT * FROM (SELECT `+columns+` FROM tasks t`+arm.where()+order+`) AS s`+strconv.Itoa(len(arms)))
	}
	if len(arms) == 0 {
		return `SELECT ` + taskColumns + ` FROM tasks t` + c.where() + order, c.args, nil
	}
	return `SELECT ` + taskColumns + ` FROM (` + strings.Join(arms, ` UNION ALL `) + `) AS t` + order, c.args, nil
}

// conditions are the terms of a WHERE clause and their arguments.
type conditions struct {
	terms []string
	args  []any
}

func (c *conditions) add(term string, args ...any) {
	for range args {
		term = strings.Replace(term, "?", "$"+strconv.Itoa(len(c.args)+1), 1)
		c.args = append(c.args, args[0])
		args = args[1:]
	}
	c.terms = append(c.terms[:len(c.terms):len(c.terms)], term)
}

// equal filters by a column, when there is a value. That the column is not
// empty is said as well: partial indices are chosen by it.
func (c *conditions) equal(column, value string) {
	if value != "" {
		c.add(column+" = ? AND "+column+" <> ''", value)
	}
}

func (c *conditions) search(f work.TaskFilter) error {
	if len(f.Text) > longestText || !storable(f.Text) || !storable(f.Tag) {
		return work.Errorf(work.Invalid, "the text to look for is not one, or longer than %d bytes", longestText)
	}
	if f.Text != "" {
		pattern := "%" + escapeLike(f.Text) + "%"
		c.add(`(LOWER(t.name) LIKE LOWER(?) ESCAPE '\' OR LOWER(t.description) LIKE LOWER(?) ESCAPE '\')`, pattern, pattern)
	}
	if f.Tag != "" {
		quoted, err := json.Marshal(f.Tag)
		if err != nil {
			return work.Errorf(work.Internal, "encode tag: %w", err)
		}
		c.add(`t.tags LIKE ? ESCAPE '\'`, "%"+escapeLike(string(quoted))+"%")
	}
	return nil
}

func (c *conditions) where() string {
	if len(c.terms) == 0 {
		return ""
	}
	return ` WHERE ` + strings.Join(c.terms, ` AND `)
}

// after begins behind the last task of the page before.
func (c *conditions) after(cursor string) error {
	if cursor == "" {
		return nil
	}
	created, id, err := readCursor(cursor)
	if err != nil {
		return work.Errorf(work.Invalid, "the cursor is not one: %w", err).WithReason("cursor").WithHint("pass the cursor of the page before as it is, or none")
	}
	c.add(`(t.created_at, t.id) < (?, ?)`, created, id)
	return nil
}

func cursorAfter(t *work.Task) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d/%s", micros(t.CreatedAt), t.ID))
}

func readCursor(cursor string) (created int64, id string, err error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return 0, "", err
	}
	number, id, _ := strings.Cut(string(b), "/")
	if created, err = strconv.ParseInt(number, 10, 64); err != nil {
		return 0, "", err
	}
	if !storable(id) {
		return 0, "", fmt.Errorf("%q is no id", id)
	}
	return created, id, nil
}

// storable is false for what Postgres does not take as text.
func storable(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

func escapeLike(text string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)
}

// Executions lists a task's executions, oldest first.
func (s *Store) Executions(ctx context.Context, task work.TaskID) ([]*work.Execution, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT `+executionColumns+` FROM executions x JOIN tasks t ON t.id = x.task_id
		WHERE x.task_id = $1 ORDER BY x.number, x.id`, string(task))
	list, err := collect(rows, err, scanExecution)
	return list, mapped("list executions", err)
}

// maxMerges is how many landings a list shows.
const maxMerges = 500

// Merges lists landings, newest first: of one task, or the newest of all.
func (s *Store) Merges(ctx context.Context, task work.TaskID) ([]*work.Merge, error) {
	c := conditions{}
	c.equal("m.task_id", string(task))
	rows, err := s.read.QueryContext(ctx, fmt.Sprintf(`SELECT %s FROM merges m JOIN tasks t ON t.id = m.task_id%s
		ORDER BY m.created_at DESC, m.id LIMIT %d`, mergeColumns, c.where(), maxMerges), c.args...)
	list, err := collect(rows, err, scanMerge)
	return list, mapped("list merges", err)
}

// Events lists events after seq in commit order, of one tree or task when set;
// at most limit.
func (s *Store) Events(ctx context.Context, after int64, tree work.TreeID, task work.TaskID, limit int) ([]work.Event, error) {
	c := conditions{}
	c.add("seq > ?", after)
	c.equal("tree_id", string(tree))
	c.equal("task_id", string(task))
	rows, err := s.read.QueryContext(ctx, fmt.Sprintf(`SELECT %s FROM events%s ORDER BY seq LIMIT %d`, eventColumns, c.where(), limit), c.args...)
	events, err := collect(rows, err, scanEvent)
	return events, mapped("list events", err)
}

// LastSeq is the seq of the last committed event, 0 when there is none.
func (s *Store) LastSeq(ctx context.Context) (int64, error) {
	var seq int64
	err := s.read.QueryRowContext(ctx, `SELECT value FROM counters WHERE name = 'events'`).Scan(&seq)
	return seq, mapped("read the last seq", err)
}

// Inbox lists all that needs a person, tree by tree.
func (s *Store) Inbox(ctx context.Context) ([]work.Item, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT inbox FROM trees WHERE inbox <> '' ORDER BY id`)
	perTree, err := collect(rows, err, scanBody[[]work.Item])
	var items []work.Item
	for _, list := range perTree {
		items = append(items, *list...)
	}
	return items, mapped("list the inbox", err)
}

// Stats counts the current attempts by state (no superseded ones, no judging
// tasks), and executions with their cost. It reads an index of each.
func (s *Store) Stats(ctx context.Context) (work.Stats, error) {
	const doing = "count tasks and executions"
	stats := work.Stats{Tasks: map[work.State]int{}, Executions: map[work.ExecutionState]int{}}
	type count struct {
		state string
		n     int
		cost  float64
	}
	scan := func(row scanner) (c count, err error) { return c, row.Scan(&c.state, &c.n, &c.cost) }
	rows, err := s.read.QueryContext(ctx, `SELECT state, COUNT(*), 0.0 FROM tasks WHERE shown = 1 GROUP BY state`)
	tasks, err := collect(rows, err, scan)
	if err != nil {
		return stats, mapped(doing, err)
	}
	rows, err = s.read.QueryContext(ctx, `SELECT state, COUNT(*), SUM(cost_usd) FROM executions GROUP BY state`)
	executions, err := collect(rows, err, scan)
	for _, c := range tasks {
		stats.Tasks[work.State(c.state)] = c.n
	}
	for _, c := range executions {
		stats.Executions[work.ExecutionState(c.state)] = c.n
		stats.CostUSD += c.cost
	}
	return stats, mapped(doing, err)
}
