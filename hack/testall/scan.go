package main

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"scrimp/internal/test/lane"
)

// A mark is a test that the commit lane does not run.
type mark struct {
	pkg   string // "./internal/cli"
	test  string // "TestLogin"
	suite string // suite of the component lane; empty: the test belongs to the nightly lane
}

// scan finds, by reading the source, the tests that begin with lane.Component or lane.Nightly and those of packages
// that the commit lane does not compile. It fails if a mark is not the first statement of its test, because the lane
// of such a test is unknown without running it, and if no lane runs a test.
func scan(root string) (marks []mark, err error) {
	whole := map[string]string{} // folder to suite
	for _, s := range lane.Suites {
		for _, p := range s.Packages {
			whole[p] = s.Name
		}
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		hidden := strings.HasPrefix(d.Name(), ".") && rel != "."
		if d.IsDir() && (hidden || slices.Contains([]string{"build", "dist", "testdata", "node_modules"}, d.Name())) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		found, err := scanFile(path, filepath.ToSlash(filepath.Dir(rel)), whole)
		marks = append(marks, found...)
		return err
	})
	return marks, err
}

func scanFile(path, folder string, whole map[string]string) (marks []mark, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || f.Body == nil {
			continue
		}
		test := strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain"
		first, suite, marked := firstMark(f.Body)
		if marked && (!test || !first) {
			return nil, fmt.Errorf("%s: lane.Component or lane.Nightly must be the first statement of a test",
				set.Position(f.Pos()))
		}
		if !marked {
			suite = whole[folder]
		}
		switch {
		case test && (marked || suite != ""):
			marks = append(marks, mark{"./" + folder, f.Name.Name, suite})
		case test && !inLocal(file):
			return nil, fmt.Errorf("%s: no lane runs %s, because the commit lane is built with the tag local: mark it, for "+
				"example with lane.Component(t, \"whole\")", set.Position(f.Pos()), f.Name.Name)
		}
	}
	return marks, nil
}

// inLocal reports whether the commit lane compiles a file: its constraint, if it has one, does not exclude the tag
// local.
func inLocal(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if group.Pos() > file.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			e, err := constraint.Parse(c.Text)
			if err != nil {
				return true // Go refuses the file
			}
			with := e.Eval(func(string) bool { return true })
			without := e.Eval(func(tag string) bool { return tag != "local" })
			return with || !without
		}
	}
	return true
}

// firstMark finds a call of lane.Component or lane.Nightly in a function's body. first means that it is the first
// statement; suite is "" for Nightly.
func firstMark(body *ast.BlockStmt) (first bool, suite string, marked bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || marked {
			return !marked
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		pkg, ok := sel.X.(*ast.Ident)
		if !ok || pkg.Name != "lane" || sel.Sel.Name != "Component" && sel.Sel.Name != "Nightly" {
			return true
		}
		marked = true
		if lit, ok := call.Args[len(call.Args)-1].(*ast.BasicLit); ok && sel.Sel.Name == "Component" {
			suite, _ = strconv.Unquote(lit.Value)
		}
		stmt, ok := body.List[0].(*ast.ExprStmt)
		first = ok && stmt.X == call
		return false
	})
	return first, suite, marked
}

// selection is the tests of a suite or of the nightly lane, by package.
type selection map[string][]string

func selected(marks []mark, suite string) selection {
	s := selection{}
	for _, m := range marks {
		if m.suite == suite {
			s[m.pkg] = append(s[m.pkg], m.test)
		}
	}
	return s
}

// pattern returns the argument of go test -run that selects exactly these tests.
func pattern(tests []string) string { return "^(" + strings.Join(tests, "|") + ")$" }
