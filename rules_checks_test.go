package claudomator_test

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path"
	"slices"
	"strings"
)

type rule struct {
	name  string
	check func(*tree) []violation
}

func rules() []rule {
	return []rule{
		{"layers", checkLayers},
		{"imports", checkImports},
		{"pure", checkPure},
		{"fences", checkFences},
		{"docs", checkDocs},
		{"names", checkNames},
		{"sizes", checkSizes},
		{"state", checkState},
		{"clock", checkClock},
		{"skips", checkSkips},
		{"generated", checkGenerated},
		{"paths", checkPaths},
	}
}

// checkLayers: every package is in a layer, and the table names no ghosts.
func checkLayers(t *tree) []violation {
	var found []violation
	for _, dir := range packages(t.own()) {
		if layerOf(dir, t.mayImport) == "" {
			found = append(found, violation{file: dir, what: "in no layer of mayImport",
				why: "a new package needs a reason that the house does not hold yet: write the decision, then add it"})
		}
	}
	for _, layer := range slices.Sorted(maps.Keys(t.mayImport)) {
		isPlanned := slices.Contains(t.planned, layer)
		if !t.dirs[layer] && !isPlanned {
			found = append(found, violation{file: layer, what: "named in mayImport but not there",
				why: "a rule about nothing hides that its subject was moved or renamed"})
		}
		if t.dirs[layer] && isPlanned {
			found = append(found, violation{file: layer, what: "exists: take it off the planned list",
				why: "the list of what is missing may only shrink"})
		}
	}
	return found
}

// checkImports: a layer imports only the layers the house allows it. Tests may
// import more: they use the real store and real git, not copies of them.
func checkImports(t *tree) []violation {
	var found []violation
	for _, f := range t.own() {
		layer := layerOf(f.dir, t.mayImport)
		for _, spec := range f.ast.Imports {
			dir, ours := strings.CutPrefix(importPath(spec), module+"/")
			target := layerOf(dir, t.mayImport)
			allowed := t.mayImport[layer]
			if !ours || target == layer || slices.Contains(allowed, target) || slices.Contains(allowed, everything) {
				continue
			}
			found = append(found, violation{f.path, f.line(spec.Pos()),
				fmt.Sprintf("%s imports %s", layer, dir),
				"the arrows of docs/architecture.md keep each package readable alone and replaceable"})
		}
	}
	return found
}

// checkPure: the domain imports nothing that can do or observe anything.
func checkPure(t *tree) []violation {
	var found []violation
	for _, f := range t.own() {
		layer := layerOf(f.dir, t.mayImport)
		allowed, isPure := t.pure[layer]
		if !isPure {
			continue
		}
		for _, spec := range f.ast.Imports {
			p := importPath(spec)
			if strings.HasPrefix(p, module+"/") || slices.Contains(allowed, p) {
				continue
			}
			found = append(found, violation{f.path, f.line(spec.Pos()), fmt.Sprintf("%s imports %s", layer, p),
				"decisions are pure: time, identifiers and IO are inputs, so every one can be replayed and tested"})
		}
	}
	return found
}

// checkFences: some dependencies are known to few packages.
func checkFences(t *tree) []violation {
	var found []violation
	for _, f := range t.own() {
		for _, spec := range f.ast.Imports {
			for _, fence := range t.fences {
				inside := slices.ContainsFunc(fence.layers, func(l string) bool { return within(f.dir, l) })
				if inside || !within(importPath(spec), fence.path) {
					continue
				}
				what := "imports " + importPath(spec)
				if len(fence.layers) > 0 {
					what += ", which only " + strings.Join(fence.layers, ", ") + " may"
				}
				found = append(found, violation{f.path, f.line(spec.Pos()), what, fence.why})
			}
		}
	}
	return found
}

// checkDocs: doc.go tells what a package is before its code does.
func checkDocs(t *tree) []violation {
	comments := map[string]string{}
	for _, f := range t.own() {
		if path.Base(f.path) == "doc.go" && f.ast.Doc != nil {
			comments[f.dir] = f.ast.Doc.Text()
		}
	}
	var found []violation
	for _, dir := range packages(t.own()) {
		subject, _, _ := strings.Cut(comments[dir], " ")
		if subject != "Package" && subject != "Command" {
			found = append(found, violation{file: dir, what: `no doc.go with a comment that begins "Package" or "Command"`,
				why: "what it is, its invariants, who calls it and what happens when it fails is read first"})
		}
	}
	return found
}

// checkNames: a package is named for what it holds.
func checkNames(t *tree) []violation {
	vague := []string{"util", "utils", "common", "helper", "helpers", "model", "models", "types", "misc", "shared"}
	var found []violation
	for _, dir := range packages(t.own()) {
		if slices.Contains(vague, path.Base(dir)) {
			found = append(found, violation{file: dir, what: "named for no content",
				why: "such a package grows everything; a helper lives beside its only user"})
		}
	}
	return found
}

