package app

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/claudomator/claudomator/internal/review"
	"github.com/claudomator/claudomator/internal/work"
)

// AddProject registers a repository; it is looked at before anything is stored.
func (s *Service) AddProject(ctx context.Context, in ProjectInput) (*work.Project, error) {
	if _, err := may(ctx, true); err != nil {
		return nil, err
	}
	now := s.o.Now()
	p := &work.Project{ID: work.ProjectID(s.o.IDs.New()), CreatedAt: now, UpdatedAt: now}
	if err := s.fill(ctx, p, in); err != nil {
		return nil, err
	}
	if err := s.o.Settings.SaveProject(ctx, p); err != nil {
		return nil, err
	}
	return s.o.Settings.Project(ctx, string(p.ID))
}

// Projects lists the projects by name.
func (s *Service) Projects(ctx context.Context) ([]*work.Project, error) {
	if _, err := may(ctx, false); err != nil {
		return nil, err
	}
	return s.o.Settings.Projects(ctx)
}

// Project is one project.
func (s *Service) Project(ctx context.Context, ref string) (*work.Project, error) {
	if _, err := may(ctx, false); err != nil {
		return nil, err
	}
	return s.o.Settings.Project(ctx, ref)
}

// SetProject changes a project.
func (s *Service) SetProject(ctx context.Context, ref string, in ProjectInput) (*work.Project, error) {
	if _, err := may(ctx, true); err != nil {
		return nil, err
	}
	p, err := s.o.Settings.Project(ctx, ref)
	if err != nil {
		return nil, err
	}
	before := p.Repository
	p.UpdatedAt = s.o.Now()
	if err := s.fill(ctx, p, in); err != nil {
		return nil, err
	}
	if p.Repository != before {
		if err := s.mayMove(ctx, p); err != nil {
			return nil, err
		}
	}
	if err := s.o.Settings.SaveProject(ctx, p); err != nil {
		return nil, err
	}
	return s.o.Settings.Project(ctx, string(p.ID))
}

// mayMove refuses another repository to a project with tasks: their work lies in
// the vault of the one they were made for, and can be landed nowhere else.
func (s *Service) mayMove(ctx context.Context, p *work.Project) error {
	page, err := s.o.Lists.Tasks(ctx, TaskFilter{Project: p.ID, Limit: 1})
	if err != nil || len(page.Items) == 0 {
		return err
	}
	return work.Errorf(work.Illegal, "project %s has tasks (%s): its repository cannot be changed", p.Name, page.Items[0].ID).
		WithReason("has_tasks").WithHint("add a project for the other repository")
}

// RemoveProject hides a project whose work is over; its tasks and its vault
// stay.
func (s *Service) RemoveProject(ctx context.Context, ref string) error {
	if _, err := may(ctx, true); err != nil {
		return err
	}
	p, err := s.o.Settings.Project(ctx, ref)
	if err != nil {
		return err
	}
	var open []work.State
	for _, state := range work.States() {
		if !state.Ended() {
			open = append(open, state)
		}
	}
	page, err := s.o.Lists.Tasks(ctx, TaskFilter{Project: p.ID, States: open, All: true, Limit: 1})
	if err != nil {
		return err
	}
	if err := s.noOpenStory(ctx, p); err != nil {
		return err
	}
	if len(page.Items) > 0 {
		return work.Errorf(work.Illegal, "project %s has open work (%s)", p.Name, page.Items[0].ID).WithReason("open_work").WithHint("cancel or finish its tasks first")
	}
	p.Removed, p.UpdatedAt = true, s.o.Now()
	return s.o.Settings.SaveProject(ctx, p)
}

// noOpenStory refuses to remove a project with a story that is not over.
func (s *Service) noOpenStory(ctx context.Context, p *work.Project) error {
	var open []work.StoryStatus
	for _, status := range work.StoryStatuses() {
		if !status.Over() {
			open = append(open, status)
		}
	}
	page, err := s.o.Stories.Stories(ctx, work.StoryFilter{Project: p.ID, Statuses: open, Limit: 1})
	if err != nil || len(page.Items) == 0 {
		return err
	}
	story, hint := page.Items[0], "ship it, or cancel it first"
	switch story.Status {
	case work.Shipping:
		hint = "wait for the end of its ship"
	case work.DeployFailed: // what has landed is not cancelled
		hint = "ship it again; or reject it, and cancel it then"
	case work.Draft, work.InProgress, work.Validating, work.NeedsFix, work.ReviewReady, work.Shippable, work.Deployed, work.StoryCancelled:
	}
	return work.Errorf(work.Illegal, "project %s has an open story (%s, %s)", p.Name, story.Name, story.Status).WithReason("open_work").WithHint("%s", hint)
}

