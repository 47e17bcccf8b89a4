package work

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// specFields are the names of section 3 of the specification, as written there.
const specFields = "id parent_task_id kind name description project_id story_id repository_url branch_name agent timeout retry priority " +
	"tags depends_on acceptance_criteria gates review draft commit_type origin created_by tree_id attempt_of attempt_no superseded_by " +
	"accepted built_on dropped extra_fixes judges checker_for_task_id checker_report rejection_comment question interactions blockers " +
	"summary state reason blocked_on wake_at result landed created_at updated_at"

// TestTaskHasTheSpecifiedNames: the JSON of a task is the specification's list,
// and four names more, each for a reason.
func TestTaskHasTheSpecifiedNames(t *testing.T) {
	t.Parallel()
	more := []string{
		"verdict",            // what a judging task said
		"rejection_findings", // the findings that go with rejection_comment
		"hold",               // why a READY task waits for a person
		"lessons",            // what a retro proposes
	}
	want := append(strings.Fields(specFields), more...)
	got := jsonNames(reflect.TypeFor[Task]())
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names of a task (-specification +code)\n%s", diff)
	}
	for typ, names := range map[reflect.Type]string{
		reflect.TypeFor[AgentSpec]():  "type role model instructions command allowed_tools max_budget_usd max_turns",
		reflect.TypeFor[Retry]():      "max_attempts backoff",
		reflect.TypeFor[Acceptance](): "by commit at",
		reflect.TypeFor[Judged]():     "task_id commit",
		reflect.TypeFor[Landing]():    "branch commit at",
	} {
		if got := strings.Join(jsonNames(typ), " "); got != names {
			t.Errorf("%s has %q, want %q", typ, got, names)
		}
	}
}

func jsonNames(typ reflect.Type) []string {
	var out []string
	for f := range typ.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "-" {
			out = append(out, name)
		}
	}
	return out
}

func TestTimeoutIsWritten30m(t *testing.T) {
	t.Parallel()
	task := row("a")
	task.Timeout = Duration(30 * time.Minute)
	text, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"timeout":"30m0s"`) {
		t.Errorf("%s", text)
	}
	var d Duration
	if err := json.Unmarshal([]byte(`"90s"`), &d); err != nil || time.Duration(d) != 90*time.Second {
		t.Errorf("%v %v", d, err)
	}
	if err := json.Unmarshal([]byte(`"soon"`), &d); CodeOf(err) != Invalid {
		t.Errorf("%v", err)
	}
}

// A duration that is too long is not called misspelled.
func TestDurationsThatAreNone(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"99999999h": "too long", "1h99999999999999999999m": "too long", "-99999999.5h": "too long",
		"": "is not one", "h": "is not one", "99999999": "is not one", "99999999d": "is not one", "1h 99999999h": "is not one", "soon": "is not one",
	} {
		var d Duration
		if err := d.UnmarshalText([]byte(text)); CodeOf(err) != Invalid || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	err := Errorf(Conflict, "read %s: %w", "it", io.ErrUnexpectedEOF).WithReason("stale").WithHint("read %s again", "it").With("n", 1)
	wrapped := fmt.Errorf("decide: %w", err)
	if !errors.Is(wrapped, io.ErrUnexpectedEOF) {
		t.Error("the cause is not reachable")
	}
	e, ok := AsError(wrapped)
	if !ok || e.Code != Conflict || e.Reason != "stale" || e.Hint != "read it again" || e.Details["n"] != 1 || e.Error() != "read it: unexpected EOF" {
		t.Errorf("%+v", e)
	}
	if CodeOf(wrapped) != Conflict || CodeOf(io.EOF) != Internal {
		t.Error("wrong class")
	}
	if _, ok := AsError(io.EOF); ok {
		t.Error("a foreign error is taken for ours")
	}
	for _, err := range []error{nil, wrapped, io.EOF} {
		if got := UnlessMissing(err); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	if err := UnlessMissing(fmt.Errorf("look: %w", Errorf(NotFound, "no such thing"))); err != nil {
		t.Errorf("what is missing matters: %v", err)
	}
	if len(Codes()) != 10 {
		t.Errorf("codes %v", Codes())
	}
}

func TestBackoffGrowsWithinItsBounds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind Backoff
		n    int
		want time.Duration
	}{
		{Exponential, 1, 5 * time.Second}, {Exponential, 2, 10 * time.Second}, {Exponential, 4, 40 * time.Second},
		{Exponential, 7, 5 * time.Minute}, {Exponential, 1000, 5 * time.Minute},
		{Linear, 1, 5 * time.Second}, {Linear, 2, 10 * time.Second}, {Linear, 3, 15 * time.Second}, {Linear, 100000, 5 * time.Minute},
	} {
		seen := map[time.Duration]bool{}
		for _, seed := range []string{"a", "b", "c", "d"} {
			got := backoff(c.kind, c.n, seed)
			if got < c.want || got > c.want+c.want/4 {
				t.Errorf("%s %d: %s, want %s and at most a quarter more", c.kind, c.n, got, c.want)
			}
			if got != backoff(c.kind, c.n, seed) {
				t.Error("a decision does not replay")
			}
			seen[got] = true
		}
		if len(seen) < 2 {
			t.Errorf("%s %d: no jitter", c.kind, c.n)
		}
	}
}

func TestFindingsKeepTheirIdentity(t *testing.T) {
	t.Parallel()
	s1 := Finding{Role: EvaluatorSecurity, Kind: "injection", File: "a.go", Line: 3, Text: "x"}
	reworded, elsewhere, other := s1, s1, s1
	reworded.Text, elsewhere.Line, other.Role = "y", 4, EvaluatorTests
	general := Finding{Kind: "style", Text: "too long"}
	unlike := general
	unlike.Text = "too short"
	for _, c := range []struct {
		name string
		a, b Findings
		same bool
	}{
		{"none", nil, nil, true}, {"itself", Findings{s1}, Findings{s1}, true}, {"reworded", Findings{s1}, Findings{reworded}, true},
		{"twice", Findings{s1, s1}, Findings{s1}, true}, {"another place", Findings{s1}, Findings{elsewhere}, false},
		{"another dimension", Findings{s1}, Findings{other}, false}, {"one more", Findings{s1}, Findings{s1, elsewhere}, false},
		{"in another order", Findings{s1, elsewhere}, Findings{elsewhere, s1}, true},
		{"without a place its text tells", Findings{general}, Findings{unlike}, false},
	} {
		if got := c.a.Same(c.b); got != c.same {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if got := s1.String(); got != "evaluator-security a.go:3 x" {
		t.Errorf("%q", got)
	}
}

func TestSubject(t *testing.T) {
	t.Parallel()
	task := row("a")
	task.Name = " add\n the  thing "
	if got := task.Subject(); got != "add the thing" {
		t.Errorf("%q", got)
	}
	task.CommitType = "feat"
	if got := task.Subject(); got != "feat: add the thing" {
		t.Errorf("%q", got)
	}
}
