package git

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const templates = `mkdir -p .claudomator/stories/old .claudomator/empty; cd .claudomator/stories
	printf one >one.yaml; : >none; printf run >run.sh; chmod +x run.sh; printf x >"$(printf 'new\nline')"; printf deep >old/deep.yaml
	ln -s one.yaml link.yaml; ln -s ../../.. up; ln -s stories ../more; ln -s .claudomator ../../other
	cd ../..; git init -q sub; git -C sub -c user.name=s -c user.email=s commit -q --allow-empty -m s; printf '[submodule "m"]\n\tpath = m\n\turl = ./sub\n' >.gitmodules
	git update-index --add --cacheinfo 160000,$(git -C sub rev-parse HEAD),.claudomator/stories/m; rm -rf sub; git add .claudomator other; git commit -qm templates;`

func TestFilesOfACommit(t *testing.T) {
	t.Parallel()
	l := newLab(t, templates+"git rm -rqf .claudomator; git commit -qm without; git checkout -q main~1")
	head := sh(t, l.repo, "git rev-parse HEAD")
	without := l.head("main")
	for dir, want := range map[string][]FileEntry{
		".claudomator/stories":          {{"new\nline", 1}, {"none", 0}, {"one.yaml", 3}, {"run.sh", 3}},
		".claudomator/stories/old":      {{"deep.yaml", 4}},
		".claudomator":                  nil,
		".claudomator/more":             nil, // a link to a folder
		"other/stories":                 nil, // through one
		".claudomator/stories/one.yaml": nil,
		".claudomator/stories/m":        nil,
		"gone/for/good":                 nil,
		"":                              {{"a", 4}},
	} {
		got, err := l.vault.Files(l.ctx(), head, dir)
		if err != nil {
			t.Errorf("%s: %v", dir, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", dir, diff)
		}
	}
	if got, err := l.vault.Files(l.ctx(), without, ".claudomator/stories"); err != nil || got != nil {
		t.Errorf("a commit without them has %v, %v", got, err)
	}
	for _, bad := range []string{"/etc", "..", "a/../b", ".claudomator/", ".git", "x\x00y"} {
		_, err := l.vault.Files(l.ctx(), head, bad)
		wantKind(t, err, KindInvalidRef)
		_, err = l.vault.File(l.ctx(), head, bad, 100)
		wantKind(t, err, KindInvalidRef)
	}
	_, err := l.vault.Files(l.ctx(), strings.Repeat("1", 40), "")
	wantKind(t, err, KindBranchMissing)
	many := newLab(t, `mkdir d; cd d; seq 1001 | xargs touch; git add .; git commit -qm many`)
	_, err = many.vault.Files(many.ctx(), many.head("main"), "d")
	wantKind(t, err, KindTooLarge)
}

func TestFileOfACommit(t *testing.T) {
	t.Parallel()
	l := newLab(t, templates+"head -c 300000 /dev/zero >big; git add big; git commit -qm big")
	head := l.head("main")
	for path, want := range map[string]struct {
		text string
		kind Kind
	}{
		".claudomator/stories/one.yaml":      {"one", ""},
		".claudomator/stories/none":          {"", ""},
		".claudomator/stories/run.sh":        {"run", ""},
		".claudomator/stories/new\nline":     {"x", ""},
		".claudomator/stories/old/deep.yaml": {"deep", ""},
		".claudomator/stories/link.yaml":     {"", KindFileMissing},
		".claudomator/more/one.yaml":         {"", KindFileMissing},
		"other/stories/one.yaml":             {"", KindFileMissing},
		".claudomator/stories":               {"", KindFileMissing},
		".claudomator/stories/m":             {"", KindFileMissing},
		".claudomator/stories/one.yaml/x":    {"", KindFileMissing},
		"gone":                               {"", KindFileMissing},
		"":                                   {"", KindFileMissing},
		"big":                                {"", KindTooLarge},
	} {
		got, err := l.vault.File(l.ctx(), head, path, 299999)
		if string(got) != want.text || KindOf(err) != want.kind || (err == nil) != (want.kind == "") {
			t.Errorf("%q: %q, %v", path, got, err)
		}
	}
	if got, err := l.vault.File(l.ctx(), head, "big", 300000); err != nil || len(got) != 300000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
