package claudomator_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// TestRulesBite plants violations: each testdata/rules/RULE.txtar is a small
// repository whose file "want" lists what the rule must report, and no more.
func TestRulesBite(t *testing.T) {
	t.Parallel()
	for _, rule := range rules() {
		t.Run(rule.name, func(t *testing.T) {
			t.Parallel()
			fsys, want := plant(t, filepath.Join("testdata", "rules", rule.name+".txtar"))
			found := rule.check(readTree(t, fsys, plantedBook()))
			slices.SortFunc(found, byPlace)
			var got []string
			for _, v := range found {
				got = append(got, v.String())
				if v.why == "" {
					t.Errorf("%s: reported without a reason", v)
				}
			}
			if len(want) == 0 {
				t.Fatal("nothing is planted: this test could not fail")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	}
}

// plantedBook has the repository's own import tables, so that the tests prove
// those, and small lists where the repository's are meant to change.
func plantedBook() book {
	b := house()
	b.planned = nil
	for layer := range mayImport {
		if layer != "internal/git" && layer != "internal/work" {
			b.planned = append(b.planned, layer)
		}
	}
	b.oversize = map[string]string{
		"internal/git/allowed.go Long": "planted",
		"internal/git/short.go":        "planted",
	}
	b.mayLack = map[string]string{
		"internal/git/git_test.go TestOnSomeKernels": "planted",
		"internal/git/git_test.go TestGone":          "planted",
	}
	b.machinePaths = []string{"/src/checkout"}
	return b
}

// plant reads one archive. The comment "60 lines" or "500 lines" in a file stands
// for that many.
func plant(t *testing.T, name string) (fstest.MapFS, []string) {
	t.Helper()
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatalf("read the planted tree: %v", err)
	}
	fsys, want := fstest.MapFS{}, []string(nil)
	for _, f := range archive.Files {
		text := string(f.Data)
		if f.Name == "want" {
			want = strings.Split(strings.TrimSpace(text), "\n")
			continue
		}
		text = strings.ReplaceAll(text, "\t// 60 lines\n", strings.Repeat("\t_ = 0\n", 60))
		text = strings.ReplaceAll(text, "// 500 lines\n", strings.Repeat("//\n", 500))
		fsys[f.Name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys, want
}
