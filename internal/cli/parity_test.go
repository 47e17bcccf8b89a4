package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/app"
)

// alone lists the commands that offer no use case of app.API, and why.
var alone = map[string]string{
	"run":            "carries one task all the way with the use cases of other commands",
	"config show":    "reads the settings on this machine, also where no server runs",
	"serve":          "is the server",
	"doctor":         "looks at this machine, also where no server runs",
	"demo":           "brings a server of its own",
	"tool":           "speaks to a run's endpoint with the run's token, as an agent",
	"scripted-agent": "is an agent, not a person's command",
	"version":        "says what this program is",
	"completion":     "writes a shell's text",
}

// TestCommandsAndOperations walks the commands against the parity table, both
// ways: a use case without its command, and a command that the table does not
// know, are both found.
func TestCommandsAndOperations(t *testing.T) {
	t.Parallel()
	named := maps.Clone(alone)
	for _, op := range app.Operations() {
		for _, command := range op.CLI.As {
			if alone[command] != "" {
				t.Errorf("%s is offered by %s, which is listed as offering nothing: it %s", op.Name, command, alone[command])
			}
			named[command] = op.Name
		}
	}
	commands := slices.Sorted(slices.Values(Commands()))
	if diff := cmp.Diff(commands, slices.Sorted(maps.Keys(named))); diff != "" {
		t.Errorf("commands (-), and those that the parity table or this test names (+):\n%s", diff)
	}
}

// TestOperationsAreCalled holds the table to the code: what it says the command
// line offers is called somewhere in this package, and nothing else is.
func TestOperationsAreCalled(t *testing.T) {
	t.Parallel()
	called := calledOfAPI(t)
	for _, op := range app.Operations() {
		if offered := len(op.CLI.As) > 0; offered != called[op.Name] {
			t.Errorf("%s: called by a command is %t, offered by the table is %t (%v%s)", op.Name, called[op.Name], offered, op.CLI.As, op.CLI.Because)
		}
	}
}

// calledOfAPI is the methods of app.API that this package uses: api.Method of a
// variable or field of that name, or the method expression app.API.Method.
func calledOfAPI(t *testing.T) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if method, ok := n.(*ast.SelectorExpr); ok && isAPI(method.X) {
				called[method.Sel.Name] = true
			}
			return true
		})
	}
	return called
}

func isAPI(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "api"
	case *ast.SelectorExpr:
		return x.Sel.Name == "api" || x.Sel.Name == "API"
	}
	return false
}
