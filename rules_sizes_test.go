package claudomator_test

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// measured is one thing with a size, by the name it has in the oversize list.
type measured struct {
	key  string
	at   violation
	size int
	max  int
}

// checkSizes: no file, function or interface is too long to be read in one go,
// and no exception outlives its need.
func checkSizes(t *tree) []violation {
	const why = "large units are where reading stops: split by what a reader looks for"
	var found []violation
	needed := map[string]bool{}
	for _, m := range measureAll(t) {
		if m.size <= m.max {
			continue
		}
		needed[m.key] = true
		if _, allowed := t.oversize[m.key]; !allowed {
			m.at.why = why
			found = append(found, m.at)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.oversize)) {
		if !needed[key] {
			file, _, _ := strings.Cut(key, " ")
			found = append(found, violation{file: file, what: fmt.Sprintf("%q in oversize is not needed any more", key),
				why: "the list of exceptions may only shrink"})
		}
	}
	return found
}

// measureAll sizes files (tests too: they are read as well), and the product's
// functions and interfaces; a test may be one long table.
func measureAll(t *tree) []measured {
	var all []measured
	for _, f := range t.goes {
		if !f.generated {
			all = append(all, measureFile(f))
		}
	}
	for _, f := range t.own() {
		all = append(all, measureFuncs(f)...)
	}
	return append(all, measureInterfaces(t.own())...)
}

func measureFile(f *goFile) measured {
	lines := strings.Count(f.text, "\n")
	return measured{f.path, violation{file: f.path, what: fmt.Sprintf("%d lines, at most %d", lines, maxFileLines)}, lines, maxFileLines}
}

func measureFuncs(f *goFile) []measured {
	var all []measured
	for _, decl := range f.ast.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		lines := f.line(fn.End()) - f.line(fn.Pos()) + 1
		all = append(all, measured{f.path + " " + fn.Name.Name,
			violation{file: f.path, line: f.line(fn.Pos()), what: fmt.Sprintf("func %s has %d lines, at most %d", fn.Name.Name, lines, maxFuncLines)},
			lines, maxFuncLines})
	}
	return all
}

// measureInterfaces counts methods, embedded ones included where the embedded
// interface stands in the same package: embedding hides no size.
func measureInterfaces(files []*goFile) []measured {
	type named struct {
		file *goFile
		spec *ast.TypeSpec
		body *ast.InterfaceType
	}
	found := map[string]named{}
	for _, f := range files {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if body, ok := spec.Type.(*ast.InterfaceType); ok {
					found[f.dir+" "+spec.Name.Name] = named{f, spec, body}
				}
			}
			return true
		})
	}
	var count func(dir string, body *ast.InterfaceType) int
	count = func(dir string, body *ast.InterfaceType) int {
		n := 0
		for _, m := range body.Methods.List {
			embedded, isIdent := m.Type.(*ast.Ident)
			switch inner, known := found[dir+" "+identName(embedded)]; {
			case isIdent && known:
				n += count(dir, inner.body)
			default:
				n += max(1, len(m.Names))
			}
		}
		return n
	}
	var all []measured
	delete(found, useCases)
	for _, key := range slices.Sorted(maps.Keys(found)) {
		i := found[key]
		size := count(i.file.dir, i.body)
		all = append(all, measured{key,
			violation{file: i.file.path, line: i.file.line(i.spec.Pos()), what: fmt.Sprintf("interface %s has %d methods, at most %d", i.spec.Name.Name, size, maxInterfaceSize)},
			size, maxInterfaceSize})
	}
	return all
}

func identName(id *ast.Ident) string {
	if id == nil {
		return ""
	}
	return id.Name
}
