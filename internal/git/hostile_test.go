package git

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plant is a way to attack the server from a workspace. The marker file tells
// whether a planted program ran.
type plant struct {
	name, script string // $M is the marker's path
	refused      bool
}

func plants() []plant {
	return []plant{
		{name: "promisor remote", script: `
			git config extensions.partialClone evil; git config remote.evil.url "ext::sh -c 'touch $M'"; git config remote.evil.promisor true
			git config protocol.ext.allow always; git config core.repositoryformatversion 1
			b=$(echo gone | git hash-object -w --stdin); git update-index --add --cacheinfo 100644,$b,gone; git commit -qm gone
			rm -f .git/objects/$(echo $b | cut -c1-2)/$(echo $b | cut -c3-)`, refused: true},
		{name: "clean filter", script: `
			git config filter.e.clean "touch $M; cat"; git config filter.e.smudge "touch $M; cat"; git config filter.e.required true
			echo '* filter=e' >.git/info/attributes; echo '* filter=e' >.gitattributes; touch -d '1 hour ago' a; echo dirt >new; rm -f "$M"`},
		{name: "fsmonitor", script: `git config core.fsmonitor "touch $M"; echo dirt >new; rm -f "$M"`},
		{name: "hooks", script: `
			for h in post-checkout pre-commit post-commit reference-transaction post-index-change update; do
				printf '#!/bin/sh\ntouch %s\n' "$M" >.git/hooks-$h; mkdir -p .git/hooks; mv .git/hooks-$h .git/hooks/$h; chmod +x .git/hooks/$h; done
			echo dirt >new; rm -f "$M"`},
		{name: "assorted configuration", script: `
			for k in core.sshCommand uploadpack.packObjectsHook core.alternateRefsCommand core.gitProxy core.editor core.pager diff.external gpg.program credential.helper; do git config $k "touch $M"; done
			git config commit.gpgsign true; git config diff.x.textconv "touch $M"; git config merge.x.driver "touch $M"
			echo '* diff=x merge=x' >.gitattributes; echo dirt >new; rm -f "$M"`},
		{name: "nested repository with fsmonitor", script: `
			mkdir sub; cd sub; git init -q; git config user.name n; git config user.email n@n; echo n >n; git add n; git commit -qm n; git config core.fsmonitor "touch $M"; cd ..
			git -c core.fsmonitor=false add sub 2>/dev/null; git commit -qm sub; echo more >sub/n; rm -f "$M"`},
		{name: "foreign alternates", script: `
			git init -q ../foreign; cd ../foreign; echo private >p; git add p; cd "$OLDPWD"
			echo "$(cd ../foreign/.git/objects; pwd)" >>.git/objects/info/alternates
			git update-index --add --cacheinfo 100644,$(git -C ../foreign hash-object p),p; git commit -qm p`, refused: true},
		{name: "alternates as a link", script: `
			cp .git/objects/info/alternates ../alt; rm .git/objects/info/alternates; ln -s ../../../../alt .git/objects/info/alternates`, refused: true},
		{name: "forged loose object", script: `
			echo good >g; git add g; git commit -qm g; b=$(git rev-parse HEAD:g); o=$(echo evil | git hash-object -w --stdin)
			f() { echo .git/objects/$(echo $1 | cut -c1-2)/$(echo $1 | cut -c3-); }; rm -f $(f $b); cp $(f $o) $(f $b)`, refused: true},
		{name: ".git entry in a tree", script: `
			b=$(echo '[core] fsmonitor = x' | git hash-object -w --stdin); c=$(printf "100644 blob $b\tconfig\n" | git mktree)
			t=$( (git ls-tree HEAD; printf "040000 tree $c\t.git\n") | git mktree); git reset -q --soft $(git commit-tree -p HEAD -m evil $t)`, refused: true},
		{name: "tree with dots", script: `
			b=$(echo x | git hash-object -w --stdin); c=$(printf "100644 blob $b\tx\n" | git mktree)
			t=$( (git ls-tree HEAD; printf "040000 tree $c\t..\n") | git mktree); git reset -q --soft $(git commit-tree -p HEAD -m evil $t)`, refused: true},
		{name: "link below objects", script: `echo b >b; git add b; git commit -qm b; mv .git/objects/pack .git/p; ln -s ../p .git/objects/pack`, refused: true},
		{name: "pipe below objects", script: `mkfifo .git/objects/pack/pack-x.idx`, refused: true},
		{name: "HEAD is a link", script: `rm .git/HEAD; ln -s /etc/passwd .git/HEAD`, refused: true},
		{name: "HEAD is a pipe", script: `rm .git/HEAD; mkfifo .git/HEAD`, refused: true},
		{name: "HEAD names a file outside", script: `echo 'ref: refs/../../../../etc/passwd' >.git/HEAD`, refused: true},
		{name: "refs through a link", script: `mv .git/refs ../refs; ln -s ../../refs .git/refs`, refused: true},
		{name: ".git is a link", script: `mv .git ../g; ln -s ../g .git`, refused: true},
		{name: ".git is a file that points elsewhere", script: `
			mv .git ../own; git init -q ../evil; git -C ../evil config core.fsmonitor "touch $M"; echo "gitdir: $(cd ../evil/.git; pwd)" >.git`, refused: true},
		{name: "pipe among the files", script: `mkfifo p; mkfifo .gitignore; mkfifo sub.gitattributes; echo dirt >new`},
		{name: "broken index", script: `echo >.git/index; echo dirt >new`},
		{name: "forged commit graph", script: `echo b >b; git add b; git commit -qm b; git commit-graph write --reachable; echo dirt >new`},
		{name: "packed", script: `echo new >new; git add new; git commit -qm b; git gc -q`},
	}
}

