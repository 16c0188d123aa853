package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// decide lists the folders whose packages compute with numbers from outside.
var decide = []string{"internal/decide/core", "internal/decide/state", "internal/decide/plan", "internal/decide/policy",
	"internal/decide/budget"}

// Conversions returns where p converts a float64 to an integer or a duration itself. If the number does not fit, the
// result depends on the processor, and is negative on most; quantity.Nanoseconds, Hours, Scale, Over and Int
// saturate instead. It recognizes a float64 by its form: a conversion to one, a literal, a function of math, or a
// duration in hours.
func Conversions(p Package) (problems []string) {
	if !slices.ContainsFunc(decide, func(dir string) bool { return p.Dir == dir || strings.HasPrefix(p.Dir, dir+"/") }) {
		return nil
	}
	for _, f := range p.Files {
		if f.Test {
			continue
		}
		ast.Inspect(f.Tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if ok && len(call.Args) == 1 && makesWhole(call.Fun) && isFloat(call.Args[0]) {
				at := f.Set.Position(n.Pos())
				problems = append(problems, fmt.Sprintf("%s:%d: converts a float64 by itself: take a function of quantity, which "+
					"saturates", path.Join(p.Dir, path.Base(at.Filename)), at.Line))
			}
			return true
		})
	}
	return problems
}

// makesWhole reports whether the function is a conversion to an integer or a duration.
func makesWhole(fun ast.Expr) bool {
	switch fun := fun.(type) {
	case *ast.Ident:
		return slices.Contains([]string{"int", "int32", "int64", "uint64"}, fun.Name)
	case *ast.SelectorExpr:
		of, ok := fun.X.(*ast.Ident)
		return ok && (of.Name == "time" && fun.Sel.Name == "Duration" || of.Name == "money" && fun.Sel.Name == "Rate")
	}
	return false
}

// isFloat reports whether an expression is a float64 by its form.
func isFloat(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return isFloat(x.X)
	case *ast.UnaryExpr:
		return isFloat(x.X)
	case *ast.BinaryExpr:
		return isFloat(x.X) || isFloat(x.Y)
	case *ast.BasicLit:
		return x.Kind == token.FLOAT
	case *ast.CallExpr:
		return givesFloat(x)
	}
	return false
}

// givesFloat reports whether a call gives a float64 by its form.
func givesFloat(call *ast.CallExpr) bool {
	switch fun := call.Fun.(type) {
	case *ast.Ident: // float64(x), and max or min of one
		return fun.Name == "float64" || (fun.Name == "max" || fun.Name == "min") && slices.ContainsFunc(call.Args, isFloat)
	case *ast.SelectorExpr:
		of, ok := fun.X.(*ast.Ident)
		return ok && of.Name == "math" && !strings.HasSuffix(fun.Sel.Name, "bits") ||
			slices.Contains([]string{"Hours", "Minutes", "Seconds", "Float"}, fun.Sel.Name) && len(call.Args) == 0
	}
	return false
}
