package simulator

import (
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"strings"
	"testing"
)

// Each check has its rule in the table Checks, and is used by some code. A check that nothing uses
// proves nothing.
func TestChecks(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	declared, used := map[string]Check{}, map[string]bool{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(gotoken.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == gotoken.CONST {
				declare(declared, g)
				continue
			}
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == gotoken.VAR && g.Specs[0].(*ast.ValueSpec).Names[0].Name == "Checks" {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					used[id.Name] = true
				}
				return true
			})
		}
	}
	if len(declared) == 0 {
		t.Fatal("found no checks")
	}
	for name, c := range declared {
		if Checks[c] == "" {
			t.Errorf("%s has no rule in Checks", name)
		}
		if !used[name] {
			t.Errorf("%s is never asked", name)
		}
	}
	if len(Checks) != len(declared) {
		t.Errorf("Checks has %d rules for %d checks", len(Checks), len(declared))
	}
}

// declare adds the declared constants of type Check to the map, by name.
func declare(into map[string]Check, g *ast.GenDecl) {
	for _, s := range g.Specs {
		v := s.(*ast.ValueSpec)
		if typ, ok := v.Type.(*ast.Ident); ok && typ.Name == "Check" {
			into[v.Names[0].Name] = Check(strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`))
		}
	}
}
