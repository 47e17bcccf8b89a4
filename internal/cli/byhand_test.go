package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/claudomator/claudomator/internal/app"
	"github.com/claudomator/claudomator/internal/work"
)

// TestByHand: a task that takes work done by hand says where, as far as this
// machine knows: another server's folders are not here.
func TestByHand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "server"), []byte("http://test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "workspaces", "fixbasket2345678"), 0o700); err != nil {
		t.Fatal(err)
	}
	submit := "  claudomator task submit fixbasket2345678  # takes what is there, and has it judged\n"
	for name, tt := range map[string]struct {
		server, id string
		actions    []work.Action
		want       string
	}{
		"here":              {"http://test/", "fixbasket2345678", []work.Action{work.DoAccept, work.DoSubmit}, "by hand: work in " + dir + "/workspaces/fixbasket2345678, then:\n" + submit},
		"at another server": {"http://other", "fixbasket2345678", []work.Action{work.DoSubmit}, "by hand: work in workspaces/fixbasket2345678 of the server's data folder, then:\n" + submit},
		"not there (yet)":   {"http://test", "fixbasket9999999", []work.Action{work.DoSubmit}, "by hand: work in workspaces/fixbasket9999999 of the server's data folder, then:\n"},
		"not possible":      {"http://test", "fixbasket2345678", []work.Action{work.DoAccept}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := shop()
			api.tree = &app.TreeNode{Task: &api.tasks[0].Task}
			for _, v := range api.tasks {
				v.Actions = tt.actions
			}
			r := run(t.Context(), api, func(d *Deps) {
				d.Environ = []string{"CLAUDOMATOR_SERVER=" + tt.server, "CLAUDOMATOR_TOKEN=x", "CLAUDOMATOR_DATA_DIR=" + dir}
			}, "task", "show", tt.id)
			if r.code != 0 || !strings.Contains(r.out, tt.want) || strings.Contains(r.out, "by hand") != (tt.want != "") {
				t.Errorf("want %q: %+v", tt.want, r)
			}
		})
	}
}
