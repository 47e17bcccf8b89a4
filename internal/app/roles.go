package app

import (
	"fmt"
	"maps"
	"slices"

	"github.com/claudomator/claudomator/internal/review"
	"github.com/claudomator/claudomator/internal/work"
)

// knownRole refuses a role that is none of the program's own, unless its
// configuration says who plays it, or how: a misspelled name would take what it
// is given, and nothing would ever ask for it.
func knownRole(r work.RoleConfig) error {
	if slices.Contains(work.Roles(), r.Name) || r.Agent != "" || r.Prompt != "" {
		return nil
	}
	names := fmt.Sprint(work.Roles())
	return work.Errorf(work.Invalid, "there is no role %q", r.Name).WithReason("unknown_role").
		WithHint("one of %s; a role of your own needs an agent or a prompt", names)
}

// activeRoles are the configurations that hold, by project and role; under "" for
// projects without any of their own. Those for all projects come first in the list.
func activeRoles(all []work.RoleConfig) map[work.ProjectID]map[work.Role]work.RoleConfig {
	general := map[work.Role]work.RoleConfig{}
	active := map[work.ProjectID]map[work.Role]work.RoleConfig{"": general}
	for _, r := range all {
		switch {
		case !r.Active:
		case r.ProjectID == "":
			general[r.Name] = r
		default:
			if active[r.ProjectID] == nil {
				active[r.ProjectID] = maps.Clone(general)
			}
			active[r.ProjectID][r.Name] = r.Over(general[r.Name])
		}
	}
	return active
}

// rolesOf are those of activeRoles that hold in a project.
func rolesOf(active map[work.ProjectID]map[work.Role]work.RoleConfig, project work.ProjectID) map[work.Role]work.RoleConfig {
	if own, ok := active[project]; ok {
		return own
	}
	return active[""]
}

// Judge is the agent that would judge in a role what builder builds in a project, going
// by the lists of roles and agents as the API gives them; false where it cannot be used.
// A server may still let another one judge that can be used as well.
func Judge(roles []work.RoleConfig, agents []AgentInfo, project *work.Project, builder string, role work.Role) (work.AgentSpec, bool) {
	usable := func(name string) bool {
		return slices.ContainsFunc(agents, func(a AgentInfo) bool { return a.Type == name && a.Installed })
	}
	rules := review.Rules{Roles: rolesOf(activeRoles(roles), project.ID), Usable: usable}
	return rules.Judge(*project, work.AgentSpec{Type: builder}, role)
}
