package git

import (
	"context"
	"errors"
	"strconv"
	"strings"
)

// FileStat is one changed file. Paths are raw; show them through Display.
type FileStat struct {
	Path       string
	OldPath    string // of a rename
	Status     string // A, M, D, R, T
	OldMode    string
	NewMode    string
	Insertions int
	Deletions  int
	Binary     bool
	oldHash    string
	newHash    string
}

// Stat is the difference between two commits, every file once.
type Stat struct {
	Files      []FileStat
	Insertions int
	Deletions  int
}

// Diff compares two commits of the vault.
func (v *Vault) Diff(ctx context.Context, base, head string) (Stat, error) {
	if stat, ok := v.plainDiff(ctx, base, head); ok {
		return stat, nil
	}
	return v.treeDiff(ctx, base, head)
}

// treeDiff lets git compare.
func (v *Vault) treeDiff(ctx context.Context, base, head string) (Stat, error) {
	out, err := v.git.run(ctx, command{
		args:   []opt{"diff-tree", "-r", "-z", "-M", "--raw", "--numstat", "--no-ext-diff", "--no-textconv", "--end-of-options"},
		values: []string{base, head}, env: v.env(),
	})
	if err != nil {
		return Stat{}, err
	}
	return parseDiff(out)
}

// rawDiff compares two trees without counting lines.
func (v *Vault) rawDiff(ctx context.Context, base, head string) ([]FileStat, error) {
	out, err := v.git.run(ctx, command{
		args: []opt{"diff-tree", "-r", "-z", "--raw", "--no-renames", "--end-of-options"}, values: []string{base, head}, env: v.env(),
	})
	if err != nil {
		return nil, err
	}
	stat, err := parseDiff(out)
	return stat.Files, err
}

// Patch returns the text of a difference, for all files or the given ones (for
// a rename give both names), cut at limit bytes. No filter, external program
// or text conversion takes part.
func (v *Vault) Patch(ctx context.Context, base, head string, paths []string, limit int) (patch []byte, cut bool, err error) {
	out, err := v.git.run(ctx, command{
		args:   []opt{"diff-tree", "-r", "-p", "-M", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color", "--end-of-options"},
		values: []string{base, head}, paths: paths, env: v.env(), limit: limit,
	})
	if KindOf(err) == KindTooLarge {
		return out, true, nil
	}
	return out, false, err
}

// parseDiff reads raw records, then numstat records, both NUL-separated.
func parseDiff(out []byte) (Stat, error) {
	fields := strings.Split(string(out), "\x00")
	var s Stat
	at := map[string]int{}
	next := func() (f string, ok bool) {
		if len(fields) == 0 || len(fields) == 1 && fields[0] == "" {
			return "", false
		}
		f, fields = fields[0], fields[1:]
		return f, true
	}
	for len(fields) > 0 && strings.HasPrefix(fields[0], ":") {
		head, _ := next()
		f, err := parseRaw(head)
		if err != nil {
			return Stat{}, err
		}
		first, ok := next()
		f.Path = first
		if ok && f.Status == "R" {
			f.OldPath = first
			f.Path, ok = next()
		}
		if !ok {
			return Stat{}, errDiff()
		}
		at[f.Path] = len(s.Files)
		s.Files = append(s.Files, f)
	}
	for {
		record, ok := next()
		if !ok {
			return s, nil
		}
		parts := strings.SplitN(record, "\t", 3)
		if len(parts) != 3 {
			return Stat{}, errDiff()
		}
		name := parts[2]
		if name == "" { // a rename: old and new follow
			_, ok1 := next()
			var ok2 bool
			if name, ok2 = next(); !ok1 || !ok2 {
				return Stat{}, errDiff()
			}
		}
		if err := s.count(at, name, parts[0], parts[1]); err != nil {
			return Stat{}, err
		}
	}
}

func (s *Stat) count(at map[string]int, name, plus, minus string) error {
	i, ok := at[name]
	if !ok {
		return errDiff()
	}
	f := &s.Files[i]
	if plus == "-" && minus == "-" {
		f.Binary = true
		return nil
	}
	var err1, err2 error
	f.Insertions, err1 = strconv.Atoi(plus)
	f.Deletions, err2 = strconv.Atoi(minus)
	s.Insertions += f.Insertions
	s.Deletions += f.Deletions
	return errors.Join(err1, err2)
}

// parseRaw reads ":OLDMODE NEWMODE OLDHASH NEWHASH STATUS".
func parseRaw(head string) (FileStat, error) {
	part := strings.Fields(strings.TrimPrefix(head, ":"))
	if len(part) != 5 || !isHash(part[3]) || part[4] == "" {
		return FileStat{}, errDiff()
	}
	status := part[4][:1]
	if status == "C" {
		return FileStat{}, errDiff() // never asked for
	}
	return FileStat{Status: status, OldMode: part[0], NewMode: part[1], oldHash: part[2], newHash: part[3]}, nil
}

func errDiff() *Error { return fail(KindFailed, "diff-tree wrote something unexpected") }
