package git

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Whatever git or an agent writes, the parsers answer or refuse; they never
// panic, and what they accept is well formed.

func FuzzParseIndex(f *testing.F) {
	dir := f.TempDir()
	for _, version := range []string{"2", "3", "4"} {
		sh(f, dir, "rm -rf i; git init -q i; cd i; git config index.version "+version+"; mkdir -p d/e; echo a >a; echo b >d/b; echo c >d/e/c; ln -s a l; git add -A; echo n >n; git add -N n")
		data, err := os.ReadFile(filepath.Join(dir, "i", ".git", "index"))
		if err != nil {
			f.Fatal(err)
		}
		entries, err := parseIndex(data)
		var paths []string
		for _, e := range entries {
			paths = append(paths, e.path)
		}
		if err != nil || !slices.Equal(paths, []string{"a", "d/b", "d/e/c", "l", "n"}) {
			f.Fatalf("version %s: %q, %v", version, paths, err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseIndex(data)
		if err != nil && KindOf(err) == "" {
			t.Error(err)
		}
		for _, e := range entries {
			if err == nil && (e.path == "" || !isHash(e.hash)) {
				t.Errorf("entry %+v", e)
			}
		}
	})
}

func FuzzParseDiff(f *testing.F) {
	h := strings.Repeat("a", 40)
	f.Add([]byte(":100644 100644 " + h + " " + h + " M\x00x\x001\t2\tx\x00"))
	f.Add([]byte(":100644 100644 " + h + " " + h + " R100\x00x\x00y\x000\t0\t\x00x\x00y\x00"))
	f.Add([]byte(":000000 100644 " + h + " " + h + " A\x00:x\x00-\t-\t:x\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		stat, err := parseDiff(data)
		if err != nil {
			return
		}
		sum := 0
		for _, file := range stat.Files {
			if !isHash(file.newHash) || file.Status == "" {
				t.Errorf("file %+v", file)
			}
			sum += file.Insertions
		}
		if sum != stat.Insertions && !strings.Contains(string(data), "\t") {
			t.Errorf("%d insertions, sum %d", stat.Insertions, sum)
		}
	})
}

func FuzzParseMergeTree(f *testing.F) {
	h := strings.Repeat("a", 40)
	f.Add([]byte(h + "\x00"))
	f.Add([]byte(h + "\x00100644 " + h + " 1\ta\x00100644 " + h + " 2\ta\x00\x001\x00a\x00CONFLICT (contents)\x00CONFLICT (content): Merge conflict in a\n\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := parseMergeTree(data)
		if err == nil && !isHash(m.tree) {
			t.Errorf("tree %q", m.tree)
		}
		seen := map[string]bool{}
		for _, c := range m.conflicts {
			if seen[c.Path] || c.Kind == "" {
				t.Errorf("conflicts %+v", m.conflicts)
			}
			seen[c.Path] = true
		}
	})
}

func FuzzObjects(f *testing.F) {
	f.Add([]byte("100644 a\x00" + strings.Repeat("x", 20)))
	f.Add([]byte("tree " + emptyTree + "\nparent " + emptyTree + "\n\nmessage"))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := parseTree(data)
		for _, e := range entries {
			if err == nil && (e.name == "" || !isHash(e.hash)) {
				t.Errorf("entry %+v", e)
			}
		}
		if c, err := parseCommit(data); err == nil && !isHash(c.tree) {
			t.Errorf("commit %+v", c)
		}
		_, _, _ = parseObjectHead(string(data))
		for ref, hash := range parsePackedRefs(data) {
			if checkRef(ref) != nil || !isHash(hash) {
				t.Errorf("packed ref %q %q", ref, hash)
			}
		}
		for _, hash := range parseReflog(data) {
			if !isHash(hash) {
				t.Errorf("reflog %q", hash)
			}
		}
		_ = parseWorktrees(data)
		if words := remoteWords(string(data)); len(words) > maxRemoteWords+8 || strings.ContainsAny(words, "\n\x00") || strings.Contains(pushVerdict(string(data)), "\n") {
			t.Errorf("a remote's words %q", words)
		}
		if paths, err := parseStatus(data); err == nil && slices.Contains(paths, "") {
			t.Errorf("status %q", paths)
		}
	})
}

// FuzzRefNames compares our rules with git's own.
func FuzzRefNames(f *testing.F) {
	for _, s := range []string{"a", "a/b", "a..b", "a.lock", ".a", "a.", "@", "@{", "a b", "-a", "a//b", "ä", "a\x7f", "a.lock/b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		ours := checkRef("refs/heads/"+name) == nil
		if strings.ContainsRune(name, 0) || len(name) > 200 || !utf8.ValidString(name) {
			if ours && len(name) > 1000 {
				t.Errorf("%q was accepted", name)
			}
			return
		}
		theirs := exec.Command("git", "check-ref-format", "refs/heads/"+name).Run() == nil //nolint:gosec // tests
		if ours && !theirs {
			t.Errorf("%q was accepted; git refuses it", name)
		}
		if theirs && !ours {
			t.Errorf("%q was refused; git accepts it", name)
		}
	})
}

func FuzzDisplay(f *testing.F) {
	f.Add("a\nb\xff\u202e\\")
	f.Fuzz(func(t *testing.T, path string) {
		shown := Display(path)
		if !utf8.ValidString(shown) || strings.ContainsAny(shown, "\n\t\x00\x7f\u202e") {
			t.Errorf("%q shows as %q", path, shown)
		}
		if safePath(path) && (filepath.IsAbs(path) || strings.HasPrefix(filepath.Clean(path), "..")) {
			t.Errorf("%q is called safe", path)
		}
	})
}
