package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// No ordinary way of writing shows a secret, however deep it lies.
func TestSecretHides(t *testing.T) {
	t.Parallel()
	const plain = "hunter2"
	type inner struct{ hidden Secret }
	holder := struct {
		Shown  Secret
		Nested inner
		List   []Secret
	}{NewSecret(plain), inner{NewSecret(plain)}, []Secret{NewSecret(plain)}}

	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+"\n", holder)
		fmt.Fprintf(&out, verb+"\n", holder.Shown)
		fmt.Fprintf(&out, verb+"\n", &holder)
	}
	encoded, err := json.Marshal(holder)
	if err != nil {
		t.Fatal(err)
	}
	out.Write(encoded)
	encoded, err = yaml.Marshal(map[string]Secret{"s": holder.Shown})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(encoded)
	log := slog.New(slog.NewJSONHandler(&out, nil))
	log.Info("m", "secret", holder.Shown, "holder", holder)
	slog.New(slog.NewTextHandler(&out, nil)).Info("m", "secret", holder.Shown, "holder", holder)

	if strings.Contains(out.String(), plain) || strings.Contains(out.String(), fmt.Sprintf("%x", plain)) {
		t.Errorf("the secret shows in:\n%s", out.String())
	}
	if !strings.Contains(out.String(), hidden) {
		t.Errorf("nothing tells that there is a secret:\n%s", out.String())
	}
	if got := holder.Shown.Reveal(); got != plain {
		t.Errorf("Reveal() = %q", got)
	}
}

func TestEmptySecret(t *testing.T) {
	t.Parallel()
	if s := NewSecret(""); s.String() != "" || s.Reveal() != "" || !s.Equal(Secret{}) {
		t.Errorf("an empty secret is %q, reveals %q", s, s.Reveal())
	}
	if NewSecret("a").Equal(NewSecret("b")) || !NewSecret("a").Equal(NewSecret("a")) {
		t.Error("secrets are not compared by value")
	}
}
