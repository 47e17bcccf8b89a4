package storetest

import (
	"testing"
	"time"

	"github.com/claudomator/claudomator/internal/store"
	"github.com/claudomator/claudomator/internal/work"
)

func testProjects(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	save := func(p *work.Project) error { return s.SaveProject(t.Context(), p) }
	beta, alpha := &work.Project{ID: "id-beta", Name: "beta"}, &work.Project{ID: "id-alpha", Name: "alpha"}
	for _, p := range []*work.Project{beta, alpha} {
		if err := save(p); err != nil || p.Version != 1 {
			t.Fatalf("save %s: version %d, %v", p.Name, p.Version, err)
		}
	}
	same(t, "projects", []*work.Project{alpha, beta}, must[[]*work.Project](t)(s.Projects(t.Context())))
	for _, ref := range []string{"beta", "id-beta", "id-b"} {
		same(t, "project "+ref, beta, must[*work.Project](t)(s.Project(t.Context(), ref)))
	}
	wantError(t, second(s.Project(t.Context(), "id-")), work.Invalid, "ambiguous")
	wantError(t, second(s.Project(t.Context(), "gamma")), work.NotFound, "")

	stale := *beta
	beta.Branch = "trunk"
	if err := save(beta); err != nil || beta.Version != 2 {
		t.Fatalf("save again: version %d, %v", beta.Version, err)
	}
	wantError(t, save(&stale), work.Conflict, "version")
	wantError(t, save(&work.Project{ID: "id-beta", Name: "gamma"}), work.Conflict, "version")
	taken := &work.Project{ID: "id-other", Name: "beta"}
	wantError(t, save(taken), work.Conflict, "name_taken")
	renamed := *alpha
	renamed.Name = "beta"
	wantError(t, save(&renamed), work.Conflict, "name_taken")

	beta.Removed = true
	if err := save(beta); err != nil {
		t.Fatal(err)
	}
	wantError(t, second(s.Project(t.Context(), "beta")), work.NotFound, "")
	wantError(t, second(s.Project(t.Context(), "id-b")), work.NotFound, "")
	same(t, "removed project by id", beta, must[*work.Project](t)(s.Project(t.Context(), "id-beta")))
	same(t, "projects left", []*work.Project{alpha}, must[[]*work.Project](t)(s.Projects(t.Context())))
	if err := save(taken); err != nil {
		t.Errorf("the name of a removed project is not free: %v", err)
	}
}

func testRoles(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	first := filled[work.RoleConfig](&filler{})
	first.Name, first.ProjectID = "checker", ""
	second := work.RoleConfig{Name: "checker", Agent: "codex", Active: true, CreatedAt: at(1)}
	third := work.RoleConfig{Name: "builder", CreatedAt: at(2)}
	own := work.RoleConfig{Name: "checker", ProjectID: "p1", Agent: "claude", Active: true, CreatedAt: at(3)}
	var want []work.RoleConfig
	for i, r := range []work.RoleConfig{*first, second, third, own} {
		saved := must[work.RoleConfig](t)(s.SaveRole(t.Context(), r))
		r.Version = []int{1, 2, 1, 1}[i]
		same(t, "saved role", r, saved)
		want = append(want, saved)
	}
	want[0].Active = false // the second took its place
	same(t, "roles", []work.RoleConfig{want[2], want[0], want[1], want[3]}, must[[]work.RoleConfig](t)(s.Roles(t.Context())))

	must[work.RoleConfig](t)(s.SaveRole(t.Context(), work.RoleConfig{Name: "checker"}))
	for _, r := range must[[]work.RoleConfig](t)(s.Roles(t.Context())) {
		if r.Active != (r.ProjectID == "p1") {
			t.Errorf("%s version %d of project %q: active is %v", r.Name, r.Version, r.ProjectID, r.Active)
		}
	}
}

func testTokens(t *testing.T, fresh func(testing.TB) store.Config) {
	s := Open(t, fresh(t))
	f := &filler{}
	valid, revoked := filled[work.Token](f), filled[work.Token](f)
	valid.RevokedAt = time.Time{}
	for _, token := range []*work.Token{valid, revoked} {
		if err := s.SaveToken(t.Context(), *token); err != nil {
			t.Fatal(err)
		}
	}
	same(t, "tokens", []work.Token{*valid, *revoked}, must[[]work.Token](t)(s.Tokens(t.Context())))
	same(t, "valid token", valid, must[*work.Token](t)(s.TokenByHash(t.Context(), valid.Hash)))
	for _, hash := range []string{"", "unknown", revoked.Hash} {
		wantError(t, second(s.TokenByHash(t.Context(), hash)), work.NotFound, "")
	}
	copied := *filled[work.Token](f)
	copied.Hash = valid.Hash
	wantError(t, s.SaveToken(t.Context(), copied), work.Conflict, "exists")

	valid.RevokedAt = at(1)
	if err := s.SaveToken(t.Context(), *valid); err != nil {
		t.Fatal(err)
	}
	wantError(t, second(s.TokenByHash(t.Context(), valid.Hash)), work.NotFound, "")
}
