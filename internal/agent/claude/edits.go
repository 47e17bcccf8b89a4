package claude

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/claudomator/claudomator/internal/agent"
)

const diffLimit = 16 << 10 // bytes of one edit's diff

// toolAnswer are the fields read of what a tool says beside its answer to the
// model: which files it has changed, and what it has left running.
type toolAnswer struct {
	File    string  `json:"filePath"`
	Kind    string  `json:"type"` // "create" where the file is new
	Content string  `json:"content"`
	Patch   []hunk  `json:"structuredPatch"`
	Shell   changes `json:"bashEditDiff"`

	Background string `json:"backgroundTaskId"`
}

type changes struct {
	Files []struct {
		File  string `json:"filePath"`
		Hunks []hunk `json:"hunks"`
	} `json:"files"`
}

type hunk struct {
	OldStart int      `json:"oldStart"`
	OldLines int      `json:"oldLines"`
	NewStart int      `json:"newStart"`
	NewLines int      `json:"newLines"`
	Lines    []string `json:"lines"`
}

// edits are the changes of files that a call has made.
func (a *toolAnswer) edits(call agent.Tool, dir string) []agent.Edit {
	var edits []agent.Edit
	switch call.Name {
	case "Edit", "Write", "MultiEdit":
		path := a.File
		if path == "" {
			var input callInput
			_ = json.Unmarshal([]byte(call.Input), &input) // then there is no path
			path = input.File
		}
		hunks := a.Patch
		if len(hunks) == 0 && a.Kind == "create" {
			hunks = []hunk{created(a.Content)}
		}
		if path != "" {
			edits = append(edits, agent.Edit{Path: agent.Within(dir, path), Diff: diff(hunks)})
		}
	}
	for _, f := range a.Shell.Files {
		edits = append(edits, agent.Edit{Path: agent.Within(dir, f.File), Diff: diff(f.Hunks)})
	}
	return edits
}

func created(content string) hunk {
	lines := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
	for i := range lines {
		lines[i] = "+" + lines[i]
	}
	return hunk{NewStart: 1, NewLines: len(lines), Lines: lines}
}

// diff writes hunks as "diff -u" does, cut to size.
func diff(hunks []hunk) string {
	var b strings.Builder
	for _, h := range hunks {
		fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", h.OldStart, h.OldLines, h.NewStart, h.NewLines)
		for _, line := range h.Lines {
			if b.Len()+len(line) > diffLimit {
				b.WriteString("… (cut)\n")
				return b.String()
			}
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
