package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// ErrorTexts returns where p decides by the text of an error, which is for people and may
// change: a caller tells errors apart by value or by type.
func ErrorTexts(p Package) (problems []string) {
	for _, f := range p.Files {
		if f.Test || strings.HasSuffix(p.Dir, "test") {
			continue // a test may ask what people read
		}
		ast.Inspect(f.Tree, func(n ast.Node) bool {
			var asked []ast.Expr
			switch n := n.(type) {
			case *ast.CallExpr:
				if sel, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(decides, sel.Sel.Name) {
					asked = n.Args
				}
			case *ast.BinaryExpr:
				if n.Op == token.EQL || n.Op == token.NEQ {
					asked = []ast.Expr{n.X, n.Y}
				}
			}
			if slices.ContainsFunc(asked, isErrorText) {
				problems = append(problems, fmt.Sprintf("%s: acts on an error's text: tell errors apart with errors.Is or "+
					"errors.As", f.Set.Position(n.Pos())))
			}
			return true
		})
	}
	return problems
}

// decides are the functions that answer a question about a text.
var decides = []string{"Contains", "ContainsAny", "HasPrefix", "HasSuffix", "EqualFold", "Index", "Cut", "CutPrefix",
	"CutSuffix", "MatchString", "FindStringSubmatch"}

// isErrorText reports whether x is a call like err.Error().
func isErrorText(x ast.Expr) bool {
	call, ok := x.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Error"
}

// isCall reports whether call is of that function of the package which the file knows under that name.
func isCall(call *ast.CallExpr, pkg, function string) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || pkg == "" || sel.Sel.Name != function {
		return false
	}
	of, ok := sel.X.(*ast.Ident)
	return ok && of.Name == pkg
}
