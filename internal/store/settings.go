package store

import (
	"context"

	"github.com/claudomator/claudomator/internal/work"
)

const selectProject = `SELECT version, body FROM projects WHERE id = $1`

func scanProject(row scanner) (*work.Project, error) {
	p := &work.Project{}
	var version int64
	var body string
	if err := row.Scan(&version, &body); err != nil {
		return nil, err
	}
	if err := decode(body, p); err != nil {
		return nil, err
	}
	p.Version = version
	return p, nil
}

// Projects lists the projects by name, without removed ones.
func (s *Store) Projects(ctx context.Context) ([]*work.Project, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT version, body FROM projects WHERE removed = 0 ORDER BY name`)
	list, err := collect(rows, err, scanProject)
	return list, mapped("list projects", err)
}

// Project finds a project by its id, its name, or the beginning of its id. A
// removed one is known by its whole id alone.
func (s *Store) Project(ctx context.Context, ref string) (*work.Project, error) {
	id, err := s.named(ctx, "project", ref,
		`SELECT id, name FROM projects WHERE id >= $1 AND id < $2 AND (removed = 0 OR id = $1) ORDER BY id LIMIT 6`,
		`SELECT id, name FROM projects WHERE name = $1 AND removed = 0`)
	if err != nil {
		return nil, err
	}
	rows, err := s.read.QueryContext(ctx, selectProject, id)
	return single("project", ref, rows, err, scanProject)
}

// SaveProject writes a project and raises its version; Version 0 makes a new
// one. Conflict with reason "version" when it has changed since it was read,
// "name_taken" when another has its name.
func (s *Store) SaveProject(ctx context.Context, p *work.Project) error {
	body, err := encode(p)
	if err != nil {
		return mapped("save project", err)
	}
	err = s.change(ctx, "save project "+p.Name, func(t *transaction) error {
		var n int64
		var err error
		if p.Version == 0 {
			n, err = t.exec(`INSERT INTO projects (id, name, removed, version, body) VALUES ($1, $2, $3, 1, $4) ON CONFLICT (id) DO NOTHING`,
				string(p.ID), p.Name, bit(p.Removed), body)
		} else {
			n, err = t.exec(`UPDATE projects SET name = $1, removed = $2, version = version + 1, body = $3 WHERE id = $4 AND version = $5`,
				p.Name, bit(p.Removed), body, string(p.ID), p.Version)
		}
		if err == nil && n == 0 {
			return work.Errorf(work.Conflict, "project %s has changed since it was read", p.Name).WithReason("version").WithHint("read it again")
		}
		return err
	})
	if e, ok := work.AsError(err); ok && e.Reason == "exists" { // the one unique index besides the id
		return work.Errorf(work.Conflict, "there is a project named %q", p.Name).WithReason("name_taken").WithHint("choose another name")
	}
	if err != nil {
		return err
	}
	p.Version++
	return nil
}

// Roles lists all versions of all role configurations, by project (those for all
// projects first), name and version.
func (s *Store) Roles(ctx context.Context) ([]work.RoleConfig, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT project, name, version, active, body FROM roles ORDER BY project, name, version`)
	list, err := collect(rows, err, func(row scanner) (r work.RoleConfig, err error) {
		var project work.ProjectID
		var name work.Role
		var version int
		var active int64
		var body string
		if err := row.Scan(&project, &name, &version, &active, &body); err != nil {
			return r, err
		}
		err = decode(body, &r)
		r.ProjectID, r.Name, r.Version, r.Active = project, name, version, active == 1
		return r, err
	})
	return list, mapped("list roles", err)
}

// SaveRole adds a version of a role's configuration, in its project or for all.
// Earlier ones are active no
// more, whether or not it is.
func (s *Store) SaveRole(ctx context.Context, r work.RoleConfig) (work.RoleConfig, error) {
	doing := "save role " + string(r.Name)
	body, err := encode(r)
	if err != nil {
		return r, mapped(doing, err)
	}
	err = s.change(ctx, doing, func(t *transaction) error {
		if _, err := t.exec(`UPDATE roles SET active = 0 WHERE project = $1 AND name = $2 AND active = 1`, string(r.ProjectID), string(r.Name)); err != nil {
			return err
		}
		rows, err := t.query(`INSERT INTO roles (project, name, version, active, body)
			SELECT $1, $2, COALESCE(MAX(version), 0) + 1, $3, $4 FROM roles WHERE project = $1 AND name = $2 RETURNING version`,
			string(r.ProjectID), string(r.Name), bit(r.Active), body)
		r.Version, _, err = first(collect(rows, err, func(row scanner) (v int, err error) { return v, row.Scan(&v) }))
		return err
	})
	return r, err
}

const tokenColumns = `id, name, scope, hash, created_at, revoked_at`

func scanToken(row scanner) (work.Token, error) {
	var t work.Token
	var created, revoked int64
	err := row.Scan(&t.ID, &t.Name, &t.Scope, &t.Hash, &created, &revoked)
	t.CreatedAt, t.RevokedAt = instant(created), instant(revoked)
	return t, err
}

// Tokens lists the credentials, oldest first, revoked ones included.
func (s *Store) Tokens(ctx context.Context) ([]work.Token, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT `+tokenColumns+` FROM tokens ORDER BY created_at, id`)
	list, err := collect(rows, err, scanToken)
	return list, mapped("list tokens", err)
}

// SaveToken adds or changes a credential.
func (s *Store) SaveToken(ctx context.Context, token work.Token) error {
	return s.change(ctx, "save token "+token.Name, func(t *transaction) error {
		_, err := t.exec(`INSERT INTO tokens (id, name, scope, hash, created_at, revoked_at) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (id) DO UPDATE SET name = excluded.name, scope = excluded.scope, hash = excluded.hash, revoked_at = excluded.revoked_at`,
			token.ID, token.Name, string(token.Scope), token.Hash, micros(token.CreatedAt), micros(token.RevokedAt))
		return err
	})
}

// TokenByHash finds a credential that still holds; NotFound when it is unknown
// or revoked.
func (s *Store) TokenByHash(ctx context.Context, hash string) (*work.Token, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT `+tokenColumns+` FROM tokens WHERE hash = $1 AND hash <> '' AND revoked_at = 0`, hash)
	token, err := single("token", "with this hash", rows, err, scanToken)
	if err != nil {
		return nil, err
	}
	return &token, nil
}