func TestHostileWorkspaces(t *testing.T) {
	t.Parallel()
	for _, p := range plants() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, "")
			marker := filepath.Join(filepath.Dir(l.dir), "ran")
			l.prepare("t")
			base := l.head("main")
			if out, err := trySh(l.ws("t"), "M='"+marker+"'; "+p.script); err != nil {
				t.Fatalf("planting: %v\n%s", err, out)
			}
			got, err := l.tryCollect("t")
			switch {
			case p.refused:
				wantKind(t, err, KindUnsafeWorkspace)
				if head, err := l.vault.Ref(l.ctx(), "refs/heads/claudomator/t"); err != nil || head != base {
					t.Errorf("the branch moved to %s, %v", head, err)
				}
			case err != nil:
				t.Fatal(err)
			case p.name != "nested repository with fsmonitor" && !strings.Contains(l.files(got.Head), "new"):
				t.Errorf("files %q", l.files(got.Head))
			}
			// The same workspace must be usable and removable afterwards.
			l.prepare("t")
			if exists(marker) {
				t.Error("a planted program ran")
			}
			sh(t, l.ws("t"), "git status --porcelain; echo again >again; git add again; git commit -qm again; rm -f '"+marker+"'")
			if got := l.collect("t"); !strings.Contains(l.files(got.Head), "again") {
				t.Errorf("second run: %+v", got)
			}
			if _, err := l.vault.Discard(l.ctx(), l.ws("t"), filepath.Join(filepath.Dir(l.dir), "bin")); err != nil {
				t.Error(err)
			}
			if exists(marker) {
				t.Error("a planted program ran")
			}
			l.sound()
		})
	}
}

