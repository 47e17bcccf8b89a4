package git

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	originPrefix = "refs/remotes/origin/" // the source's branches
	sourcePrefix = "refs/remotes/source/" // what the source knows of its remotes
)

// Fetch brings the source's branches into the vault and forgets those that are
// gone. Callers that arrive while one runs share the next one. A local source
// whose refs did not change costs no process.
func (v *Vault) Fetch(ctx context.Context) error {
	if v.source.kind == sourceNone {
		return nil
	}
	asked := time.Now()
	unlock, err := v.git.locks.lock(ctx, v.dir+"\x00fetch")
	if err != nil {
		return err
	}
	defer unlock()
	if v.fetched.After(asked) {
		return nil
	}
	began := time.Now()
	if err := v.fetch(ctx); err != nil {
		return err
	}
	v.fetched = began
	return nil
}

func (v *Vault) fetch(ctx context.Context) error {
	if v.source.kind == sourcePath {
		return v.fetchPath(ctx)
	}
	for wait := 50 * time.Millisecond; ; wait *= 2 {
		_, err := v.git.run(ctx, command{
			args: []opt{"fetch", "-q", "--prune", "--no-tags", "--no-auto-gc", "--no-write-fetch-head",
				"--no-recurse-submodules", "--update-shallow"},
			values: []string{v.source.text, "+refs/heads/*:" + originPrefix + "*"}, env: v.env(), network: true,
		})
		if KindOf(err) != KindLocked || wait > time.Second {
			if err != nil {
				return unreachable(v.source.text, err)
			}
			return nil
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// fetchPath reads a local source without running git in it: its refs as files,
// its objects as an alternate of the vault.
func (v *Vault) fetchPath(ctx context.Context) error {
	loc, err := locate(v.source.text)
	if err != nil {
		return err
	}
	theirs, err := v.git.refsAt(ctx, loc)
	if err != nil {
		return err
	}
	print := fingerprint(theirs)
	if print == v.print {
		return nil
	}
	ours, err := v.Refs(ctx, "refs/remotes/")
	if err != nil {
		return err
	}
	wanted := mirror(theirs)
	tips := map[string]bool{}
	for _, hash := range ours {
		tips[hash] = true
	}
	t := transfer{from: append(v.env(), alternates(filepath.Join(loc.common, "objects"))), to: v.env(), have: sortedKeys(tips)}
	for _, hash := range wanted {
		if !tips[hash] && !slices.Contains(t.want, hash) {
			t.want = append(t.want, hash)
		}
	}
	if err := v.takeShallow(loc); err != nil {
		return err
	}
	if len(t.want) > 0 {
		if err := v.git.transfer(ctx, t); err != nil {
			return unreachable(v.source.text, err)
		}
	}
	if err := v.mirrorRefs(ctx, ours, wanted); err != nil {
		return err
	}
	v.print = print
	return nil
}

// mirror names the source's refs as the vault keeps them.
func mirror(theirs map[string]string) map[string]string {
	wanted := map[string]string{}
	for ref, hash := range theirs {
		if name, ok := strings.CutPrefix(ref, "refs/heads/"); ok {
			wanted[originPrefix+name] = hash
		} else if name, ok := strings.CutPrefix(ref, "refs/remotes/"); ok && !strings.HasSuffix(name, "/HEAD") {
			wanted[sourcePrefix+name] = hash
		}
	}
	return wanted
}

// mirrorRefs deletes first, so that a branch "release" can give way to
// "release/1".
func (v *Vault) mirrorRefs(ctx context.Context, ours, wanted map[string]string) error {
	unlock, err := v.git.locks.lock(ctx, v.dir+"\x00refs")
	if err != nil {
		return err
	}
	defer unlock()
	var gone []string
	for ref := range ours {
		if wanted[ref] == "" {
			gone = append(gone, ref)
		}
	}
	slices.Sort(gone)
	if err := v.deleteRefs(ctx, gone); err != nil {
		return err
	}
	for _, ref := range sortedKeys(wanted) {
		if ours[ref] == wanted[ref] {
			continue
		}
		if err := v.swapRef(ctx, ref, wanted[ref], ours[ref]); err != nil {
			return err
		}
	}
	return nil
}

// takeShallow copies the places where a shallow source's history ends.
func (v *Vault) takeShallow(loc location) error {
	data, err := os.ReadFile(filepath.Join(loc.common, "shallow"))
	if missing(err) {
		return nil
	}
	if err != nil {
		return fail(KindUnreachable, "read %s", loc.common).because(err)
	}
	if old, err := os.ReadFile(filepath.Join(v.dir, "shallow")); err == nil && string(old) == string(data) {
		return nil
	}
	v.reader.rest() // it read the old boundary when it started
	return writeFile(filepath.Join(v.dir, "shallow"), data)
}
