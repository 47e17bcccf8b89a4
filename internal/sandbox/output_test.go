package sandbox

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestTailKeepsTheEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(1, 20).Draw(t, "size")
		tail := NewTail(size)
		var all []byte
		for _, chunk := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 50)).Draw(t, "chunks") {
			n, err := tail.Write(chunk)
			if n != len(chunk) || err != nil {
				t.Fatalf("Write = %d, %v", n, err)
			}
			all = append(all, chunk...)
		}
		got, cut := tail.Bytes()
		if want := all[max(0, len(all)-size):]; !bytes.Equal(got, want) || cut != (len(all) > size) {
			t.Fatalf("kept %q (cut %v), want %q", got, cut, want)
		}
	})
}

func TestCappedKeepsHeadAndEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		limit int64
		in    string
		want  string
	}{
		{"below", 10, "12345", "12345"},
		{"exact", 5, "12345", "12345"},
		{"one over", 5, "123456", "12345\n[output limit of 5 bytes reached: only the end of the rest is kept]\n6"},
		{"none", -1, strings.Repeat("x", 1<<20), strings.Repeat("x", 1<<20)},
	} {
		var out bytes.Buffer
		c := newCapped(&out, tt.limit)
		for chunk := range strings.SplitSeq(tt.in, "") {
			if n, err := c.Write([]byte(chunk)); n != 1 || err != nil {
				t.Fatalf("%s: Write = %d, %v", tt.name, n, err)
			}
		}
		c.finish()
		if out.String() != tt.want {
			t.Errorf("%s: %.100q, want %.100q", tt.name, out.String(), tt.want)
		}
	}
}

func TestFloodOnOneStream(t *testing.T) {
	t.Parallel()
	h := openHost(t, t.TempDir(), true)
	var out, errs bytes.Buffer
	spec := shell(t, `yes | head -c 100000000 >&2; echo last >&2; echo result`)
	spec.Stdout, spec.Stderr, spec.OutputLimit = &out, &errs, 1<<20
	p := start(t, h, spec)
	wait(t, p)
	end(t, p)
	if out.String() != "result\n" {
		t.Errorf("stdout %q", out.String())
	}
	got := errs.String()
	if len(got) > 1<<20+capTail+200 || !strings.HasSuffix(got, "y\nlast\n") ||
		!strings.Contains(got, "output limit of 1048576 bytes reached") || !strings.Contains(got, "bytes left out") {
		t.Errorf("stderr: %d bytes, end %q", len(got), got[max(0, len(got)-20):])
	}
}

type failingWriter struct{ calls int }

func (w *failingWriter) Write([]byte) (int, error) { w.calls++; return 0, syscall.ENOSPC }

func TestFailingWriterIsReportedAndHarmless(t *testing.T) {
	t.Parallel()
	h := openHost(t, t.TempDir(), true)
	spec := shell(t, `yes | head -c 1000000; exit 4`)
	w := &failingWriter{}
	spec.Stdout = w
	p := start(t, h, spec)
	exit := wait(t, p)
	if ended := end(t, p); !errors.Is(ended.Output, syscall.ENOSPC) || exit.Code != 4 || w.calls != 1 {
		t.Errorf("ended %+v, exit %v, %d calls", ended, exit, w.calls)
	}
}

func TestMergedOutputKeepsItsOrder(t *testing.T) {
	t.Parallel()
	h := openHost(t, t.TempDir(), true)
	var out bytes.Buffer
	spec := shell(t, `for i in 1 2 3; do echo o$i; echo e$i >&2; done`)
	spec.Stdout, spec.MergeOutput = &out, true
	p := start(t, h, spec)
	wait(t, p)
	end(t, p)
	if out.String() != "o1\ne1\no2\ne2\no3\ne3\n" {
		t.Errorf("output %q", out.String())
	}
}

// A stream that is read often rests, and nobody waits for one whose program has
// ended.
func TestGather(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		running, ended := make(chan struct{}), make(chan struct{})
		close(ended)
		g := gather{now: time.Now}
		var waited []time.Duration
		wait := func(n int, done <-chan struct{}) {
			began := time.Now()
			g.wait(n, done)
			waited = append(waited, time.Since(began))
		}
		for range gatherFree + 2 {
			wait(100, running)
		}
		wait(100, ended)
		time.Sleep(time.Second) // virtual: a quiet one
		wait(100, running)
		want := append(make([]time.Duration, gatherFree), gatherRest, gatherRest, 0, 0)
		if !slices.Equal(waited, want) {
			t.Errorf("waited %v, want %v", waited, want)
		}
	})
}

// A flood is not held up, however small its portions.
func TestGatherLetsFloodsPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gather{now: time.Now}
		began := time.Now()
		for i := range 100_000 {
			g.wait(4096, nil)
			if i%50 == 0 {
				time.Sleep(time.Millisecond) // virtual: 200 MB a second
			}
		}
		if rested := time.Since(began) - 2*time.Second; rested > 2*gatherRest*gatherMost/4096 {
			t.Errorf("rested for %s", rested)
		}
	})
}
