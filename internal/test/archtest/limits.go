package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
	"unicode/utf8"
)

// Limits of readable code. Tests and generated files are exempt.
const (
	MaxComplexity = 25  // of any function
	Complex       = 15  // functions above it are hard to follow
	MaxComplex    = 1   // per cent of all functions that may be above Complex
	MaxFunction   = 80  // lines
	MaxFile       = 400 // lines
	MaxLine       = 120 // characters
)

// A Function is a function with a body, with its complexity.
type Function struct {
	Name       string // "internal/decide/core Step", "internal/decide/core Core.Step"
	At         token.Position
	Complexity int // cyclomatic: 1, plus 1 for each branch, loop, case, && and ||
	Lines      int
}

// Functions returns the functions of p without tests.
func Functions(p Package) (list []Function) {
	for _, f := range p.Files {
		if f.Test {
			continue
		}
		for _, d := range f.Tree.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			from, to := f.Set.Position(fn.Pos()), f.Set.Position(fn.End())
			list = append(list, Function{p.Dir + " " + receiver(fn) + fn.Name.Name, from, Complexity(fn),
				to.Line - from.Line + 1})
		}
	}
	return list
}

// receiver returns "T." for a method of T or *T.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	of := fn.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	switch of := of.(type) {
	case *ast.Ident:
		return of.Name + "."
	case *ast.IndexExpr:
		if name, ok := of.X.(*ast.Ident); ok {
			return name.Name + "."
		}
	}
	return ""
}

// Complexity counts the ways through a function as gocyclo does: 1, and 1 for each branch, loop, case, && and ||. What
// a function literal branches on counts for the function around it.
func Complexity(fn *ast.FuncDecl) int {
	n := 1
	ast.Inspect(fn, func(x ast.Node) bool {
		switch v := x.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			n++
		case *ast.CaseClause:
			if v.List != nil {
				n++
			}
		case *ast.CommClause:
			if v.Comm != nil {
				n++
			}
		case *ast.BinaryExpr:
			if v.Op == token.LAND || v.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// LongLines returns the positions of lines that are too long.
func LongLines(name, text string) (at []string) {
	for i, line := range strings.Split(text, "\n") {
		if n := utf8.RuneCountInString(line); n > MaxLine {
			at = append(at, fmt.Sprintf("%s:%d has %d characters, and a line ends at %d", name, i+1, n, MaxLine))
		}
	}
	return at
}
