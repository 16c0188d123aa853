package archtest

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"

	"scrimp/internal/test/lane"
)

// Timed returns where a test of p waits for a span of real time or compares real times. Such a test fails on a busy
// host and is slow on a fast one. Benchmarks may do so, and tests of the component and nightly lanes; in a
// testing/synctest bubble, time is not real.
func Timed(p Package) (problems []string) {
	inSuite := func(s lane.Suite) bool { return slices.Contains(s.Packages, p.Dir) }
	if within(p.Dir, "internal/test") || slices.ContainsFunc(lane.Suites, inSuite) {
		return nil
	}
	for _, f := range p.Files {
		clock := nameOf(f.Tree, "time")
		if !f.Test || clock == "" {
			continue
		}
		bubble := nameOf(f.Tree, "testing/synctest")
		ast.Inspect(f.Tree, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				return !strings.HasPrefix(n.Name.Name, "Benchmark") && !marked(n)
			case *ast.CallExpr:
				if isCall(n, bubble, "Test") {
					return false
				}
				if how := realTime(n, clock); how != "" {
					problems = append(problems, fmt.Sprintf("%s: a test depends on real time (%s): wait for a condition with "+
						"eventually.True or an event, use testing/synctest, or mark the test for another lane",
						f.Set.Position(n.Pos()), how))
				}
			}
			return true
		})
	}
	return problems
}

// waits lists the functions of package time that wait for real time or measure it.
var waits = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Since", "Sleep", "Tick", "Until"}

// compares lists the methods of time.Time that compare two times.
var compares = []string{"After", "Before", "Compare", "Sub"}

// realTime returns the function by which call waits for, measures or compares real time, or "". clock is the file's
// name for package time.
func realTime(call *ast.CallExpr, clock string) string {
	for _, name := range waits {
		if isCall(call, clock, name) {
			return "time." + name
		}
	}
	if isCall(call, "context", "WithTimeout") && len(call.Args) == 2 && !isLimit(call.Args[1]) {
		return "context.WithTimeout without eventually.Limit"
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains(compares, sel.Sel.Name) {
		return ""
	}
	isNow := func(x ast.Expr) bool {
		c, ok := x.(*ast.CallExpr)
		return ok && isCall(c, clock, "Now")
	}
	if isNow(sel.X) || slices.ContainsFunc(call.Args, isNow) {
		return "time.Now in " + sel.Sel.Name
	}
	return ""
}

// isLimit reports whether a duration is eventually.Limit.
func isLimit(x ast.Expr) bool {
	sel, ok := x.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := sel.X.(*ast.Ident)
	return ok && of.Name == "eventually" && sel.Sel.Name == "Limit"
}

// marked reports whether a test starts with lane.Component or lane.Nightly.
func marked(fn *ast.FuncDecl) bool {
	if fn.Body == nil || len(fn.Body.List) == 0 {
		return false
	}
	stmt, ok := fn.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := stmt.X.(*ast.CallExpr)
	return ok && (isCall(call, "lane", "Component") || isCall(call, "lane", "Nightly"))
}

// Support returns where a program imports test support. Only tests, tools and test support may.
func Support(p Package) (problems []string) {
	if within(p.Dir, "hack") || within(p.room(), "test") {
		return nil
	}
	for imported, file := range imports(p) {
		if to, ours := strings.CutPrefix(imported, Module+"/internal/"); ours && within(to, "test") {
			problems = append(problems, fmt.Sprintf("%s imports %s, which is for tests and tools only", file.Name, to))
		}
	}
	return problems
}