// A source is read without its configuration too.
func TestSourceConfigurationRunsNothing(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	marker := filepath.Join(filepath.Dir(l.dir), "ran")
	sh(t, l.repo, `M='`+marker+`'
		for k in core.fsmonitor core.sshCommand uploadpack.packObjectsHook core.alternateRefsCommand core.pager diff.external; do git config $k "touch $M"; done
		git config filter.e.clean "touch $M; cat"; git config filter.e.smudge "touch $M; cat"; git config filter.e.required true
		mkdir -p .git/hooks
		for h in post-checkout pre-merge-commit commit-msg post-merge reference-transaction post-index-change pre-push update pre-receive; do
			printf '#!/bin/sh\ntouch %s\nexit 1\n' "$M" >.git/hooks/$h; chmod +x .git/hooks/$h; done
		echo '*.bin filter=e' >.git/info/attributes`)
	got := l.run("t", "echo x >x.bin; git add x.bin; git commit -qm x")
	if out := l.land("t", got.Head); out.Checkout == "" {
		t.Fatalf("landed %+v", out)
	}
	if exists(marker) {
		t.Fatal("a configured program ran")
	}
	if x := sh(t, l.repo, "cat x.bin"); x != "x" {
		t.Fatalf("checkout holds %q", x)
	}
}

func TestB54LinksOutAreText(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	secret := filepath.Join(filepath.Dir(l.dir), "outside.txt")
	write(t, secret, "secret")
	got := l.run("t", "ln -s ../../outside.txt l; ln -s .. d; git add l; git commit -qm l; mkdir sub; ln -s ../../../outside.txt sub/m; ln ../../outside.txt hard")
	if f := l.files(got.Head); f != "a\nd\nhard\nl\nsub/m" {
		t.Fatalf("files %q", f)
	}
	if x := l.show(got.Head, "l") + " " + l.show(got.Head, "d") + " " + l.show(got.Head, "sub/m"); x != "../../outside.txt .. ../../../outside.txt" {
		t.Fatalf("links hold %q", x)
	}
	if p, _, err := l.vault.Patch(l.ctx(), got.Base, got.Head, []string{":(top)a"}, 1<<20); err != nil || len(p) > 0 {
		t.Fatalf("a name was taken as a pattern: %q, %v", p, err)
	}
	// A tracked folder replaced by a link to one outside: nothing outside is written.
	outside := t.TempDir()
	write(t, outside+"/f", "mine")
	l2 := newLab(t, "mkdir d; echo f >d/f; git add d; git commit -qm d")
	got = l2.run("t", "rm -r d; ln -s "+outside+" d")
	if l2.files(got.Head) != "a\nd" || l2.show(got.Head, "d") != outside {
		t.Fatalf("files %q", l2.files(got.Head))
	}
	if err := l2.vault.SetRef(l2.ctx(), "refs/heads/claudomator/t", got.Base, got.Head); err != nil {
		t.Fatal(err)
	}
	l2.prepare("t") // back to the folder
	if f := sh(t, l2.ws("t"), "cat d/f; cat "+outside+"/f"); f != "f\nmine" {
		t.Fatalf("got %q", f)
	}
}

// B21: only what is proved to be ours is moved.
func TestB21NothingForeignIsRemoved(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	bin := filepath.Join(filepath.Dir(l.dir), "bin")
	l.prepare("t1")
	l.prepare("t2")
	sh(t, l.dir, "echo keep >t2/keep; mv t1 moved; ln -s t2 t1")
	_, err := l.vault.Discard(l.ctx(), l.ws("t1"), bin)
	wantKind(t, err, KindUnsafeWorkspace)
	_, err = l.tryCollect("t1")
	wantKind(t, err, KindUnsafeWorkspace)
	_, err = l.vault.Snapshot(l.ctx(), l.ws("t1"), SnapshotPrefix+"t1/1", "m")
	wantKind(t, err, KindUnsafeWorkspace)
	_, err = l.vault.Prepare(l.ctx(), Workspace{Dir: l.ws("t1"), Branch: "claudomator/t1", Base: l.head("main")})
	wantKind(t, err, KindPathOccupied)
	_, err = l.vault.Discard(l.ctx(), l.repo, bin)
	wantKind(t, err, KindUnsafeWorkspace)
	if s := sh(t, l.dir, "cat t2/keep; cat moved/a; cat ../R/a"); s != "keep\none\none" {
		t.Fatalf("got %q", s)
	}
	if n, err := l.git.EmptyBin(l.ctx(), bin, l.git.opts.Now().AddDate(1, 0, 0)); err != nil || n != 0 {
		t.Fatalf("emptied %d, %v", n, err)
	}
}

