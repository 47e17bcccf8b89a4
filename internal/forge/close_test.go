package forge

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/forge/forgetest"
)

// hosted is a double with a pull request of its own, of the branch story/passkey.
func hosted(t *testing.T, d *double) Forge {
	t.Helper()
	d.Host(token, func(name string) (string, bool) { return head, name == branch || name == "main" })
	f := d.forge()
	if p, err := f.Open(t.Context(), spec()); err != nil || p.Number != 7 {
		t.Fatalf("opened %+v, %v", p, err)
	}
	return f
}

const why = "Closed: the story was cancelled.\n\nIts branch is kept.\n"

func (d *double) only(t *testing.T) forgetest.Pull {
	t.Helper()
	pulls := d.Pulls()
	if len(pulls) != 1 {
		t.Fatalf("there are %d pull requests", len(pulls))
	}
	return pulls[0]
}

// Closing says why once, however often it is tried.
func TestClose(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *double) {
		f := hosted(t, d)
		for range 2 {
			got, err := f.Close(t.Context(), 7, why)
			if diff := cmp.Diff(Pull{Number: 7, URL: web(d), Head: head, State: StateClosed}, got); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		}
		if p := d.only(t); p.State != "closed" || !slices.Equal(p.Comments, []string{why}) {
			t.Errorf("it is %+v", p)
		}
		if n := strings.Count(d.lines(), "PATCH /pulls/7"); n != 1 {
			t.Errorf("closed %d times", n)
		}
	})
}

// A closing that was cut off after its comment is finished without a second one, also
// where others have said a lot before it.
func TestCloseGoesOn(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *double) {
		f := hosted(t, d)
		for i := range 120 {
			d.Say(7, fmt.Sprintf("comment %d", i))
		}
		d.On("PATCH /pulls/7", reply{Status: http.StatusBadGateway})
		got, err := f.Close(t.Context(), 7, why)
		if wantKind(t, err, KindUnreachable); got.State != StateOpen || d.only(t).State != "open" {
			t.Errorf("it is %+v", got)
		}
		d.On("PATCH /pulls/7")
		if got, err := f.Close(t.Context(), 7, why); err != nil || got.State != StateClosed {
			t.Errorf("%+v, %v", got, err)
		}
		if p := d.only(t); p.State != "closed" || len(p.Comments) != 121 || p.Comments[120] != why {
			t.Errorf("%d comments, the last one %q", len(p.Comments), p.Comments[len(p.Comments)-1])
		}
	})
}

// A forge may give a text back with other line ends.
func TestCloseKnowsItsComment(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *double) {
		f := hosted(t, d)
		d.Say(7, "\r\n"+strings.ReplaceAll(why, "\n", "\r\n"))
		if got, err := f.Close(t.Context(), 7, why); err != nil || got.State != StateClosed || len(d.only(t).Comments) != 1 {
			t.Errorf("%+v, %v, %q", got, err, d.only(t).Comments)
		}
	})
}

// What cannot be commented on is closed all the same, and that is said.
func TestCloseWithoutAComment(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *double) {
		f := hosted(t, d)
		for _, line := range []string{"POST /issues/7/comments", "GET /issues/7/comments"} {
			d.on(line, reply{Status: http.StatusForbidden, Body: d.fixture("forbidden")})
		}
		got, err := f.Close(t.Context(), 7, why)
		if wantKind(t, err, KindForbidden); got.State != StateClosed || d.only(t).State != "closed" {
			t.Errorf("it is %+v", got)
		}
	})
}

// While the forge is away, or wants to be left alone, nothing is done by halves that
// the next try would not finish.
func TestCloseThatHasToWait(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *double) {
		for _, line := range []string{"GET /pulls/7", "GET /issues/7/comments", "POST /issues/7/comments", "PATCH /pulls/7"} {
			d := newDouble(t, d.kind)
			f := hosted(t, d)
			d.on(line, answered(429, http.Header{"Retry-After": {"17"}}, ""))
			_, err := f.Close(t.Context(), 7, why)
			if wantKind(t, err, KindRateLimited); d.only(t).State != "open" {
				t.Errorf("%s: closed", line)
			}
			d.On(line)
			if got, err := f.Close(t.Context(), 7, why); err != nil || got.State != StateClosed || len(d.only(t).Comments) != 1 {
				t.Errorf("%s: %+v, %v, %q", line, got, err, d.only(t).Comments)
			}
		}
	})
}

// What was merged stays merged, and nothing is said below it.
func TestCloseFindsItMerged(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *double) {
		f := hosted(t, d)
		d.Merge(7, merge)
		got, err := f.Close(t.Context(), 7, why)
		want := Pull{Number: 7, URL: web(d), Head: head, State: StateMerged, MergeCommit: merge}
		if diff := cmp.Diff(want, got); err != nil || diff != "" || len(d.only(t).Comments) != 0 {
			t.Errorf("%v %s %q", err, diff, d.only(t).Comments)
		}
		// Merged between the look and the closing: it was open when it was looked at.
		d.on("GET /pulls/7", ok(d.pull()), ok(d.pull(map[string]any{"state": "closed", "merged": true, "merge_commit_sha": merge})))
		if got, err := f.Close(t.Context(), 7, why); err != nil || got.State != StateMerged || got.MergeCommit != merge {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestCloseThatChangesNothing(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *double) {
		f := hosted(t, d)
		d.on("PATCH /pulls/7", ok(d.pull()))
		_, err := f.Close(t.Context(), 7, why)
		wantKind(t, err, KindBadAnswer)
		_, err = f.Close(t.Context(), 8, why)
		wantKind(t, err, KindNotFound)
	})
}

func TestFind(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, d *double) {
		f := hosted(t, d)
		got, err := f.Find(t.Context(), branch, "main")
		if diff := cmp.Diff(Pull{Number: 7, URL: web(d), Head: head, State: StateOpen}, got); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		if got, err := f.Find(t.Context(), branch, "release"); err != nil || got.Number != 0 {
			t.Errorf("another base: %+v, %v", got, err)
		}
		d.End(7)
		if got, err := f.Find(t.Context(), branch, "main"); err != nil || got.Number != 0 {
			t.Errorf("closed: %+v, %v", got, err)
		}
		d.on("GET /pulls", d.NotFound())
		_, err = f.Find(t.Context(), branch, "main")
		wantKind(t, err, KindNotFound)
	})
}
