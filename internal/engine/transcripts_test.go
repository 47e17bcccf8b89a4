package engine

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/claudomator/claudomator/internal/work"
)

// shelf is a folder of transcripts, and what looks after it.
type shelf struct {
	*testing.T
	dir string
	now time.Time
	e   *Engine
}

func newShelf(t *testing.T) *shelf {
	t.Helper()
	t.Parallel()
	s := &shelf{T: t, dir: t.TempDir(), now: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	s.e = &Engine{o: Options{DataDir: s.dir, Retention: Retention{Transcripts: 24 * time.Hour}}, held: map[work.ExecutionID]int{}}
	if err := os.Mkdir(transcriptDir(s.dir), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shelf) path(name string) string { return filepath.Join(transcriptDir(s.dir), name) }

// put writes a file as it was left so long ago.
func (s *shelf) put(name string, text []byte, age time.Duration) {
	s.Helper()
	if err := os.WriteFile(s.path(name), text, 0o600); err != nil {
		s.Fatal(err)
	}
	if err := os.Chtimes(s.path(name), s.now.Add(-age), s.now.Add(-age)); err != nil {
		s.Fatal(err)
	}
}

func (s *shelf) tidy() {
	s.Helper()
	if err := s.e.tidyTranscripts(s.Context(), s.now); err != nil {
		s.Error(err)
	}
}

// holds fails unless the folder has exactly these files.
func (s *shelf) holds(when string, want ...string) {
	s.Helper()
	entries, err := os.ReadDir(transcriptDir(s.dir))
	if err != nil {
		s.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.Errorf("%s there is %q, want %q", when, got, want)
	}
}

// reads fails unless the surfaces read this text at the offset.
func (s *shelf) reads(when string, id work.ExecutionID, offset int, text []byte) {
	s.Helper()
	in, err := Transcripts{s.dir}.Transcript(s.Context(), id, int64(offset))
	if err != nil {
		s.Errorf("%s, at %d: %v", when, offset, err)
		return
	}
	got, err := io.ReadAll(in)
	if want := text[min(offset, len(text)):]; err != nil || !bytes.Equal(got, want) {
		s.Errorf("%s, at %d: %d bytes that begin %.40q, want %d, %.40q (%v)", when, offset, len(got), got, len(want), want, err)
	}
	if err := in.Close(); err != nil {
		s.Errorf("%s, at %d: close: %v", when, offset, err)
	}
}

// talk is a transcript of about so many bytes, which is not all the same.
func talk(size int) []byte {
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a test's text
	var b bytes.Buffer
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `{"at":"2026-03-04T05:06:07.%06dZ","kind":"log","stream":"stdout","text":"line %d of %x"}`+"\n", r.IntN(1e6), i, r.Uint64())
	}
	return b.Bytes()
}

// A transcript reads the same before and after, at every offset, and takes less.
func TestTranscriptsAreCompressed(t *testing.T) {
	s := newShelf(t)
	text := talk(3 << 20) // more than the window
	s.put("x.jsonl", text, 2*time.Hour)
	s.put("fresh.jsonl", text, 30*time.Minute)
	s.put("small.jsonl", text[:notWorthIt], 2*time.Hour)
	s.put("notes.txt", text, 2*time.Hour)
	before, err := Disk{DataDir: s.dir}.Measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	reader, err := Transcripts{s.dir}.Transcript(t.Context(), "x", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	s.tidy()
	s.holds("afterwards", "x.jsonl.zst", "fresh.jsonl", "small.jsonl", "notes.txt")
	for _, offset := range []int{0, 1, 4095, 1 << 20, len(text) - 1, len(text), len(text) + 5} {
		s.reads("compressed", "x", offset, text)
	}
	if got, err := io.ReadAll(reader); err != nil || !bytes.Equal(got, text) {
		t.Errorf("who was reading got %d bytes of %d (%v)", len(got), len(text), err)
	}
	info, err := os.Stat(s.path("x.jsonl.zst"))
	if err != nil || !info.ModTime().Equal(s.now.Add(-2*time.Hour)) || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	after, err := Disk{DataDir: s.dir}.Measure(t.Context())
	if err != nil || after.Transcripts["x"] <= 0 || after.Transcripts["x"] > before.Transcripts["x"]/2 || len(after.Transcripts) != len(before.Transcripts) {
		t.Errorf("on the disk %v, and then %v (%v)", before.Transcripts, after.Transcripts, err)
	}
	s.tidy()
	s.holds("the next time", "x.jsonl.zst", "fresh.jsonl", "small.jsonl", "notes.txt")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Transcripts{s.dir}).Transcript(ended, "x", 1<<20); err == nil {
		t.Error("nobody waits for it any more, and all of it is read")
	}
	if _, err := (Transcripts{s.dir}).Transcript(t.Context(), "y", 0); work.CodeOf(err) != work.NotFound {
		t.Errorf("of one that is not there: %v", err)
	}
}

