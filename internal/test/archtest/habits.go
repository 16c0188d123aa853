package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
)

// ErrorTexts returns where p makes decisions from the text of an error, which is for people and may change: code
// distinguishes errors by value or by type.
func ErrorTexts(p Package) (problems []string) {
	for _, f := range p.Files {
		if f.Test || within(p.room(), "test") {
			continue // tests may check what people read
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

// decides lists the functions that test a text.
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

// starters lists the folders whose code starts programs beside jobs, which could read their environment.
var starters = []string{"internal/agent", "internal/content/blob", "internal/control", "internal/engine",
	"internal/server", "internal/store"}

// Children returns where p starts a program without setting its environment: the program would inherit all of the
// server's.
func Children(p Package) (problems []string) {
	if !slices.ContainsFunc(starters, func(s string) bool { return within(p.Dir, s) }) {
		return nil
	}
	for _, f := range p.Files {
		pkg := nameOf(f.Tree, "os/exec")
		for _, d := range f.Tree.Decls {
			if f.Test || pkg == "" {
				continue
			}
			var begun *ast.CallExpr
			sets := false
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					if isCall(n, pkg, "Command") || isCall(n, pkg, "CommandContext") {
						begun = n
					}
				case *ast.SelectorExpr:
					sets = sets || n.Sel.Name == "Env"
				}
				return true
			})
			if begun != nil && !sets {
				problems = append(problems, fmt.Sprintf("%s: starts a program with the whole environment of the server, which "+
					"holds passwords: use child.Command, or set Env", f.Set.Position(begun.Pos())))
			}
		}
	}
	return problems
}

// isCall reports whether call calls the function of the package that the file imports as pkg.
func isCall(call *ast.CallExpr, pkg, function string) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || pkg == "" || sel.Sel.Name != function {
		return false
	}
	of, ok := sel.X.(*ast.Ident)
	return ok && of.Name == pkg
}
