package forge

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func spec() PullSpec {
	return PullSpec{Title: "Log in with a passkey", Body: "Built by Claudomator.", Head: branch, Base: "main"}
}

func web(d *double) string {
	if d.kind == GitHub {
		return "https://github.example/acme/widget/pull/7"
	}
	return "https://gitea.example/acme/widget/pulls/7"
}

func TestOpen(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *double) {
		d.on("POST /pulls", reply{Status: http.StatusCreated, Body: d.pull()})
		got, err := d.forge().Open(t.Context(), spec())
		if diff := cmp.Diff(Pull{Number: 7, URL: web(d), Head: head, State: StateOpen}, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		seen := d.asked()
		if len(seen) != 1 {
			t.Fatalf("asked %q", d.lines())
		}
		var sent map[string]string
		if err := json.Unmarshal([]byte(seen[0].Body), &sent); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"title": "Log in with a passkey", "body": "Built by Claudomator.", "head": branch, "base": "main"}, sent); diff != "" {
			t.Error(diff)
		}
		want := map[string]string{"Content-Type": "application/json", "User-Agent": "claudomator"}
		if d.kind == GitHub {
			want["Authorization"], want["Accept"], want["X-Github-Api-Version"] = "Bearer "+token, "application/vnd.github+json", "2022-11-28"
		} else {
			want["Authorization"], want["Accept"] = "token "+token, "application/json"
		}
		for name, value := range want {
			if got := seen[0].Header.Get(name); got != value {
				t.Errorf("%s: %q, want %q", name, got, value)
			}
		}
	})
}

// What is longer than the forges take is cut, not refused.
func TestOpenCutsTexts(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *double) {
		d.on("POST /pulls", reply{Status: http.StatusCreated, Body: d.pull()})
		long := spec()
		long.Title, long.Body = "  "+strings.Repeat("ä", 300)+"\nmore", strings.Repeat("ö", 70_000)
		if _, err := d.forge().Open(t.Context(), long); err != nil {
			t.Fatal(err)
		}
		var sent map[string]string
		if err := json.Unmarshal([]byte(d.asked()[0].Body), &sent); err != nil {
			t.Fatal(err)
		}
		if title := []rune(sent["title"]); len(title) != maxTitle || title[0] != 'ä' || title[maxTitle-1] != '…' {
			t.Errorf("title %q", sent["title"])
		}
		if n := len([]rune(sent["body"])); n != maxBody {
			t.Errorf("a body of %d characters", n)
		}
	})
}

func TestOpenFindsTheOneThatIsOpen(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *double) {
		d.on("POST /pulls", d.exists())
		other := func(number int, changes map[string]any) string {
			return d.pull(changes, map[string]any{"number": number})
		}
		elsewhere := map[string]any{"base": map[string]any{"ref": "release"}}
		another := map[string]any{"head": map[string]any{"ref": "story/other"}}
		fork := map[string]any{"head": map[string]any{"repo_id": 99}}
		known := d.pull(map[string]any{"title": "Renamed by a person", "merged": nil})
		if d.kind == GitHub {
			d.on("GET /pulls", ok(list(other(5, elsewhere), other(6, another), known)))
		} else { // in pages
			d.on("GET /pulls", ok(list(other(5, elsewhere), other(6, another), other(8, fork))), ok(list(known)), ok("[]"))
		}
		got, err := d.forge().Open(t.Context(), spec())
		if diff := cmp.Diff(Pull{Number: 7, URL: web(d), Head: head, State: StateOpen}, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		want, query := "POST /pulls\nGET /pulls", "base=main&head=acme%3Astory%2Fpasskey&per_page=100&state=open"
		if d.kind == Gitea {
			want, query = "POST /pulls\nGET /pulls\nGET /pulls", "limit=50&page=2&sort=recentupdate&state=open"
		}
		if seen := d.asked(); d.lines() != want || seen[len(seen)-1].Query != query {
			t.Errorf("asked %q, at last for %s", d.lines(), seen[len(seen)-1].Query)
		}
	})
}

// It was closed in between, or the forge means something else: what it said first
// is the answer.
func TestOpenFindsNone(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *double) {
		d.on("POST /pulls", d.exists())
		d.on("GET /pulls", ok("[]"))
		_, err := d.forge().Open(t.Context(), spec())
		if e := wantError(t, err, KindRefused); !strings.Contains(e.Message, "already exists") {
			t.Errorf("%+v", e)
		}
		d.on("GET /pulls", reply{Status: http.StatusForbidden, Body: d.fixture("forbidden")})
		_, err = d.forge().Open(t.Context(), spec())
		wantKind(t, err, KindForbidden)
	})
}

func TestOpenIsRefused(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *double) {
		for name, words := range map[string]string{"no_commits": "No commits between main and story/passkey", "bad_base": "PullRequest base invalid"} {
			status := http.StatusUnprocessableEntity
			if d.kind == Gitea {
				name, words = "bad_base", "The target couldn't be found."
			}
			d.on("POST /pulls", reply{Status: status, Body: d.fixture(name)})
			_, err := d.forge().Open(t.Context(), spec())
			if e := wantError(t, err, KindRefused); !strings.Contains(e.Message, words) || e.Status != status {
				t.Errorf("%+v", e)
			}
		}
		if strings.Contains(d.lines(), "GET") {
			t.Errorf("asked %q", d.lines())
		}
	})
}

func TestLookAtWhatHasEnded(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *double) {
		for name, c := range map[string]struct {
			changes map[string]any
			want    Pull
		}{
			"merged": {map[string]any{"state": "closed", "merged": true, "merged_at": "2030-01-02T04:00:00Z", "merge_commit_sha": merge},
				Pull{Number: 7, URL: web(d), Head: head, State: StateMerged, MergeCommit: merge}},
			// GitHub leaves the commit of a trial merge in one that was not merged.
			"closed": {map[string]any{"state": "closed", "closed_at": "2030-01-02T04:00:00Z", "merge_commit_sha": merge},
				Pull{Number: 7, URL: web(d), Head: head, State: StateClosed}},
		} {
			d.on("GET /pulls/7", ok(d.pull(c.changes)))
			got, err := d.forge().Look(t.Context(), 7)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%s: %v %s", name, err, diff)
			}
		}
		if d.lines() != "GET /pulls/7\nGET /pulls/7" {
			t.Errorf("asked %q", d.lines())
		}
	})
}
