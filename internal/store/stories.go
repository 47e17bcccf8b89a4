package store

import (
	"context"
	"fmt"

	"github.com/claudomator/claudomator/internal/work"
)

// storyColumns are read from stories t.
const storyColumns = `t.name, t.goal, t.body`

func scanStory(row scanner) (*work.Story, error) {
	story := &work.Story{}
	var name, goal, body string
	if err := row.Scan(&name, &goal, &body); err != nil {
		return nil, err
	}
	err := decode(body, story)
	story.Name, story.Goal = name, goal
	return story, err
}

// upsertStory gives a story to its tree; another tree's is left alone.
const upsertStory = `INSERT INTO stories (id, tree_id, project_id, epic_id, status, name, goal, branch, is_over, created_at, body)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (id) DO UPDATE SET epic_id = excluded.epic_id, status = excluded.status, name = excluded.name, goal = excluded.goal,
	branch = excluded.branch, is_over = excluded.is_over, body = excluded.body
WHERE stories.tree_id = excluded.tree_id`

func storyArguments(story *work.Story, tree work.TreeID) ([]any, error) {
	rest := *story
	rest.Name, rest.Goal = "", "" // in columns
	text, err := encode(&rest)
	over := story.Status.Over()
	return []any{
		string(story.ID), string(tree), string(story.ProjectID), string(story.EpicID), string(story.Status), story.Name, story.Goal,
		story.BranchName, bit(over), micros(story.CreatedAt), text,
	}, err
}

const (
	selectStory    = `SELECT ` + storyColumns + ` FROM stories t WHERE t.id = $1`
	selectBranches = `SELECT branch, id FROM stories
		WHERE project_id = $1 AND is_over = 0 AND branch <> '' ORDER BY created_at DESC, id DESC`
	countStories = `SELECT epic_id, status, COUNT(*) FROM stories WHERE epic_id <> '' GROUP BY epic_id, status`
	countEpic    = `SELECT epic_id, status, COUNT(*) FROM stories WHERE epic_id = $1 AND epic_id <> '' GROUP BY epic_id, status`
)

// Story finds a story by its id, its name, or the beginning of its id.
func (s *Store) Story(ctx context.Context, ref string) (*work.Story, error) {
	id, err := s.named(ctx, "story", ref,
		`SELECT id, name FROM stories WHERE id >= $1 AND id < $2 ORDER BY id LIMIT 6`,
		`SELECT id, name FROM stories WHERE name = $1 ORDER BY id LIMIT 6`)
	if err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, selectStory, id)
	return single("story", ref, rows, err, scanStory)
}

// Stories is one page of stories, newest first. A filter by text reads the
// stories that the other filters leave, until the page is full.
func (s *Store) Stories(ctx context.Context, f work.StoryFilter) (work.Page[*work.Story], error) {
	query, args, err := storyQuery(f)
	if err != nil {
		return work.Page[*work.Story]{}, err
	}
	rows, err := s.read.QueryContext(ctx, query, args...)
	stories, err := collect(rows, err, scanStory)
	return pageOf(stories, f.Limit, func(y *work.Story) string { return cursorAt(y.CreatedAt, string(y.ID)) }), mapped("list stories", err)
}

func storyQuery(f work.StoryFilter) (string, []any, error) {
	c := conditions{}
	c.equal("t.project_id", string(f.Project))
	c.equal("t.epic_id", string(f.Epic))
	if err := c.search(f.Text, "t.name", "t.goal"); err != nil {
		return "", nil, err
	}
	return c.page(storyColumns, "stories", "status", spelled(f.Statuses), f.After, f.Limit)
}

// Branches lists the branch names that a project's stories have which are not
// over, with the stories' ids; of two with one branch, the older.
func (s *Store) Branches(ctx context.Context, project work.ProjectID) (map[string]work.StoryID, error) {
	type branch struct {
		name  string
		story work.StoryID
	}
	rows, err := s.read.QueryContext(ctx, selectBranches, string(project))
	list, err := collect(rows, err, func(row scanner) (b branch, err error) { return b, row.Scan(&b.name, &b.story) })
	taken := map[string]work.StoryID{}
	for _, b := range list {
		taken[b.name] = b.story
	}
	return taken, mapped("list branches", err)
}

// Epics lists the epics by name, with their stories counted by status. It reads
// an index of all stories that belong to one.
func (s *Store) Epics(ctx context.Context) ([]work.EpicProgress, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT id, name, created_at FROM epics ORDER BY name`)
	epics, err := collect(rows, err, scanEpic)
	if err != nil {
		return nil, mapped("list epics", err)
	}
	return epics, s.progress(ctx, epics, countStories)
}

// Epic finds an epic by its id, its name, or the beginning of its id.
func (s *Store) Epic(ctx context.Context, ref string) (*work.EpicProgress, error) {
	id, err := s.named(ctx, "epic", ref,
		`SELECT id, name FROM epics WHERE id >= $1 AND id < $2 ORDER BY id LIMIT 6`,
		`SELECT id, name FROM epics WHERE name = $1`)
	if err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, `SELECT id, name, created_at FROM epics WHERE id = $1`, id)
	epic, err := single("epic", ref, rows, err, scanEpic)
	if err != nil {
		return nil, err
	}
	return &epic, s.progress(ctx, []work.EpicProgress{epic}, countEpic, id)
}

func scanEpic(row scanner) (work.EpicProgress, error) {
	e := work.EpicProgress{Stories: map[work.StoryStatus]int{}}
	var created int64
	err := row.Scan(&e.ID, &e.Name, &created)
	e.CreatedAt = instant(created)
	return e, err
}

// progress fills in how many stories of each status the epics have.
func (s *Store) progress(ctx context.Context, epics []work.EpicProgress, count string, args ...any) error {
	type group struct {
		epic   work.EpicID
		status work.StoryStatus
		n      int
	}
	rows, err := s.read.QueryContext(ctx, count, args...)
	groups, err := collect(rows, err, func(row scanner) (g group, err error) { return g, row.Scan(&g.epic, &g.status, &g.n) })
	of := map[work.EpicID]map[work.StoryStatus]int{}
	for _, e := range epics {
		of[e.ID] = e.Stories
	}
	for _, g := range groups {
		if stories := of[g.epic]; stories != nil { // made since the epics were read
			stories[g.status] = g.n
		}
	}
	return mapped("count the stories of epics", err)
}

// SaveEpic adds an epic, or renames it. Conflict with reason "name_taken" when
// another has its name.
func (s *Store) SaveEpic(ctx context.Context, e work.Epic) error {
	err := s.change(ctx, fmt.Sprintf("save epic %q", e.Name), func(t *transaction) error {
		_, err := t.exec(`INSERT INTO epics (id, name, created_at) VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET name = excluded.name`,
			string(e.ID), e.Name, micros(e.CreatedAt))
		return err
	})
	if known, ok := work.AsError(err); ok && known.Reason == "exists" { // the one unique index besides the id
		return work.Errorf(work.Conflict, "there is an epic named %q", e.Name).WithReason("name_taken").WithHint("choose another name")
	}
	return err
}
