package binary

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

const program = "github.com/claudomator/claudomator/cmd/claudomator"

// Build compiles the program, with the race detector where the tests have it,
// and gives its path; it is removed with the test.
//
// The tests' cache does not see what the compiler reads; it sees what is looked
// at here, so that a changed source runs the tests again.
func Build(t testing.TB) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "claudomator")
	args := []string{"build", "-o", bin}
	environ := append(os.Environ(), "CGO_ENABLED=0")
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "-race" && s.Value == "true" {
				args, environ = append(args, "-race"), os.Environ()
			}
		}
	}
	goCommand(t, environ, append(args, program)...)
	sources := goCommand(t, environ, "list", "-deps", "-f",
		`{{with .Module}}{{if .Main}}{{$.Dir}}{{range $.GoFiles}}
{{$.Dir}}/{{.}}{{end}}{{range $.EmbedFiles}}
{{$.Dir}}/{{.}}{{end}}
{{.GoMod}}{{end}}{{end}}`, program)
	for path := range strings.FieldsSeq(sources) {
		if _, err := os.Stat(path); err != nil {
			t.Fatal(err)
		}
	}
	return bin
}

func goCommand(t testing.TB, environ []string, args ...string) string {
	t.Helper()
	var stderr strings.Builder
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Env, c.Stderr = environ, &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", args[0], err, stderr.String())
	}
	return string(out)
}
