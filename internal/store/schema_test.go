package store_test

import (
	"database/sql"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/store/storetest"
	"github.com/claudomator/claudomator/internal/work"
)

// lines reads a query's rows as text, columns separated by a space.
func lines(t *testing.T, db *sql.DB, query string, args ...any) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for rows.Next() {
		values, targets := make([]string, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.Join(values, " "))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

// checks reads the values that each named constraint allows.
func checks(t *testing.T, s *store.Store) map[string][]string {
	t.Helper()
	query := `SELECT sql FROM sqlite_master WHERE type = 'table'`
	if s.Pool() != nil {
		query = `SELECT 'CONSTRAINT ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
			WHERE contype = 'c' AND connamespace = current_schema()::regnamespace`
	}
	constraint, value := regexp.MustCompile(`CONSTRAINT (\w+) (CHECK .*)`), regexp.MustCompile(`'(\w*)'`)
	found := map[string][]string{}
	for _, table := range lines(t, s.DB(), query) {
		for _, m := range constraint.FindAllStringSubmatch(table, -1) {
			for _, v := range value.FindAllStringSubmatch(m[2], -1) {
				found[m[1]] = append(found[m[1]], v[1])
			}
			slices.Sort(found[m[1]])
		}
	}
	return found
}

func spelled[T ~string](values []T) []string {
	var out []string
	for _, v := range values {
		out = append(out, string(v))
	}
	slices.Sort(out)
	return out
}

func TestChecksAreTheDomainsStates(t *testing.T) {
	t.Parallel()
	want := map[string][]string{
		"trees_state":      spelled(work.States()),
		"tasks_state":      spelled(work.States()),
		"executions_state": spelled(work.ExecutionStates()),
		"executions_kind":  spelled(work.ExecutionKinds()),
		"merges_status":    spelled(work.MergeStatuses()),
		"stories_status":   spelled(work.StoryStatuses()),
		"tokens_scope":     spelled([]work.Scope{work.ScopeAdmin, work.ScopeRead}),
	}
	for name, fresh := range databases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(want, checks(t, storetest.Open(t, fresh(t)))); diff != "" {
				t.Errorf("constraints differ (-domain +database):\n%s", diff)
			}
		})
	}
}

// TestRunsElsewhereAreTheDomains: the scheduler's statement names the kinds of
// execution that are not the task's own.
func TestRunsElsewhereAreTheDomains(t *testing.T) {
	t.Parallel()
	var want []string
	for _, kind := range work.ExecutionKinds() {
		if !kind.Own() {
			want = append(want, "'"+string(kind)+"'")
		}
	}
	if list := "(" + strings.Join(want, ", ") + ")"; store.Elsewhere != list {
		t.Errorf("the statement names %s, the domain %s", store.Elsewhere, list)
	}
}

func databases() map[string]func(testing.TB) store.Config {
	return map[string]func(testing.TB) store.Config{"sqlite": storetest.SQLite, "postgres": storetest.Postgres}
}

func TestBothDatabasesHaveOneSchema(t *testing.T) {
	t.Parallel()
	lite, pg := storetest.Open(t, storetest.SQLite(t)), storetest.Open(t, storetest.Postgres(t))
	if diff := cmp.Diff(storetest.Tables(t, lite), storetest.Tables(t, pg)); diff != "" {
		t.Errorf("tables differ (-sqlite +postgres):\n%s", diff)
	}
	liteColumns := lines(t, lite.DB(), `SELECT m.name, c.name, REPLACE(LOWER(c.type), 'integer', 'bigint'), CASE c."notnull" WHEN 1 THEN 'NO' ELSE 'YES' END
		FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name <> 'goose_db_version' AND m.name NOT LIKE 'sqlite_%'
		ORDER BY m.name, c.cid`)
	pgColumns := lines(t, pg.DB(), `SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name <> 'goose_db_version' ORDER BY table_name COLLATE "C", ordinal_position`)
	if diff := cmp.Diff(liteColumns, pgColumns); diff != "" {
		t.Errorf("columns differ (-sqlite +postgres):\n%s", diff)
	}
	liteIndices := lines(t, lite.DB(), `SELECT tbl_name, name FROM sqlite_master WHERE type = 'index' AND name NOT LIKE 'sqlite_autoindex%' ORDER BY 1, 2`)
	pgIndices := lines(t, pg.DB(), `SELECT tablename, indexname FROM pg_indexes WHERE schemaname = current_schema() AND indexname NOT LIKE '%_pkey'
		ORDER BY tablename COLLATE "C", indexname COLLATE "C"`)
	if diff := cmp.Diff(liteIndices, pgIndices); diff != "" {
		t.Errorf("indices differ (-sqlite +postgres):\n%s", diff)
	}
}

func TestMigrationsHaveEqualNames(t *testing.T) {
	t.Parallel()
	names := func(folder string) []string {
		entries, err := os.ReadDir(path.Join("migrations", folder))
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, e := range entries {
			out = append(out, e.Name())
		}
		return out
	}
	if diff := cmp.Diff(names("sqlite"), names("postgres")); diff != "" {
		t.Errorf("migrations differ (-sqlite +postgres):\n%s", diff)
	}
}

