package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// project finds the project of the repository. There is none yet: it is one
// without an id, and what to make it of.
func (f *foreground) project(ctx context.Context) (*work.Project, *app.ProjectInput, error) {
	if f.o.project != "" {
		p, err := f.api.Project(ctx, f.o.project)
		return p, nil, err
	}
	repo, err := f.repository()
	if err != nil {
		return nil, nil, err
	}
	all, err := f.api.Projects(ctx)
	if err != nil {
		return nil, nil, err
	}
	var found []*work.Project
	var names, matches []string
	for _, p := range all {
		names = append(names, p.Name)
		if p.Repository == repo {
			found, matches = append(found, p), append(matches, p.Name)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil, nil
	case 0:
		name := projectName(repo, names)
		return &work.Project{}, &app.ProjectInput{Name: &name, Repository: &repo}, nil
	}
	return nil, nil, work.Errorf(work.Invalid, "several projects work on %s: %s", repo, strings.Join(matches, ", ")).WithHint("choose one with --project")
}

// repository is the top level of the repository that --repo lies in. On another
// machine's server the path is left to that one.
func (f *foreground) repository() (string, error) {
	path, err := absolute(f.o.repo)
	if err != nil || remotePattern.MatchString(f.o.repo) {
		return path, err
	}
	real, err := filepath.EvalSymlinks(path)
	for at := real; err == nil; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, ".git")); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	_, bare := os.Stat(filepath.Join(real, "HEAD"))
	switch {
	case f.shell.named():
		return path, nil
	case err != nil:
		return "", work.Errorf(work.Invalid, "there is nothing at %s", path).WithHint("name the repository with --repo PATH")
	case bare == nil:
		return real, nil
	}
	return "", work.Errorf(work.Invalid, "%s is in no git repository", path).
		WithHint("go into one, or name it with --repo PATH; `git init` makes one").WithReason("no_repository")
}

// projectName makes a name of a path or URL that no project has yet.
func projectName(repo string, taken []string) string {
	base := strings.TrimSuffix(strings.ToLower(filepath.Base(strings.TrimRight(repo, "/"))), ".git")
	name := strings.Trim(strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '-'
	}, base), "-._")
	if name = head(name, 90); !work.ValidName(name) {
		name = "project"
	}
	for n, first := 2, name; slices.Contains(taken, name); n++ {
		name = fmt.Sprintf("%s-%d", first, n)
	}
	return name
}

// agent is the type that the task names: the one that was given, else none where the
// project or the server's configuration has one, else the first known program that is
// installed. What cannot be used is refused before anything is made.
func (f *foreground) agent(ctx context.Context, project *work.Project) (string, error) {
	if f.o.agent == "" && len(f.o.command) > 0 {
		return work.CommandAgent, nil // as the server understands it
	}
	all, err := f.api.Agents(ctx)
	if err != nil {
		return "", err
	}
	if wanted := agentOf(f.o.agent, project, all); wanted != "" {
		return f.o.agent, cmp.Or(usable(all, wanted), f.program(all, wanted))
	}
	for _, known := range []string{"claude", "codex", "acp"} {
		if usable(all, known) == nil && f.program(all, known) == nil {
			return known, nil
		}
	}
	return "", work.Errorf(work.Invalid, "no agent program is installed here, and none is chosen").WithReason("no_agent").
		WithHint("install one (claudomator doctor shows which there are), or run a shell script as the agent: --agent command")
}

// agentOf is the agent type of a task that nothing nearer gives one: the one that was
// named, the project's, the server's; empty where there is none.
func agentOf(named string, project *work.Project, all []app.AgentInfo) string {
	return cmp.Or(named, project.Agent, configured(all))
}

// configured is the agent type of the server's setting, empty where it has none.
func configured(all []app.AgentInfo) string {
	for _, a := range all {
		if a.Default {
			return a.Type
		}
	}
	return ""
}

// program is the error of an agent type that says how to talk with a program, where
// none is named: neither here nor in the server's configuration.
func (f *foreground) program(all []app.AgentInfo, wanted string) error {
	none := func(a app.AgentInfo) bool { return a.Type == wanted && a.Type == "acp" && a.Path == "" }
	if len(f.o.command) > 0 || !slices.ContainsFunc(all, none) {
		return nil
	}
	return work.Errorf(work.Invalid, "agent %s needs a program that speaks the protocol, and none is named", wanted).WithReason("no_program").
		WithHint(`name it: --command '["gemini","--acp"]', or for good in the configuration: agents.%s.command`, wanted)
}

// usable is the error of an agent type that cannot be used, or nil.
func usable(all []app.AgentInfo, wanted string) error {
	var names []string
	for _, a := range all {
		names = append(names, a.Type)
		if a.Type != wanted {
			continue
		}
		if a.Installed {
			return nil
		}
		return work.Errorf(work.Invalid, "agent %s cannot be used: %s", wanted, cmp.Or(a.Note, "it is not installed")).
			WithReason("agent_unusable").WithHint("claudomator doctor shows which can")
	}
	err := work.Errorf(work.Invalid, "there is no agent type %q", wanted).WithReason("no_agent")
	if meant := nearest(wanted, names); meant != "" {
		return err.WithHint("did you mean %s?", meant)
	}
	return err.WithHint("one of: %s", strings.Join(names, ", "))
}

// policy is who judges: a checker with --check, else whom the project says, and
// a person where it says nothing.
func (f *foreground) policy(ctx context.Context, project *work.Project, agent string) (string, error) {
	if !f.o.check {
		if project.Policy == "" && len(project.Policies) == 0 {
			return "human", nil
		}
		return "", nil
	}
	roles, err := f.api.Roles(ctx)
	if err != nil {
		return "", err
	}
	agents, err := f.api.Agents(ctx)
	if err != nil {
		return "", err
	}
	builder := agentOf(agent, project, agents)
	switch judge, ok := app.Judge(roles, agents, project, builder, work.Checker); {
	case ok:
		return "checked", nil
	case judge.Type == work.CommandAgent:
		return "", work.Errorf(work.Invalid, "there is no checker: a command cannot judge without one of its own").WithReason("no_checker").
			WithHint(`claudomator role set checker --agent claude, or --command '["sh","-c","cat >/dev/null; make test"]'`)
	default:
		return "", fmt.Errorf("choose the checker: %w", usable(agents, judge.Type))
	}
}
