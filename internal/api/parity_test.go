package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/app"
)

//go:generate go test -run ^(TestOpenAPI|TestPlanSchema)$ . -update

// update writes the documents again instead of comparing them.
var update = flag.Bool("update", false, "write docs/openapi.json and docs/plan.schema.json again")

func describeServer() *server {
	return newServer(Options{API: &app.Service{}, Metrics: http.NotFoundHandler(), Version: "dev"})
}

func TestOpenAPI(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(describeServer().doc)
	if err != nil {
		t.Fatal(err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	golden := filepath.Join("..", "..", "docs", "openapi.json")
	if *update {
		if err := os.WriteFile(golden, pretty.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), pretty.String()); diff != "" {
		t.Errorf("docs/openapi.json is not current; run go generate ./internal/api\n%s", diff)
	}
}

// Every operation says what it does and how it fails, and nothing that the
// server keeps to itself is described.
func TestOpenAPIIsComplete(t *testing.T) {
	t.Parallel()
	doc := describeServer().doc
	ids := map[string]bool{}
	for path, item := range doc.Paths {
		for method, op := range operations(item) {
			at := method + " " + path
			if op.Summary == "" || op.Description == "" || op.OperationID == "" || ids[op.OperationID] {
				t.Errorf("%s: summary %q, description %q, id %q (unique?)", at, op.Summary, op.Description, op.OperationID)
			}
			ids[op.OperationID] = true
			named := slices.ContainsFunc(op.Parameters, func(p *huma.Param) bool { return p.In == "path" })
			if named != strings.Contains(path, "{") {
				t.Errorf("%s does not describe what its path names", at)
			}
			if !slices.ContainsFunc(doc.Tags, func(tag *huma.Tag) bool { return slices.Equal(op.Tags, []string{tag.Name}) && tag.Description != "" }) {
				t.Errorf("%s has the tags %v, which are not described", at, op.Tags)
			}
			for _, status := range []string{"401", "403", "422", "500"} {
				if op.Responses[status] == nil {
					t.Errorf("%s does not describe %s", at, status)
				}
			}
		}
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{`"fence"`, `"token_hash"`, `"book"`, `"Book"`, `"hash"`, `"lease`, "ErrorModel"} {
		if bytes.Contains(raw, []byte(secret)) {
			t.Errorf("the document speaks of %s", secret)
		}
	}
}

// The parity table holds every method of app.API once, in its order.
func TestOperationsNameEveryUseCase(t *testing.T) {
	t.Parallel()
	var methods, names []string
	api := reflect.TypeFor[app.API]()
	for i := range api.NumMethod() {
		methods = append(methods, api.Method(i).Name)
	}
	for _, op := range app.Operations() {
		names = append(names, op.Name)
		for surface, offer := range map[string]app.Offer{"REST": op.REST, "CLI": op.CLI, "MCP": op.MCP, "web": op.Web} {
			if (len(offer.As) == 0) == (offer.Because == "") {
				t.Errorf("%s on %s is neither offered nor refused with a reason, or both: %+v", op.Name, surface, offer)
			}
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff(methods, names); diff != "" {
		t.Errorf("methods of app.API (-) and operations (+):\n%s", diff)
	}
}

// The parity table names every route that is registered, and no other.
func TestOperationsNameEveryRoute(t *testing.T) {
	t.Parallel()
	s := describeServer()
	var table []string
	for _, op := range app.Operations() {
		table = append(table, op.REST.As...)
	}
	registered := s.mux.useCases()
	slices.Sort(registered)
	slices.Sort(table)
	if diff := cmp.Diff(registered, table); diff != "" {
		t.Errorf("registered routes (-) and parity table (+):\n%s", diff)
	}
	for _, op := range app.Operations() {
		for _, route := range op.REST.As {
			method, path, _ := strings.Cut(route, " ")
			described := operations(s.doc.Paths[path])[method]
			if described == nil || !strings.HasSuffix(described.OperationID, op.Name) {
				t.Errorf("%s of %s is described as %+v", route, op.Name, described)
			}
		}
	}
}

// operations are the described operations of a path, by method.
func operations(item *huma.PathItem) map[string]*huma.Operation {
	all := map[string]*huma.Operation{
		"GET": item.Get, "POST": item.Post, "PUT": item.Put, "PATCH": item.Patch, "DELETE": item.Delete,
	}
	for method, op := range all {
		if op == nil {
			delete(all, method)
		}
	}
	return all
}
