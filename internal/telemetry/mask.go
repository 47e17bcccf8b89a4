package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
)

// shortest is the length below which a text is not taken for a secret: replacing
// it everywhere would make logs unreadable and give the secret away all the same.
const shortest = 8

// masked stands where a secret stood.
const masked = "[masked]"

// Mask replaces known secrets in text. It may be used by several goroutines.
type Mask struct {
	mu      sync.RWMutex
	secrets map[string]*known
}

// known is one secret in the forms that log formats and JSON write it in.
type known struct {
	users int // how often it was added
	forms [][]byte
}

// NewMask knows secrets for good, those of the settings.
func NewMask(secrets ...string) *Mask {
	m := &Mask{secrets: map[string]*known{}}
	for _, s := range secrets {
		m.Add(s)
	}
	return m
}

// Add makes a secret known until the returned function is called, which may be
// done more than once. The same secret may be added several times. Texts shorter
// than eight bytes are not masked.
func (m *Mask) Add(secret string) (remove func()) {
	if len(secret) < shortest {
		return func() {}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.secrets[secret]
	if k == nil {
		k = &known{forms: forms(secret)}
		m.secrets[secret] = k
	}
	k.users++
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if k.users--; k.users == 0 {
			delete(m.secrets, secret)
		}
	})
}

// forms are the secret as it is, as slog's text handler quotes it, and as JSON
// does with and without its escapes for HTML. Other encodings (base64) are not
// looked for: a secret is not logged as bytes.
func forms(secret string) [][]byte {
	all := [][]byte{[]byte(secret)}
	quoted := strconv.Quote(secret)
	texts := []string{quoted[1 : len(quoted)-1]}
	for _, escapeHTML := range []bool{true, false} {
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(escapeHTML)
		if encoder.Encode(secret) == nil { // a string always encodes
			texts = append(texts, out.String()[1:out.Len()-2])
		}
	}
	for _, text := range texts {
		form := []byte(text)
		if !slices.ContainsFunc(all, func(other []byte) bool { return bytes.Equal(form, other) }) {
			all = append(all, form)
		}
	}
	return all
}

// Apply returns text without the secrets; it is text itself where there are none.
func (m *Mask) Apply(text []byte) []byte {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, k := range m.secrets {
		for _, form := range k.forms {
			if bytes.Contains(text, form) {
				text = bytes.ReplaceAll(text, form, []byte(masked))
			}
		}
	}
	return text
}

// Writer masks what is written to it on its way to w. A secret that is split over
// two Write calls is not seen: log handlers write whole lines.
func (m *Mask) Writer(w io.Writer) io.Writer { return &maskedWriter{m, w} }

type maskedWriter struct {
	mask *Mask
	w    io.Writer
}

func (w *maskedWriter) Write(p []byte) (int, error) {
	if _, err := w.w.Write(w.mask.Apply(p)); err != nil {
		return 0, fmt.Errorf("write masked text: %w", err)
	}
	return len(p), nil
}
