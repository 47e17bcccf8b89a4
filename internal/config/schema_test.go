package config

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the published schema")

// TestSchema holds the published schema to the struct; "make generate" writes it.
func TestSchema(t *testing.T) {
	t.Parallel()
	published := filepath.Join("..", "..", "docs", "config.schema.json")
	want, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(published, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(published)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("docs/config.schema.json is not current; run \"make generate\" (-want +got):\n%s", diff)
	}
}

// The schema knows every setting, and no other.
func TestSchemaKnowsEverySetting(t *testing.T) {
	t.Parallel()
	text, err := Schema()
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		t.Fatal(err)
	}
	got := leaves(root, "")
	want := keys()
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings in the schema (-want +got):\n%s", diff)
	}
}

func leaves(node map[string]any, prefix string) []string {
	var all []string
	properties, _ := node["properties"].(map[string]any)
	for key, below := range properties {
		below := below.(map[string]any)
		switch each := below["additionalProperties"].(type) {
		case map[string]any:
			all = append(all, leaves(each, prefix+key+".*.")...)
		default:
			if below["properties"] == nil {
				all = append(all, prefix+key)
			}
			all = append(all, leaves(below, prefix+key+".")...)
		}
	}
	return all
}