// checkState: no package holds state or does anything by being imported.
func checkState(t *tree) []violation {
	const whyInit = "what happens on import cannot be ordered, tested or left out"
	const whyVar = "state that belongs to nobody couples tests and callers: pass it, or return it from a function"
	var found []violation
	for _, f := range t.own() {
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.Name == "init" && d.Recv == nil {
					found = append(found, violation{f.path, f.line(d.Pos()), "func init", whyInit})
				}
			case *ast.GenDecl:
				for _, name := range stateful(d) {
					found = append(found, violation{f.path, f.line(name.Pos()), "package variable " + name.Name, whyVar})
				}
			}
		}
	}
	return found
}

// stateful lists the variables of a declaration that are not fixed at build:
// interface guards, error sentinels, compiled expressions and embeds are.
func stateful(d *ast.GenDecl) []*ast.Ident {
	if d.Tok != token.VAR {
		return nil
	}
	var names []*ast.Ident
	for _, spec := range d.Specs {
		v := spec.(*ast.ValueSpec)
		if embeds(d.Doc) || embeds(v.Doc) {
			continue
		}
		for i, name := range v.Names {
			var value ast.Expr
			if i < len(v.Values) {
				value = v.Values[i]
			}
			if name.Name != "_" && !fixed(name.Name, value) {
				names = append(names, name)
			}
		}
	}
	return names
}

func embeds(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool {
		return strings.HasPrefix(c.Text, "//go:embed ")
	})
}

// fixed tells an error sentinel or a compiled regular expression.
func fixed(name string, value ast.Expr) bool {
	if _, isCall := value.(*ast.CallExpr); !isCall {
		lit, isPointer := value.(*ast.UnaryExpr)
		return isPointer && lit.Op == token.AND && isErrorName(name)
	}
	return isErrorName(name) || calls(value, "regexp", "MustCompile")
}

func isErrorName(name string) bool {
	return strings.HasPrefix(name, "Err") || strings.HasPrefix(name, "err")
}

func calls(e ast.Expr, pkg, fn string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == pkg && sel.Sel.Name == fn
}

// checkClock: time.Now and time.Sleep only where real time is the subject.
func checkClock(t *tree) []violation {
	var found []violation
	for _, f := range t.goes {
		imports := f.imports()
		name, usesTime := imports["time"]
		_, virtual := imports["testing/synctest"]
		if !usesTime || virtual || f.generated || readsClock(t, f) {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if ok && x.Name == name && slices.Contains([]string{"Now", "Sleep", "Since", "Until"}, sel.Sel.Name) {
				found = append(found, violation{f.path, f.line(sel.Pos()), "time." + sel.Sel.Name,
					"the clock is an input: hours are tested in milliseconds, and no test waits or flickers"})
			}
			return true
		})
	}
	return found
}

func readsClock(t *tree, f *goFile) bool {
	places := slices.Collect(maps.Keys(t.clockReaders))
	if f.test {
		places = t.clockInTests
	}
	return slices.ContainsFunc(places, func(p string) bool { return within(f.dir, p) })
}

// checkGenerated: what is generated can be generated again by one command.
func checkGenerated(t *tree) []violation {
	generators := map[string]bool{}
	for _, f := range t.goes {
		if !f.generated && strings.Contains(f.text, "\n//go:generate ") {
			generators[f.dir] = true
		}
	}
	var found []violation
	for _, f := range t.goes {
		if f.generated && !generators[f.dir] {
			found = append(found, violation{file: f.path, what: "generated, but its package has no //go:generate line",
				why: "make verify proves generated files current only if make generate makes them"})
		}
	}
	return found
}

// checkPaths: no file names a place on the machine it was written on.
func checkPaths(t *tree) []violation {
	var found []violation
	for _, file := range t.files {
		for i, line := range strings.Split(file.text, "\n") {
			for _, p := range t.machinePaths {
				if mentions(line, p) {
					found = append(found, violation{file.path, i + 1, "names " + p,
						"a path of one machine is wrong on every other one"})
				}
			}
		}
	}
	return found
}

// mentions finds p in line where it begins a path: "/src/" is not in "/usr/src/".
func mentions(line, p string) bool {
	for from := 0; ; {
		i := strings.Index(line[from:], p)
		if i < 0 {
			return false
		}
		at := from + i
		if at == 0 || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/}", rune(line[at-1])) {
			return true
		}
		from = at + len(p)
	}
}

// packages lists the folders of files, in order.
func packages(files []*goFile) []string {
	var dirs []string
	for _, f := range files {
		dirs = append(dirs, f.dir)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}
