package main

import (
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os/exec"
	"strings"
	"testing"

	"scrimp/internal/test/must"
)

// arithmetic lists the files that compute weights. They import only math and what they define, so that they can be
// checked separately.
var arithmetic = []string{"kernel.go", "model.go", "adam.go", "random.go"}

// No product of floats can be fused with a sum: each is rounded by an explicit conversion, or is a factor of a
// product that is.
func TestArithmetic_RoundsEveryProduct(t *testing.T) {
	files := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range arithmetic {
		f, err := parser.ParseFile(files, name, nil, 0)
		must.Do(t, err)
		parsed = append(parsed, f)
	}
	products, bad := unrounded(t, files, parsed)
	for _, at := range bad {
		t.Errorf("%s: a product of floats is not wrapped in float64(…)", files.Position(at))
	}
	if products < 50 {
		t.Fatalf("%d products found: the test looks at the wrong files", products)
	}
}

// The check finds each way to write a product that may be fused.
func TestUnrounded_FindsProductsThatMayBeFused(t *testing.T) {
	for _, body := range []string{"z += x * y", "z = x*y + z", "z = z - x*y", "x *= y; z += x", "z = x * y", "z = -(x * y)"} {
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, "x.go", "package main\nfunc f(x, y, z float64) { "+body+"; _ = z }", 0)
		must.Do(t, err)
		if _, bad := unrounded(t, files, []*ast.File{f}); len(bad) != 1 {
			t.Errorf("%s: %d products found that are not rounded, want 1", body, len(bad))
		}
	}
}

// unrounded counts the products of floats and lists those that may be fused.
func unrounded(t *testing.T, files *token.FileSet, parsed []*ast.File) (products int, bad []token.Pos) {
	t.Helper()
	if build.Default.GOROOT == "" { // the test was built with -trimpath
		out, err := exec.Command("go", "env", "GOROOT").Output()
		must.Do(t, err)
		build.Default.GOROOT = strings.TrimSpace(string(out))
	}
	seen := types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: importer.ForCompiler(files, "source", nil)}
	if _, err := config.Check("main", files, parsed, &seen); err != nil {
		t.Fatal(err)
	}
	float := func(e ast.Expr) bool {
		v := seen.Types[e]
		b, ok := v.Type.Underlying().(*types.Basic)
		return ok && b.Info()&types.IsFloat != 0 && v.Value == nil // constants are exact
	}
	rounded := map[ast.Expr]bool{}
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if name, ok := n.Fun.(*ast.Ident); ok && name.Name == "float64" {
					rounded[ast.Unparen(n.Args[0])] = true
				}
			case *ast.AssignStmt:
				if n.Tok == token.MUL_ASSIGN && float(n.Lhs[0]) {
					products++
					bad = append(bad, n.Pos())
				}
			case *ast.BinaryExpr:
				if (n.Op == token.MUL || n.Op == token.QUO) && float(n) {
					rounded[ast.Unparen(n.X)] = true
					rounded[ast.Unparen(n.Y)] = true
				}
				if n.Op == token.MUL && float(n) {
					products++
					if !rounded[n] {
						bad = append(bad, n.Pos())
					}
				}
			}
			return true
		})
	}
	return products, bad
}
