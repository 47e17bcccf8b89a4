package store

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
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
	query, args, err := taskQuery(f)
	if err != nil {
		return work.Page[*work.Task]{}, err
	}
	rows, err := s.read.QueryContext(ctx, query, args...)
	tasks, err := collect(rows, err, scanTask)
	return pageOf(tasks, f.Limit, func(t *work.Task) string { return cursorAt(t.CreatedAt, string(t.ID)) }), mapped("list tasks", err)
}

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
	if err := c.search(f.Text, "t.name", "t.description"); err != nil {
		return "", nil, err
	}
	if err := c.tag(f.Tag); err != nil {
		return "", nil, err
	}
	return c.page(taskColumns, "tasks", "state", spelled(f.States), f.After, f.Limit)
}

// spelled makes texts of states.
func spelled[T ~string](states []T) []string {
	out := make([]string, len(states))
	for i, s := range states {
		out[i] = string(s)
	}
	return out
}

// pageSize is how many items a page of a limit has.
func pageSize(limit int) int {
	if limit == 0 {
		return defaultPage
	}
	return limit
}

// pageOf makes a page of what a query of conditions.page gave: one more than
// the page has was read, to know whether there is more.
func pageOf[T any](items []T, limit int, cursor func(T) string) work.Page[T] {
	n := pageSize(limit)
	if len(items) <= n {
		return work.Page[T]{Items: items}
	}
	return work.Page[T]{Items: items[:n], Next: cursor(items[n-1])}
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

// search looks for a text in any of some columns, whatever its case.
func (c *conditions) search(text string, columns ...string) error {
	if len(text) > longestText || !storable(text) {
		return badText()
	}
	if text == "" {
		return nil
	}
	pattern := "%" + escapeLike(text) + "%"
	var terms []string
	var args []any
	for _, column := range columns {
		terms, args = append(terms, `LOWER(`+column+`) LIKE LOWER(?) ESCAPE '\'`), append(args, pattern)
	}
	c.add(`(`+strings.Join(terms, ` OR `)+`)`, args...)
	return nil
}

func (c *conditions) tag(tag string) error {
	if !storable(tag) {
		return badText()
	}
	if tag == "" {
		return nil
	}
	quoted, err := json.Marshal(tag)
	if err != nil {
		return work.Errorf(work.Internal, "encode tag: %w", err)
	}
	c.add(`t.tags LIKE ? ESCAPE '\'`, "%"+escapeLike(string(quoted))+"%")
	return nil
}

func badText() error {
	return work.Errorf(work.Invalid, "the text to look for is not one, or longer than %d bytes", longestText)
}

// page spells the query for a page of a table's rows t, newest first. Each
// state is a query of its own, ordered and limited by its index, and the page
// is the first of all of them: one query for several states would read and
// sort everything that was ever in them.
func (c conditions) page(columns, table, state string, states []string, after string, limit int) (string, []any, error) {
	if limit < 0 || limit > largestPage {
		return "", nil, work.Errorf(work.Invalid, "limit is %d, it must be 1 to %d", limit, largestPage)
	}
	if err := c.after(after); err != nil {
		return "", nil, err
	}
	from := ` FROM ` + table + ` t`
	order := fmt.Sprintf(` ORDER BY t.created_at DESC, t.id DESC LIMIT %d`, pageSize(limit)+1)
	if len(states) == 0 {
		return `SELECT ` + columns + from + c.where() + order, c.args, nil
	}
	var arms []string
	for _, one := range states {
		arm := c
		arm.equal("t."+state, one)
		c.args = arm.args
		arms = append(arms, `SELECT * FROM (SELECT `+columns+`, t.created_at, t.id`+from+arm.where()+order+`) AS s`+strconv.Itoa(len(arms)))
	}
	return `SELECT ` + columns + ` FROM (` + strings.Join(arms, ` UNION ALL `) + `) AS t` + order, c.args, nil
}

func (c *conditions) where() string {
	if len(c.terms) == 0 {
		return ""
	}
	return ` WHERE ` + strings.Join(c.terms, ` AND `)
}

// after begins behind the last item of the page before.
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

func cursorAt(created time.Time, id string) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d/%s", micros(created), id))
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

// Stats counts the current attempts by state (no superseded ones, none apart
// from the work), and executions with their cost. It reads an index of each.
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
