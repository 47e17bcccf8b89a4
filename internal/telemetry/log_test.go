package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

const secret = "s3cret-token-0123456789"

func newLogger(t *testing.T, out *bytes.Buffer, o LogOptions) *slog.Logger {
	t.Helper()
	log, err := NewLogger(out, o)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// A secret is hidden wherever in a record it stands, in both formats.
func TestLogMasks(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{secret, `quo"ted<&>sec\ret`, "two\nlines of it", "ünïcödé passwörd"} {
		for _, format := range []string{"text", "json"} {
			t.Run(fmt.Sprintf("%s/%q", format, secret), func(t *testing.T) {
				t.Parallel()
				var out bytes.Buffer
				mask := NewMask(secret)
				log := newLogger(t, &out, LogOptions{Level: "info", Format: format, Mask: mask})
				log = log.With("before", "Bearer "+secret).WithGroup("g")
				log.Info("message with "+secret, //nolint:sloglint // a message with a secret is the subject
					"plain", secret, "error", fmt.Errorf("dial: %w", errors.New(secret)),
					"any", struct{ Field string }{secret},
					slog.Group("inner", "url", "https://me:"+secret+"@host/"), secret, "as a key")
				for _, form := range forms(secret) {
					if bytes.Contains(out.Bytes(), form) {
						t.Errorf("%q stands in %s", form, out.String())
					}
				}
				if n := strings.Count(out.String(), masked); n < 6 {
					t.Errorf("%d places are masked, want at least 6: %s", n, out.String())
				}
				if format == "json" && !json.Valid(out.Bytes()) {
					t.Errorf("masking broke the line: %s", out.String())
				}
			})
		}
	}
}

func TestLogLevels(t *testing.T) {
	t.Parallel()
	for level, want := range map[string]int{"debug": 4, "info": 3, "warn": 2, "error": 1} {
		var out bytes.Buffer
		log := newLogger(t, &out, LogOptions{Level: level, Format: "text"})
		log.Debug("m")
		log.Info("m")
		log.Warn("m")
		log.Error("m")
		if got := strings.Count(out.String(), "\n"); got != want {
			t.Errorf("level %s logs %d of 4 lines, want %d", level, got, want)
		}
	}
}

func TestLogRefusesUnknown(t *testing.T) {
	t.Parallel()
	for _, o := range []LogOptions{{Level: "loud", Format: "text"}, {Level: "info", Format: "xml"}, {}} {
		if log, err := NewLogger(&bytes.Buffer{}, o); err == nil || log != nil {
			t.Errorf("NewLogger(%+v) = %v, %v; want an error", o, log, err)
		}
	}
}

// A run's token is masked while somebody still uses it, and forgotten afterwards.
func TestMaskForgets(t *testing.T) {
	t.Parallel()
	mask := NewMask()
	first, second := mask.Add(secret), mask.Add(secret)
	first()
	first() // a second call must not take the other user's turn
	if got := string(mask.Apply([]byte("a " + secret))); got != "a "+masked {
		t.Errorf("while it is in use: %q", got)
	}
	second()
	if got := string(mask.Apply([]byte("a " + secret))); got != "a "+secret {
		t.Errorf("after its end: %q", got)
	}
	mask.Add("short")()
	if got := string(mask.Apply([]byte("a short word"))); got != "a short word" {
		t.Errorf("a short text is masked: %q", got)
	}
}

func TestMaskWhileLogging(t *testing.T) {
	t.Parallel()
	mask := NewMask(secret)
	log := slog.New(slog.NewTextHandler(mask.Writer(&bytes.Buffer{}), nil)) // the handler locks its writer
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 100 {
				remove := mask.Add(fmt.Sprintf("token-of-run-%d-%d", i, j))
				log.Info("m", "token", secret)
				remove()
			}
		})
	}
	wg.Wait()
	if n := len(mask.secrets); n != 1 {
		t.Errorf("%d secrets are known in the end, want 1", n)
	}
}

type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestMaskedWriterReports(t *testing.T) {
	t.Parallel()
	if n, err := NewMask(secret).Writer(&bytes.Buffer{}).Write([]byte(secret)); n != len(secret) || err != nil {
		t.Errorf("Write = %d, %v; want the length that was given", n, err)
	}
	if _, err := NewMask().Writer(brokenWriter{}).Write([]byte("x")); !errors.Is(err, errBroken) {
		t.Errorf("Write = %v, want the writer's error", err)
	}
}