// Whatever a killed server leaves, the whole text is read, and the next pass makes
// one file of it.
func TestCompressionCutOff(t *testing.T) {
	text := talk(100 << 10)
	whole := newShelf(t)
	whole.put("x.jsonl", text, 2*time.Hour)
	whole.tidy()
	packed, err := os.ReadFile(whole.path("x.jsonl.zst"))
	if err != nil {
		t.Fatal(err)
	}
	for name, left := range map[string]map[string][]byte{
		"the new one is empty":              {"x.jsonl": text, "x.jsonl.zst.part": nil},
		"the new one is there in part":      {"x.jsonl": text, "x.jsonl.zst.part": packed[:len(packed)/2]},
		"the new one has no name yet":       {"x.jsonl": text, "x.jsonl.zst.part": packed},
		"the old one is there, too":         {"x.jsonl": text, "x.jsonl.zst": packed},
		"the old one is gone":               {"x.jsonl.zst": packed},
		"another one was begun before that": {"x.jsonl.zst": packed, "x.jsonl.zst.part": packed[:9]},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			for file, data := range left {
				s.put(file, data, 2*time.Hour)
			}
			s.reads("cut off", "x", 0, text)
			s.reads("cut off", "x", 70_000, text)
			s.tidy()
			s.holds("after the next pass", "x.jsonl.zst")
			s.reads("after the next pass", "x", 70_000, text)
		})
	}
}

// What fails leaves the plain text as it is, and no rest of the other.
func TestCompressionFails(t *testing.T) {
	s := newShelf(t)
	text := talk(100 << 10)
	s.put("x.jsonl", text, 2*time.Hour)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	info, err := os.Stat(s.path("x.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if err := compress(ended, s.path("x.jsonl"), info); err == nil {
		t.Error("the server stops, and it goes on")
	}
	s.holds("cut off", "x.jsonl")
	if err := os.WriteFile(s.path("x.jsonl"), append(text, "more\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := compress(t.Context(), s.path("x.jsonl"), info); err == nil {
		t.Error("it was written to meanwhile, and what came is lost")
	}
	s.holds("written to", "x.jsonl")
	if err := os.MkdirAll(s.path("x.jsonl.zst/taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.put("x.jsonl", text, 2*time.Hour)
	s.put("y.jsonl", text, 2*time.Hour)
	if err := s.e.tidyTranscripts(t.Context(), s.now); err == nil {
		t.Error("its name is taken, and nobody is told")
	}
	s.holds("its name is taken", "x.jsonl", "x.jsonl.zst", "y.jsonl.zst")
	s.reads("its name is taken", "x", 0, text)
	if err := os.WriteFile(s.path("z.jsonl.zst"), []byte("no such thing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Transcripts{s.dir}).Transcript(t.Context(), "z", 1); work.CodeOf(err) != work.Internal {
		t.Errorf("of a broken one: %v", err)
	}
}

// Transcripts go when they are old enough, compressed or not: but not one that a
// run has open.
func TestTranscriptsExpire(t *testing.T) {
	s := newShelf(t)
	text := talk(100 << 10)
	s.put("plain.jsonl", text, 25*time.Hour)
	s.put("both.jsonl", text, 25*time.Hour)
	s.put("both.jsonl.zst", text, 25*time.Hour)
	s.put("packed.jsonl.zst", text, 25*time.Hour)
	s.put("kept.jsonl.zst", text, 23*time.Hour)
	s.put("silent.jsonl", text, 23*time.Hour)
	s.put("for-days.jsonl", text, 25*time.Hour)
	s.e.hold("silent")
	s.e.hold("for-days")
	quiet, err := os.Stat(s.path("silent.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	s.tidy()
	s.holds("after a day", "kept.jsonl.zst", "silent.jsonl", "for-days.jsonl")
	if now, err := os.Stat(s.path("silent.jsonl")); err != nil || !os.SameFile(now, quiet) || !cmp.Equal(now.ModTime(), quiet.ModTime()) {
		t.Errorf("what a run has open was touched: %v", err)
	}
	s.e.release("silent")
	s.tidy()
	s.holds("when the run is over", "kept.jsonl.zst", "silent.jsonl.zst", "for-days.jsonl")
	s.now = s.now.Add(90 * time.Minute)
	s.tidy()
	s.holds("an hour and a half later", "for-days.jsonl")
}