// fill puts what was given into a project and checks the whole.
func (s *Service) fill(ctx context.Context, p *work.Project, in ProjectInput) error {
	work.Assign(&p.Name, in.Name)
	work.Assign(&p.Setup, in.Setup)
	work.Assign(&p.Validate, in.Validate)
	work.Assign(&p.Deploy, in.Deploy)
	work.Assign(&p.Policy, in.Policy)
	work.Assign(&p.Policies, in.Policies)
	work.Assign(&p.Agent, in.Agent)
	work.Assign(&p.Isolation, in.Isolation)
	if limits := in.Limits; limits != nil {
		work.Assign(&p.Limits.Slots, limits.Slots)
		work.Assign(&p.Limits.Timeout, limits.Timeout)
		work.Assign(&p.Limits.Silence, limits.Silence)
	}
	work.Assign(&p.Environment, in.Environment)
	work.Assign(&p.AutoLand, in.AutoLand)
	work.Assign(&p.Lessons, in.Lessons)
	work.Assign(&p.Evaluators, in.Evaluators)
	work.Assign(&p.ShipMode, in.ShipMode)
	if forge := in.Forge; forge != nil {
		work.Assign(&p.Forge.Kind, forge.Kind)
		work.Assign(&p.Forge.API, forge.API)
		work.Assign(&p.Forge.TokenEnv, forge.TokenEnv)
	}
	if in.MaxFixes != nil {
		p.MaxFixes = in.MaxFixes
	}
	if err := s.checkProject(p); err != nil {
		return err
	}
	if in.Repository == nil && in.Branch == nil && p.Branch != "" {
		return nil
	}
	repository, branch := p.Repository, p.Branch
	work.Assign(&repository, in.Repository)
	if in.Repository != nil {
		branch = "" // another repository has another default branch
	}
	work.Assign(&branch, in.Branch)
	if repository == "" {
		p.Repository, p.Branch = "", "main"
		return nil
	}
	var err error
	p.Repository, p.Branch, err = s.o.Repositories.Inspect(ctx, repository, branch)
	return err
}

func (s *Service) checkProject(p *work.Project) error {
	switch {
	case !work.ValidName(p.Name):
		return work.Errorf(work.Invalid, "project name %q is not one", p.Name).WithHint("lower-case letters, digits, dash, dot, underscore; at most 100")
	case p.MaxFixes != nil && (*p.MaxFixes < 0 || *p.MaxFixes > 100):
		return work.Errorf(work.Invalid, "max_fix_attempts is %d, it must be 0 to 100", *p.MaxFixes)
	case p.Isolation != "" && p.Isolation != "none":
		return work.Errorf(work.Invalid, "isolation %q is not available", p.Isolation).WithHint("until isolation is built: none")
	case p.Limits.Slots < 0 || p.Limits.Timeout < 0 || p.Limits.Silence < 0:
		return work.Errorf(work.Invalid, "a limit is negative")
	}
	if err := checkShipping(p); err != nil {
		return err
	}
	if p.Policy != "" {
		if _, err := review.Preset(p.Policy); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.Policies)) {
		if err := review.CheckRule(key, p.Policies[key]); err != nil {
			return err
		}
	}
	texts := slices.Concat([]string{p.Setup, p.Deploy}, p.Validate, p.Lessons, slices.Collect(maps.Values(p.Environment)))
	for _, text := range texts {
		if err := work.CheckText("a text of the project", text, maxSetting, true); err != nil {
			return err
		}
	}
	for name := range p.Environment {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.HasPrefix(name, "CLAUDOMATOR_") {
			return work.Errorf(work.Invalid, "environment name %q cannot be used", name)
		}
	}
	for _, command := range p.Validate {
		if strings.TrimSpace(command) == "" {
			return work.Errorf(work.Invalid, "a validate command is empty")
		}
	}
	return s.knownAgent(p.Agent)
}

// checkShipping refuses settings of a project that shipping or judging could not use.
func checkShipping(p *work.Project) error {
	switch {
	case p.ShipMode != work.ShipDirectly && p.ShipMode != work.ShipPullRequest:
		return work.Errorf(work.Invalid, "ship_mode %q is unknown", p.ShipMode).WithHint("pull_request, or empty: the branch is moved")
	case p.Forge.Kind != "" && p.Forge.Kind != "github" && p.Forge.Kind != "gitea":
		return work.Errorf(work.Invalid, "forge.kind %q is unknown", p.Forge.Kind).WithHint("github or gitea (Forgejo too)")
	case strings.ContainsAny(p.Forge.TokenEnv, "= \x00"):
		return work.Errorf(work.Invalid, "forge.token_env %q is no name of an environment variable", p.Forge.TokenEnv)
	}
	for i, role := range p.Evaluators {
		if !slices.Contains(work.Roles(), role) || !strings.HasPrefix(string(role), "evaluator-") {
			return work.Errorf(work.Invalid, "evaluators entry %d, %q, is no evaluating role", i+1, role).
				WithHint("evaluator-correctness, evaluator-tests, evaluator-security, evaluator-quality")
		}
		if slices.Contains(p.Evaluators[:i], role) {
			return work.Errorf(work.Invalid, "evaluators names %q twice", role)
		}
	}
	if p.Forge.API != "" && !strings.HasPrefix(p.Forge.API, "https://") && !strings.HasPrefix(p.Forge.API, "http://") {
		return work.Errorf(work.Invalid, "forge.api %q is no address", p.Forge.API).WithHint("https://HOST/api/v1, for example")
	}
	return nil
}