// plan is how SQLite carries out a query, step by step.
func plan(t *testing.T, s *store.Store, query string, args ...any) string {
	t.Helper()
	return strings.Join(lines(t, s.DB(), `EXPLAIN QUERY PLAN `+query, args...), "\n")
}

// goesBy is true where a plan reads by an index, and sorts no more than the
// merged pages of several states.
func goesBy(steps, index string, states int) bool {
	sorts := strings.Count(steps, "TEMP B-TREE")
	return (strings.Contains(steps, "INDEX "+index+" ") || strings.HasSuffix(steps, "INDEX "+index)) && sorts <= min(1, states)
}

// TestListsReadAnIndex: no list may walk or sort all tasks, however many.
func TestListsReadAnIndex(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	states := []work.State{work.Queued, work.Ready}
	for _, c := range []struct {
		filter work.TaskFilter
		index  string
	}{
		{work.TaskFilter{}, "tasks_shown"},
		{work.TaskFilter{All: true}, "tasks_all"},
		{work.TaskFilter{TopLevel: true}, "tasks_top"},
		{work.TaskFilter{Project: "p"}, "tasks_project"},
		{work.TaskFilter{Project: "p", TopLevel: true}, "tasks_project_top"},
		{work.TaskFilter{States: states}, "tasks_state_shown"},
		{work.TaskFilter{States: states, Project: "p"}, "tasks_project_state"},
		{work.TaskFilter{Tree: "t"}, "tasks_tree"},
		{work.TaskFilter{Parent: "t"}, "tasks_parent"},
		{work.TaskFilter{Story: "t"}, "tasks_story"},
	} {
		for _, after := range []string{"", "MS94"} { // the first page, and one behind it
			c.filter.After = after
			query, args, err := store.TaskQuery(c.filter)
			if err != nil {
				t.Fatal(err)
			}
			if steps := plan(t, s, query, args...); !goesBy(steps, c.index, len(c.filter.States)) {
				t.Errorf("%+v does not go by %s alone:\n%s", c.filter, c.index, steps)
			}
		}
	}
	steps := plan(t, s, store.SelectWaiting, 10)
	for _, index := range []string{"tasks_slot", "executions_queued"} {
		if !strings.Contains(steps, "INDEX "+index) {
			t.Errorf("waiting executions do not go by %s:\n%s", index, steps)
		}
	}
}

// TestStoriesReadAnIndex: no list of stories may walk or sort all of them.
func TestStoriesReadAnIndex(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	statuses := []work.StoryStatus{work.Draft, work.InProgress}
	for _, c := range []struct {
		filter work.StoryFilter
		index  string
	}{
		{work.StoryFilter{}, "stories_all"},
		{work.StoryFilter{Statuses: statuses}, "stories_of_status"},
		{work.StoryFilter{Project: "p"}, "stories_project"},
		{work.StoryFilter{Project: "p", Statuses: statuses}, "stories_project_status"},
		{work.StoryFilter{Epic: "e"}, "stories_epic"},
		{work.StoryFilter{Epic: "e", Statuses: statuses}, "stories_epic_status"},
	} {
		for _, after := range []string{"", "MS94"} {
			c.filter.After = after
			query, args, err := store.StoryQuery(c.filter)
			if err != nil {
				t.Fatal(err)
			}
			if steps := plan(t, s, query, args...); !goesBy(steps, c.index, len(c.filter.Statuses)) {
				t.Errorf("%+v does not go by %s alone:\n%s", c.filter, c.index, steps)
			}
		}
	}
	if steps := plan(t, s, store.SelectBranches, "p"); !strings.Contains(steps, "COVERING INDEX stories_branch") || strings.Contains(steps, "TEMP B-TREE") {
		t.Errorf("branches do not go by the stories that are not over:\n%s", steps)
	}
	for _, count := range []string{plan(t, s, store.CountStories), plan(t, s, store.CountEpic, "e")} {
		if !strings.Contains(count, "COVERING INDEX stories_epic_status") || strings.Contains(count, "TEMP B-TREE") {
			t.Errorf("the stories of epics are not counted in their index:\n%s", count)
		}
	}
}

// TestATickReadsItsTreeAlone: what loads and commits a tree finds every row by a
// key or an index; no table is walked, however much is over.
func TestATickReadsItsTreeAlone(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.SQLite(t))
	parameter := regexp.MustCompile(`\$(\d+)`)
	for _, statement := range append(store.LoadStatements(), store.CommitStatements()...) {
		n := 0
		for _, m := range parameter.FindAllStringSubmatch(statement, -1) {
			number, err := strconv.Atoi(m[1])
			if err != nil {
				t.Fatal(err)
			}
			n = max(n, number)
		}
		steps := plan(t, s, statement, make([]any, n)...)
		if strings.Contains(steps, "SCAN") {
			t.Errorf("%s\nwalks a table:\n%s", statement, steps)
		}
		if strings.HasPrefix(statement, "SELECT") && !strings.Contains(steps, "SEARCH") {
			t.Errorf("%s\nreads nothing by an index:\n%s", statement, steps)
		}
	}
}
