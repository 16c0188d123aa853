package docs

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Status is a name in the program's output with its meaning.
type Status struct{ Name, Means string }

// An Answer is a problem response of the API.
type Answer struct {
	Status     int
	Title, Fix string
}

// files parses the Go files below dir without tests.
func files(dir string) (list []*ast.File, err error) {
	set := token.NewFileSet()
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(set, path, nil, parser.ParseComments)
		list = append(list, f)
		return err
	})
	return list, err
}

// Constants returns the constants of a type below dir, each with its comment. A constant that is not a string has
// its number as name.
func Constants(dir, kind string) (list []Status, err error) {
	all, err := files(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		for _, d := range f.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			for _, s := range group.Specs {
				v := s.(*ast.ValueSpec)
				if t, ok := v.Type.(*ast.Ident); !ok || t.Name != kind || !v.Names[0].IsExported() {
					continue
				}
				name := literal(v.Values[0])
				if name == "" {
					name = v.Values[0].(*ast.BasicLit).Value
				}
				list = append(list, Status{name, meant(v)})
			}
		}
	}
	return list, nil
}

// meant returns the comment of a constant without its name.
func meant(v *ast.ValueSpec) string {
	text := strings.TrimSpace(v.Comment.Text())
	if text == "" {
		text = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(v.Doc.Text()), v.Names[0].Name+":"))
	}
	return strings.Join(strings.Fields(text), " ")
}

// Answers returns the problem responses in the code below dir whose status and title are literals.
func Answers(dir string) (list []Answer, err error) {
	all, err := files(dir)
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		ast.Inspect(f, func(n ast.Node) bool {
			var a Answer
			switch n := n.(type) {
			case *ast.CallExpr:
				a = called(n)
			case *ast.CompositeLit:
				a = composed(n)
			}
			if a.Status != 0 && a.Title != "" {
				list = append(list, a)
			}
			return true
		})
	}
	slices.SortFunc(list, func(a, b Answer) int {
		return cmp.Or(a.Status-b.Status, cmp.Compare(a.Title, b.Title), cmp.Compare(a.Fix, b.Fix))
	})
	return slices.Compact(list), nil
}

// called returns the problem of a call of Problem(w, status, title, fix, err) or FieldProblem(w, status, field, …).
func called(n *ast.CallExpr) (a Answer) {
	name := ""
	switch f := n.Fun.(type) {
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
	}
	at := map[string]int{"Problem": 2, "FieldProblem": 3}[name]
	if at == 0 || len(n.Args) < at+2 {
		return a
	}
	return Answer{statusOf(n.Args[1]), literal(n.Args[at]), literal(n.Args[at+1])}
}

// composed returns the problem of a Refusal literal.
func composed(n *ast.CompositeLit) (a Answer) {
	for _, e := range n.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		switch fmt.Sprint(kv.Key) {
		case "Status":
			a.Status = statusOf(kv.Value)
		case "Title":
			a.Title = literal(kv.Value)
		case "Fix":
			a.Fix = literal(kv.Value)
		}
	}
	return a
}

// statusOf returns the status of an expression like http.StatusNotFound; 0: another expression.
func statusOf(e ast.Expr) int {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || fmt.Sprint(s.X) != "http" {
		return 0
	}
	want := strings.ToLower(strings.TrimPrefix(s.Sel.Name, "Status"))
	for code := 400; code < 600; code++ {
		if strings.ToLower(nameless.ReplaceAllString(http.StatusText(code), "")) == want {
			return code
		}
	}
	return 0
}

var (
	nameless = regexp.MustCompile(`[^A-Za-z]`)
	verb     = regexp.MustCompile(`%[-+#0-9.\[\]]*[a-z]`)
)

// literal returns the text of a string expression, with … for variable parts.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return verb.ReplaceAllString(text, "…")
	case *ast.BinaryExpr:
		a, b := literal(e.X), literal(e.Y)
		if a == "" && b == "" {
			return ""
		}
		return cmp.Or(a, "…") + cmp.Or(b, "…")
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sprintf" {
			return literal(e.Args[0])
		}
	}
	return ""
}
