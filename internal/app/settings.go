package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/claudomator/claudomator/internal/work"
)

// Roles lists the active role configurations.
func (s *Service) Roles(ctx context.Context) ([]work.RoleConfig, error) {
	if _, err := may(ctx, false); err != nil {
		return nil, err
	}
	all, err := s.o.Settings.Roles(ctx)
	return slices.DeleteFunc(all, func(r work.RoleConfig) bool { return !r.Active }), err
}

// Role lists the versions of one role: those for all projects first, each oldest
// first. What comes with the program is version 0.
func (s *Service) Role(ctx context.Context, name string) ([]work.RoleConfig, error) {
	if _, err := may(ctx, false); err != nil {
		return nil, err
	}
	all, err := s.o.Settings.Roles(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(r work.RoleConfig) bool { return string(r.Name) != name })
	builtIn := work.RoleConfig{Name: work.Role(name), Active: len(all) == 0}
	if builtIn.Prompt, err = rolePrompt(builtIn.Name, work.RoleConfig{}); err != nil {
		return nil, work.Errorf(work.Internal, "read the prompt of role %s: %w", name, err)
	}
	if builtIn.Prompt != "" {
		all = slices.Insert(all, 0, builtIn)
	}
	if len(all) == 0 {
		return nil, work.Errorf(work.NotFound, "the role %q has no configuration", name).WithHint("claudomator role set %s --agent TYPE", name)
	}
	return all, nil
}

// SetRole makes a new version of a role's configuration, and lets waiting work
// see it: a task that had no usable judge may have one now.
func (s *Service) SetRole(ctx context.Context, name string, in RoleInput) (*work.RoleConfig, error) {
	if _, err := may(ctx, true); err != nil {
		return nil, err
	}
	if !work.ValidName(name) {
		return nil, work.Errorf(work.Invalid, "role name %q is not one", name).WithHint("lower-case letters, digits and dashes")
	}
	config := work.RoleConfig{Name: work.Role(name), Active: true}
	if in.Project != "" {
		project, err := s.o.Settings.Project(ctx, in.Project)
		if err != nil {
			return nil, err
		}
		config.ProjectID = project.ID
	}
	all, err := s.o.Settings.Roles(ctx)
	if err != nil {
		return nil, err
	}
	var general work.RoleConfig
	for _, r := range all {
		if r.Name != config.Name || !r.Active {
			continue
		}
		if r.ProjectID == "" {
			general = r
		}
		if r.ProjectID == config.ProjectID {
			config = r
		}
	}
	if in.Agent != nil && *in.Agent != config.Agent { // program and model belong to the agent
		config.Command, config.Model = nil, ""
	}
	work.Assign(&config.Agent, in.Agent)
	work.Assign(&config.Model, in.Model)
	work.Assign(&config.Command, in.Command)
	work.Assign(&config.Prompt, in.Prompt)
	work.Assign(&config.AllowedTools, in.AllowedTools)
	work.Assign(&config.MaxBudgetUSD, in.MaxBudgetUSD)
	work.Assign(&config.Timeout, in.Timeout)
	work.Assign(&config.Active, in.Active)
	if in.Command != nil && len(*in.Command) > 0 && in.Agent == nil {
		config.Agent = work.CommandAgent
	}
	whole := config
	if config.ProjectID != "" {
		whole = config.Over(general)
	}
	if err := s.checkRole(whole); err != nil {
		return nil, err
	}
	config.CreatedAt = s.o.Now()
	saved, err := s.o.Settings.SaveRole(ctx, config)
	if err != nil {
		return nil, err
	}
	s.forgetRoles()
	return &saved, s.resettle(ctx)
}

func (s *Service) checkRole(r work.RoleConfig) error {
	if err := knownRole(r); err != nil {
		return err
	}
	switch {
	case len(r.Command) > 0 && r.Command[0] == "":
		return work.Errorf(work.Invalid, "the command names no program")
	case r.Agent == work.CommandAgent && len(r.Command) == 0:
		return work.Errorf(work.Invalid, "agent type command needs a command").WithHint(`--command '["sh","-c","…"]'`)
	case r.MaxBudgetUSD < 0 || r.Timeout < 0:
		return work.Errorf(work.Invalid, "a limit is negative")
	}
	for _, text := range append([]string{r.Prompt, r.Model}, append(r.Command, r.AllowedTools...)...) {
		if err := work.CheckText("a text of the role", text, maxSetting, true); err != nil {
			return err
		}
	}
	return s.knownAgent(r.Agent)
}

const maxSetting = 1 << 20 // bytes of one text of a role or project

