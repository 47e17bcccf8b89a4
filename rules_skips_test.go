package claudomator_test

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// checkSkips: a test that skips fails where CI sets CLAUDOMATOR_CI instead.
func checkSkips(t *tree) []violation {
	var found []violation
	needed := map[string]bool{}
	for _, f := range t.goes {
		for _, decl := range f.ast.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || asksCI(f, fn) {
				continue
			}
			key := f.path + " " + fn.Name.Name
			for _, call := range skips(fn) {
				needed[key] = true
				if _, allowed := t.mayLack[key]; !allowed {
					found = append(found, violation{f.path, f.line(call.Pos()), "skips without asking CLAUDOMATOR_CI",
						"a test that is skipped everywhere tests nothing: CONTRIBUTING.md, \"Skipping\""})
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(t.mayLack)) {
		if !needed[key] {
			file, _, _ := strings.Cut(key, " ")
			found = append(found, violation{file: file, what: fmt.Sprintf("%q in mayLack is not needed any more", key),
				why: "the list of exceptions may only shrink"})
		}
	}
	return found
}

// asksCI tells whether the function looks at the variable at all; that it fails
// then is for its reader to see.
func asksCI(f *goFile, fn *ast.FuncDecl) bool {
	body := f.text[f.set.Position(fn.Pos()).Offset:f.set.Position(fn.End()).Offset]
	return strings.Contains(body, `"CLAUDOMATOR_CI"`)
}

// skips lists the names of the skipping methods that a function calls.
func skips(fn *ast.FuncDecl) []*ast.Ident {
	var all []*ast.Ident
	ast.Inspect(fn, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) {
				all = append(all, sel.Sel)
			}
		}
		return true
	})
	return all
}
