package git

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// both compares two commits here and with git; the answers must agree wherever there
// are two. It says whether there are.
func (l *lab) both(base, head string) bool {
	l.t.Helper()
	want, err := l.vault.treeDiff(l.ctx(), base, head)
	if err != nil {
		l.t.Fatal(err)
	}
	got, plain := l.vault.plainDiff(l.ctx(), base, head)
	if !plain {
		return false
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(FileStat{}), cmpopts.EquateEmpty()); diff != "" {
		l.t.Errorf("git says (-), and it is counted (+):\n%s\n%s", diff, sh(l.t, l.vault.Dir(), "git diff-tree -r -p "+base+" "+head))
	}
	return true
}

func TestPlainDiff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, script string
		plain        bool
	}{
		{"nothing", ``, true},
		{"a new file", `echo x >f`, true},
		{"a new file without an end of line", `printf 'x\ny' >f`, true},
		{"an empty file", `: >f`, true},
		{"a new folder in a folder", `mkdir -p d/e; echo x >d/e/f; echo y >d/g`, true},
		{"a folder that sorts like a file", `mkdir two; echo x >two/f; echo y >two.c; echo z >two0`, true},
		{"binary", `printf 'a\0b' >f`, true},
		{"binary that was text", `printf 'a\0b' >many`, true},
		{"binary after a long text", `head -c 9000 /dev/zero | tr '\0' x >f; printf '\0\n' >>f`, true},
		{"a link", `ln -s a l`, true},
		{"a link moved", `ln -sf b link`, false},
		{"a link that was a file", `rm many; ln -s a many`, false},
		{"executable", `chmod +x many`, true},
		{"executable and longer", `chmod +x many; echo 9 >>many`, true},
		{"gone", `rm many`, true},
		{"a whole folder gone", `rm -r sub`, true},
		{"gone and new", `rm many; echo other >f`, false},
		{"renamed", `mv many moved`, false},
		{"a file where a folder was", `rm -r sub; echo x >sub`, false},
		{"lines at the end", `printf '8\n9\n' >>many`, true},
		{"lines at the beginning", `printf '0\n0\n' >f; cat many >>f; mv f many`, true},
		{"lines in the middle", `sed -i 's/^4$/4\n4\n4\n5/' many`, true},
		{"lines less", `sed -i '/^[345]$/d' many`, true},
		{"one line repeated", `printf '7\n7\n' >>many`, true},
		{"one of the same lines less", `sed -i '1d' same`, true},
		{"emptied", `: >many`, true},
		{"an end of line more", `printf '\n' >>open`, false},
		{"a line after one without an end", `printf '\nx' >>open`, false},
		{"a line changed", `sed -i 's/^4$/four/' many`, false},
		{"rules for some files", `echo '*.x binary' >.gitattributes; echo x >f.x`, false},
		{"a submodule", `git init -q m; cd m; ` + userConfig + ` git commit -q --allow-empty -m m; cd ..`, false},
		{"many files", `for i in $(seq 20); do echo x >f$i; done`, false},
		{"a large file", `seq 100000 >f`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, `seq 7 >many; printf 'x\nx\nx\n' >same; printf open >open; ln -s a link; mkdir sub; echo 1 >sub/one; echo 2 >sub/two; git add .; git commit -qm more; `+
				c.script+"\n git add -A 2>/dev/null; git commit -q --allow-empty -m changed")
			head := l.head("main")
			base := sh(t, l.vault.Dir(), "git rev-parse "+head+"^")
			if got := l.both(base, head); got != c.plain {
				t.Errorf("counted without git: %v, want %v", got, c.plain)
			}
			trees := strings.Fields(sh(t, l.vault.Dir(), "git rev-parse "+base+"^{tree} "+head+"^{tree}"))
			l.both(trees[0], trees[1])
			l.both(emptyTree, trees[1])
		})
	}
}

// TestPlainDiffAtRandom compares commits that differ by a few steps of chance.
func TestPlainDiffAtRandom(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	random := rand.New(rand.NewPCG(1, 2))
	tree, err := l.vault.writeTree(nil)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"a", "a.c", "a0", "a/b", "a/c", "b/x/y", "b/x/z", "b.", "c"}
	counted := 0
	for range 150 {
		edits := map[string]edit{}
		for range 1 + random.IntN(3) {
			name := names[random.IntN(len(names))]
			if random.IntN(5) == 0 {
				edits[name] = edit{}
				continue
			}
			var text strings.Builder
			for range random.IntN(8) {
				fmt.Fprintf(&text, "%d\n", random.IntN(3))
			}
			hash, err := l.vault.writeObject("blob", []byte(text.String()[:max(0, text.Len()-random.IntN(2))]))
			if err != nil {
				t.Fatal(err)
			}
			edits[name] = edit{[]string{modeFile, modeExec}[random.IntN(2)], hash}
		}
		after, err := l.vault.editTree(l.ctx(), tree, edits)
		if err != nil {
			t.Fatal(err)
		}
		if l.both(tree, after) {
			counted++
		}
		tree = after
	}
	if counted < 30 {
		t.Errorf("only %d of the differences were counted without git", counted)
	}
}

// TestCommitsAreReadOnce: a commit that was read is not asked for again, and the
// memory of them has a bound.
func TestCommitsAreReadOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	head := l.head("main")
	want, err := l.vault.commit(l.ctx(), head)
	if err != nil {
		t.Fatal(err)
	}
	l.vault.reader.close() // whoever asks it now fails
	got, err := l.vault.commit(l.ctx(), head)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(commitInfo{})); diff != "" {
		t.Error(diff)
	}
	if kind, err := l.vault.kind(l.ctx(), head); kind != "commit" || err != nil {
		t.Errorf("a commit is %q, %v", kind, err)
	}
	if _, err := l.vault.kind(l.ctx(), emptyTree); err == nil {
		t.Error("the reader that was closed has answered")
	}
	c := &l.vault.commits
	for i := range 3 * knownCommits {
		c.keep(fmt.Sprint(i), want, 1)
		if _, known := c.find(fmt.Sprint(i)); !known || len(c.known) > knownCommits {
			t.Fatalf("commit %d is known: %v, with %d others", i, known, len(c.known))
		}
	}
	c.keep("large", want, knownSize+1)
	if _, known := c.find("large"); known {
		t.Error("a large commit is remembered")
	}
}