// resettle lets every tree that waits for a person be looked at again.
func (s *Service) resettle(ctx context.Context) error {
	items, err := s.o.Lists.Inbox(ctx)
	if err != nil {
		return err
	}
	seen := map[work.TreeID]bool{}
	for _, item := range items {
		if item.TaskID == "" {
			continue
		}
		tree, err := s.o.Lookup.TreeOf(ctx, item.TaskID)
		if err != nil {
			s.o.Log.Warn("settle again", "task", item.TaskID, "error", err)
			continue
		}
		if seen[tree] {
			continue
		}
		seen[tree] = true
		if err := s.Do(ctx, tree, work.System(), work.Settle{}); err != nil {
			s.o.Log.Warn("settle again", "tree", tree, "error", err)
		}
	}
	return nil
}

// Tokens lists the credentials, without secrets.
func (s *Service) Tokens(ctx context.Context) ([]Token, error) {
	if _, err := may(ctx, true); err != nil {
		return nil, err
	}
	return s.o.Tokens.Tokens(ctx)
}

// CreateToken makes a credential; its secret is shown once.
func (s *Service) CreateToken(ctx context.Context, name string, scope Scope) (*NewToken, error) {
	if _, err := may(ctx, true); err != nil {
		return nil, err
	}
	return s.newToken(ctx, name, scope)
}

func (s *Service) newToken(ctx context.Context, name string, scope Scope) (*NewToken, error) {
	switch {
	case !work.ValidName(name):
		return nil, work.Errorf(work.Invalid, "token name %q is not one", name).WithHint("lower-case letters, digits and dashes")
	case scope != ScopeAdmin && scope != ScopeRead:
		return nil, work.Errorf(work.Invalid, "scope %q is unknown", scope).WithHint("admin or read")
	}
	token := NewToken{Token: Token{ID: s.o.IDs.New(), Name: name, Scope: scope, CreatedAt: s.o.Now()}, Secret: NewSecret()}
	token.Hash = HashSecret(token.Secret)
	return &token, s.o.Tokens.SaveToken(ctx, token.Token)
}

// EnsureToken stores the token of the data directory, if it is not known yet.
func (s *Service) EnsureToken(ctx context.Context, name, secret string) error {
	hash := HashSecret(secret)
	if _, err := s.o.Tokens.TokenByHash(ctx, hash); work.CodeOf(err) != work.NotFound || err == nil {
		return err
	}
	return s.o.Tokens.SaveToken(ctx, Token{ID: s.o.IDs.New(), Name: name, Scope: ScopeAdmin, Hash: hash, CreatedAt: s.o.Now()})
}

// RevokeToken ends a credential.
func (s *Service) RevokeToken(ctx context.Context, ref string) error {
	if _, err := may(ctx, true); err != nil {
		return err
	}
	all, err := s.o.Tokens.Tokens(ctx)
	if err != nil {
		return err
	}
	var found []Token
	var ids []string
	for _, t := range all {
		if t.RevokedAt.IsZero() && (t.Name == ref || t.ID == ref || (len(ref) > 2 && strings.HasPrefix(t.ID, ref))) {
			found, ids = append(found, t), append(ids, t.ID)
		}
	}
	if len(found) == 0 {
		return work.Errorf(work.NotFound, "there is no token %q", ref).WithHint("see `token list`")
	}
	if len(found) > 1 {
		return work.Errorf(work.Invalid, "%d tokens are meant by %q", len(found), ref).WithReason("ambiguous").WithHint("use the id of one: %s", strings.Join(ids, ", "))
	}
	found[0].RevokedAt = s.o.Now()
	return s.o.Tokens.SaveToken(ctx, found[0])
}

// Authenticate finds who a secret belongs to. No secret and a wrong one get the
// same answer.
func (s *Service) Authenticate(ctx context.Context, secret string) (Caller, error) {
	t, err := s.o.Tokens.TokenByHash(ctx, HashSecret(secret))
	if err != nil || secret == "" {
		if code := work.CodeOf(err); err != nil && code != work.NotFound {
			return Caller{}, err
		}
		return Caller{}, work.Errorf(work.Unauthenticated, "the credential is missing or not valid").
			WithHint("send `Authorization: Bearer TOKEN`; the first token is in the data directory's file `token`")
	}
	return Caller{Name: t.Name, Scope: t.Scope}, nil
}

// NewSecret makes a secret of 32 random bytes, URL-safe. Its beginning is the same
// for all: it is found by those who look for leaked secrets, and is never taken
// for an option.
func NewSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return "cm_" + base64.RawURLEncoding.EncodeToString(b[:])
}

// HashSecret is what is stored of a secret: it is random, so a plain digest
// cannot be guessed back.
func HashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
