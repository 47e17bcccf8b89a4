package git

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A run can never undo what was integrated into its branch meanwhile.
func TestHeadThatLacksTheBranchIsMergedIn(t *testing.T) {
	t.Parallel()
	l := newLab(t, "")
	parent := l.run("p", "echo p >p")
	l.prepare("p")
	child := l.run("c", "echo c >c; echo child >a")
	in, err := l.vault.Integrate(l.ctx(), IntegrateSpec{Ref: "refs/heads/claudomator/p", Commit: child.Head, Message: "Take c"})
	if err != nil || in.Before != parent.Head {
		t.Fatalf("integrated %+v, %v", in, err)
	}
	again, err := l.vault.Integrate(l.ctx(), IntegrateSpec{Ref: "refs/heads/claudomator/p", Commit: child.Head, Message: "Take c"})
	if err != nil || !again.Already || again.Commit != in.Commit {
		t.Fatalf("integrated twice %+v, %v", again, err)
	}
	sh(t, l.ws("p"), "echo q >q; git add q; git commit -qm q")
	got := l.collect("p")
	if l.files(got.Head) != "a\nc\np\nq" || !warned(got.Warnings, WarnMerged) {
		t.Fatalf("collected %+v, files %q", got, l.files(got.Head))
	}
	sh(t, l.ws("p"), "echo parent >a; git commit -qam a")
	conflict := l.collect("p")
	if len(conflict.Conflicts) != 1 || conflict.Conflicts[0].Path != "a" || conflict.Head != got.Head {
		t.Fatalf("collected %+v", conflict)
	}
	if now, err := l.vault.Ref(l.ctx(), "refs/heads/claudomator/p"); err != nil || now != got.Head {
		t.Fatalf("the branch moved to %s, %v", now, err)
	}
	// What conflicts is kept, and is what a fix of the task has to merge in.
	p, err := l.vault.Prepare(l.ctx(), Workspace{Dir: l.ws("fix"), Branch: "claudomator/fix", Base: conflict.Head, Merge: conflict.Kept})
	if err != nil || len(p.Conflicts) != 1 {
		t.Fatalf("prepared %+v, %v", p, err)
	}
	sh(t, l.ws("fix"), "grep -q '^child$' a; grep -q '^parent$' a; echo both >a")
	if fixed := l.collect("fix"); len(fixed.Conflicts)+len(fixed.Unresolved) != 0 || l.files(fixed.Head) != "a\nc\np\nq" {
		t.Errorf("collected %+v", fixed)
	}
}

func TestConflictsOfIntegration(t *testing.T) {
	t.Parallel()
	l := newLab(t, "printf '\\0a' >bin; echo r >r; seq 30 >ren; mkdir d; echo f >d/f; git add .; git commit -qm more")
	one := l.run("one", "echo 1 >a; printf '\\0b' >bin; git rm -q r; git mv ren ren1; echo n >new; git add -A; git commit -qm 1")
	two := l.run("two", "echo 2 >a; printf '\\0c' >bin; echo rr >r; git mv ren ren2; echo m >new; git add -A; git commit -qm 2")
	in, err := l.vault.Integrate(l.ctx(), IntegrateSpec{Ref: "refs/heads/claudomator/one", Commit: two.Head, Message: "m"})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, c := range in.Conflicts {
		kinds[c.Path] = c.Kind
	}
	want := map[string]string{"a": "content", "bin": "binary", "r": "modify/delete", "ren": "rename", "ren1": "rename", "ren2": "rename", "new": "add/add"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Error(diff)
	}
	if in.Commit != one.Head {
		t.Error("the ref moved")
	}
	// As a fix's work: unmerged index, markers, and a failed round if left so.
	p, err := l.vault.Prepare(l.ctx(), Workspace{Dir: l.ws("fix"), Branch: "claudomator/fix", Base: two.Head, Merge: one.Head})
	if err != nil || len(p.Conflicts) != len(in.Conflicts) {
		t.Fatalf("prepared %+v, %v", p, err)
	}
	sh(t, l.ws("fix"), "grep -q '<<<<<<<' a; test -n \"$(git ls-files -u)\"")
	got := l.collect("fix")
	if len(got.Unresolved) == 0 || got.Head != two.Head || got.Snapshot == "" {
		t.Fatalf("collected %+v", got)
	}
	sh(t, l.ws("fix"), "echo 12 >a; echo nm >new; git rm -q --cached ren ren1 r 2>/dev/null; rm -f ren ren1 r; git add -A; git commit -qm fixed")
	got = l.collect("fix")
	if len(got.Unresolved) != 0 || len(got.Conflicts) != 0 {
		t.Fatalf("collected %+v", got)
	}
	for _, side := range []string{one.Head, two.Head} {
		if ok, err := l.vault.Contains(l.ctx(), side, got.Head); err != nil || !ok {
			t.Errorf("%s is not in the result, %v", side, err)
		}
	}
	clean, err := l.vault.Merge(l.ctx(), []string{one.Head, l.run("three", "echo 3 >three").Head}, "Base\n")
	if err != nil || clean.Commit == "" {
		t.Fatalf("merged %+v, %v", clean, err)
	}
	bad, err := l.vault.Merge(l.ctx(), []string{one.Head, two.Head}, "Base\n")
	if err != nil || bad.With != 1 || len(bad.Conflicts) == 0 {
		t.Fatalf("merged %+v, %v", bad, err)
	}
}
