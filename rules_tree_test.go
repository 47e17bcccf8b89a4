package claudomator_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// book is one set of tables: the repository's, or that of a planted tree.
type book struct {
	mayImport    map[string][]string
	planned      []string
	pure         map[string][]string
	fences       []fence
	clockReaders map[string]string
	clockInTests []string
	oversize     map[string]string
	mayLack      map[string]string
	machinePaths []string
}

// violation is one broken rule: where, what, and why the rule exists.
type violation struct {
	file string
	line int // 0: the file or folder as a whole
	what string
	why  string
}

func (v violation) String() string {
	if v.line == 0 {
		return fmt.Sprintf("%s: %s", v.file, v.what)
	}
	return fmt.Sprintf("%s:%d: %s", v.file, v.line, v.what)
}

// tree is what the checks see: every file, and the Go files parsed.
type tree struct {
	book
	files []textFile
	goes  []*goFile
	dirs  map[string]bool
}

type textFile struct{ path, text string }

type goFile struct {
	path, dir string
	text      string
	set       *token.FileSet
	ast       *ast.File
	test      bool
	generated bool
}

// line is the line of a position in the file.
func (f *goFile) line(pos token.Pos) int { return f.set.Position(pos).Line }

// imports maps each import path of the file to the name it has there.
func (f *goFile) imports() map[string]string {
	names := map[string]string{}
	for _, spec := range f.ast.Imports {
		p := importPath(spec)
		names[p] = path.Base(p)
		if spec.Name != nil {
			names[p] = spec.Name.Name
		}
	}
	return names
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value
	}
	return p
}

// own are the hand-written Go files that are part of the product.
func (t *tree) own() []*goFile {
	var own []*goFile
	for _, f := range t.goes {
		if !f.test && !f.generated {
			own = append(own, f)
		}
	}
	return own
}

// readTree reads every file that belongs to the repository. Folders whose name
// begins with a dot are read too, except git's own: CI's script lives in one.
func readTree(tb testing.TB, fsys fs.FS, b book) *tree {
	tb.Helper()
	t := &tree{book: b, dirs: map[string]bool{}}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skipDir(fsys, p) {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		return t.read(fsys, p)
	})
	if err != nil {
		tb.Fatalf("read the tree: %v", err)
	}
	return t
}

// skipDir leaves out what is not ours to judge: git's files, build products
// (.gitignore), and modules of their own.
func skipDir(fsys fs.FS, p string) bool {
	switch p {
	case ".":
		return false
	case ".git", "bin", "dist", "bench/tmp":
		return true
	}
	_, err := fs.Stat(fsys, path.Join(p, "go.mod"))
	return err == nil || path.Base(p) == "node_modules"
}

func (t *tree) read(fsys fs.FS, p string) error {
	src, err := fs.ReadFile(fsys, p)
	if err != nil {
		return err
	}
	if !utf8.Valid(src) {
		return nil
	}
	t.files = append(t.files, textFile{p, string(src)})
	if path.Ext(p) != ".go" || strings.Contains("/"+p, "/testdata/") {
		return nil
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, p, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse %s: %w", p, err)
	}
	f := &goFile{
		path: p, dir: path.Dir(p), text: string(src), set: set, ast: parsed,
		test: strings.HasSuffix(p, "_test.go"), generated: ast.IsGenerated(parsed),
	}
	t.goes = append(t.goes, f)
	for dir := f.dir; dir != "."; dir = path.Dir(dir) {
		t.dirs[dir] = true
	}
	return nil
}

// byPlace orders violations as a reader goes through the files.
func byPlace(a, b violation) int {
	return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.what, b.what))
}
