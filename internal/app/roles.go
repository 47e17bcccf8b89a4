package app

import (
	"fmt"
	"slices"

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
