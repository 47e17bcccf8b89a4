// The rules of this repository, as tests. Each rule says why it exists where it
// fails. The tables are here; rules_checks_test.go holds the checks, and
// rules_planted_test.go proves on planted violations that every check bites.
//
// Sources are read with go/parser rather than with "go list": go test does not
// see what a subprocess reads and would answer from its cache.
package claudomator_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/claudomator/claudomator"

// everything is the import list of the packages that may know all others.
const everything = "everything"

// mayImport is the house: every layer, and the layers it may import. A layer is
// a folder with all folders below it, so that store/storetest belongs to store.
var mayImport = map[string][]string{
	"internal/work":      {},
	"internal/review":    {"internal/work"},
	"internal/app":       {"internal/work", "internal/review"},
	"internal/store":     {"internal/work"},
	"internal/engine":    {"internal/app", "internal/work", "internal/agent", "internal/git", "internal/sandbox"},
	"internal/agent":     {"internal/sandbox"},
	"internal/git":       {},
	"internal/forge":     {},
	"internal/sandbox":   {},
	"internal/config":    {},
	"internal/telemetry": {},
	"internal/api":       {"internal/app", "internal/work"},
	"internal/mcp":       {"internal/app", "internal/work"},
	"internal/web":       {"internal/app", "internal/work"},
	"internal/cli":       {"internal/app", "internal/work"},
	"internal/client":    {"internal/app", "internal/work"},
	"cmd/claudomator":    {everything},
	"bench":              {everything},
	"test":               {everything},
}

// planned are the layers that are not written yet. It may only shrink: an entry
// whose folder exists fails.
var planned = []string{
	"internal/web",
}

// pure are the layers that decide. Time, identifiers and randomness are inputs
// to them, so the same command on the same tree always gives the same changes.
var pure = map[string][]string{
	"internal/work":   {"cmp", "errors", "fmt", "iter", "maps", "slices", "strings", "time"},
	"internal/review": {"cmp", "errors", "fmt", "iter", "maps", "slices", "strings", "time"},
}

// fence keeps an import (and all packages below it) inside the named layers.
type fence struct {
	path   string
	layers []string
	why    string
}

var fences = []fence{
	{"database/sql", []string{"internal/store", "internal/engine"}, "SQL lives in store; engine only hands its transaction over"},
	{"modernc.org/sqlite", []string{"internal/store", "internal/engine"}, "SQL lives in store; engine only listens to the database's hooks"},
	{"github.com/jackc/pgx", []string{"internal/store", "internal/engine", "test/binary"}, "SQL lives in store; engine only listens to notifications, and test/binary makes databases for tests"},
	{"github.com/pressly/goose", []string{"internal/store"}, "migrations are part of store"},
	{"github.com/riverqueue", []string{"internal/engine"}, "the queue can be replaced in one package"},
	{"github.com/klauspost/compress", []string{"internal/engine"}, "how transcripts are stored is known in one place"},
	{"os/exec", []string{"internal/git", "internal/sandbox", "internal/agent/scripted", "bench", "test"}, "a process that git and sandbox did not start is one that nobody ends; the scripted agent is itself a process of a run, and is ended with what it starts"},
	{"github.com/danielgtaylor/huma", []string{"internal/api"}, "the HTTP framework is a detail of one surface"},
	{"github.com/modelcontextprotocol", []string{"internal/mcp"}, "the MCP library is a detail of one surface"},
	{"github.com/a-h/templ", []string{"internal/web"}, "pages are made in one place"},
	{"github.com/spf13/cobra", []string{"internal/cli"}, "the command line is a detail of one surface"},
	{"github.com/coder/acp-go-sdk", []string{"internal/agent/acp", "internal/agent/scripted"}, "its names are generated and unstable"},
	{"github.com/stretchr/testify", nil, "tests use the standard library and go-cmp: one way to read a failure"},
}

// clockReaders are the places that may read the real clock or sleep. Everybody
// else is told the time or waits on a timer that a test can control.
var clockReaders = map[string]string{
	"cmd":                      "hands the clock to app",
	"bench":                    "measures",
	"test":                     "waits for real processes, with a deadline",
	"internal/sandbox":         "waits for real processes to end",
	"internal/git":             "waits for real processes to end",
	"internal/agent/agenttest": "waits for real processes to end",
}

// clockInTests are the layers whose tests wait for real processes. Any other
// test runs in testing/synctest, where the clock is virtual, or needs no time.
var clockInTests = []string{"cmd", "bench", "test", "internal/sandbox", "internal/git", "internal/agent", "internal/engine"}

const (
	maxFileLines     = 500
	maxFuncLines     = 60
	maxInterfaceSize = 7

	// useCases is the one interface that may be large: it is the list of what
	// people can do, and a reader looks things up in it.
	useCases = "internal/app API"
)

// oversize lists what is allowed to be larger, and why: a file ("dir/file.go"),
// a function ("dir/file.go Name") or an interface ("dir Name"). It may only
// shrink: an entry that is no longer needed fails.
var oversize = map[string]string{}

// mayLack lists the functions that skip in CI too, because what they need is a
// property of the kernel that no script can install. It may only shrink.
var mayLack = map[string]string{
	"internal/sandbox/machine_linux_test.go TestReapingStealsNoWaits": "pidfds",
	"internal/sandbox/sandbox_test.go openHost":                       "a cgroup that may be written to",
}

// TestRules holds the whole repository to every rule.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, rule := range rules() {
		t.Run(rule.name, func(t *testing.T) {
			t.Parallel()
			for _, v := range rule.check(readTree(t, os.DirFS("."), house())) {
				t.Errorf("%s\n\tbecause %s", v, v.why)
			}
		})
	}
}

// house is the rule book of this repository.
func house() book {
	return book{
		mayImport: mayImport, planned: planned, pure: pure, fences: fences,
		clockReaders: clockReaders, clockInTests: clockInTests, oversize: oversize, mayLack: mayLack,
		machinePaths: machinePaths(),
	}
}

// machinePaths are the paths of the machine this test runs on that must not
// stand in any file: the checkout and the folder it lies in.
func machinePaths() []string {
	root, err := filepath.Abs(".")
	if err != nil {
		return nil
	}
	paths := []string{root}
	if parent := filepath.Dir(root); !slices.Contains([]string{"/", filepath.Clean(os.TempDir())}, parent) {
		paths = append(paths, parent+"/")
	}
	return paths
}

// layerOf names the layer a folder belongs to, or "" when it is in none.
func layerOf(dir string, mayImport map[string][]string) string {
	for layer := range mayImport {
		if within(dir, layer) {
			return layer
		}
	}
	return ""
}

// within tells whether path is root or lies below it.
func within(path, root string) bool {
	return path == root || strings.HasPrefix(path, root+"/")
}