func TestDiscardKeepsWorkAndTheBinItsTime(t *testing.T) {
	t.Parallel()
	l := newLab(t, "echo '*.log' >.gitignore; git add .; git commit -qm i")
	bin := filepath.Join(filepath.Dir(l.dir), "bin")
	l.prepare("t")
	sh(t, l.ws("t"), "echo c >c; git add c; git commit -qm c; echo two >a; echo u >u; echo l >l.log; git stash -q; echo three >a; echo >.git/index; mkdir ro; echo r >ro/r; chmod 555 ro")
	d, err := l.vault.Discard(l.ctx(), l.ws("t"), bin)
	if err != nil || d.Snapshot == "" || exists(l.ws("t")) || !exists(d.Binned) {
		t.Fatalf("discarded %+v, %v", d, err)
	}
	if x := l.show(d.Snapshot, "a") + l.show(d.Snapshot, "u") + l.show(d.Snapshot, "l.log") + l.show(d.Snapshot, "c"); x != "threeulc" {
		t.Fatalf("snapshot holds %q", x)
	}
	kept, err := l.vault.Refs(l.ctx(), KeptPrefix+"t/")
	if err != nil || len(kept) < 2 { // the stash and the commit
		t.Fatalf("kept %v, %v", kept, err)
	}
	if d, err = l.vault.Discard(l.ctx(), l.ws("t"), bin); err != nil || !d.Gone {
		t.Fatalf("discarding twice: %+v, %v", d, err)
	}
	write(t, filepath.Join(bin, "foreign", "f"), "f")
	if n, err := l.git.EmptyBin(l.ctx(), bin, l.git.opts.Now().AddDate(0, 0, -1)); err != nil || n != 0 {
		t.Fatalf("emptied %d too early, %v", n, err)
	}
	if n, err := l.git.EmptyBin(l.ctx(), bin, l.git.opts.Now().AddDate(0, 0, 1)); err != nil || n != 1 {
		t.Fatalf("emptied %d, %v", n, err)
	}
	if left, err := os.ReadDir(bin); err != nil || len(left) != 1 || left[0].Name() != "foreign" {
		t.Fatalf("left %v, %v", left, err)
	}
	list, err := l.vault.Snapshots(l.ctx(), SnapshotPrefix+"t/")
	if err != nil || len(list) != 1 || list[0].Message == "" {
		t.Fatalf("snapshots %v, %v", list, err)
	}
}

// A same-size edit with its times put back is undone by the next Prepare; an
// index of our own with a fresh time would have let it stand.
func TestTamperedFilesAreRestored(t *testing.T) {
	t.Parallel()
	l := newLab(t, "echo good1 >f; echo good2 >g; mkdir d; echo d >d/d; git add .; git commit -qm more")
	l.prepare("t")
	base := l.head("main")
	sh(t, l.ws("t"), `touch -r f ../time; printf 'evil1\n' >f; touch -r ../time f; rm g; ln -s a g; rm -r d; echo x >d; git config core.fsmonitor "echo"; printf '* filter=x\n' >.git/info/attributes`)
	got := l.collect("t")
	if err := l.vault.SetRef(l.ctx(), "refs/heads/claudomator/t", base, got.Head); err != nil {
		t.Fatal(err)
	}
	l.prepare("t")
	if s := sh(t, l.ws("t"), "cat f g d/d; git status --porcelain"); s != "good1\ngood2\nd" {
		t.Fatalf("got %q", s)
	}
}
