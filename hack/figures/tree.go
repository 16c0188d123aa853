package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"

	"scrimp/internal/test/archtest"
)

// A Count is a number with the name of what it belongs to.
type Count struct {
	N    int
	Name string
}

// A Tree holds the counts of all Go files below a folder, each list with the largest first.
type Tree struct {
	Files     []Count // lines
	Functions []Count // complexity
	methods   map[string]int
}

// Read counts the Go files of fsys. A file that does not parse counts by its lines only.
func Read(fsys fs.FS) (*Tree, error) {
	t := &Tree{methods: map[string]int{}}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipped(path.Base(name)):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		t.add(name, text)
		return nil
	})
	descending(t.Files)
	descending(t.Functions)
	return t, err
}

// skipped reports whether a folder holds no source of the program.
func skipped(base string) bool {
	return base == "testdata" || base == "build" || base == "node_modules" || strings.HasPrefix(base, ".git")
}

func (t *Tree) add(name string, text []byte) {
	lines := bytes.Count(text, []byte("\n"))
	if len(text) > 0 && text[len(text)-1] != '\n' {
		lines++
	}
	t.Files = append(t.Files, Count{lines, name})
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
	if err != nil {
		return
	}
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		of := receiver(fn)
		if of != "" {
			t.methods[path.Dir(name)+" "+of]++
			of += "."
		}
		t.Functions = append(t.Functions, Count{archtest.Complexity(fn), fmt.Sprintf("%s %s%s", name, of, fn.Name.Name)})
	}
}

// Packages returns the lines of each package, the largest first.
func (t *Tree) Packages() []Count {
	lines := map[string]int{}
	for _, f := range t.Files {
		lines[path.Dir(f.Name)] += f.N
	}
	return counts(lines)
}

// Types returns how many methods each type has, the largest first.
func (t *Tree) Types() []Count { return counts(t.methods) }

func counts(by map[string]int) (list []Count) {
	for name, n := range by {
		list = append(list, Count{n, name})
	}
	descending(list)
	return list
}

// descending sorts by number, then by name, so that the same tree always prints the same lines.
func descending(list []Count) {
	slices.SortFunc(list, func(a, b Count) int { return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Name, b.Name)) })
}

func sum(list []Count) (n int) {
	for _, c := range list {
		n += c.N
	}
	return n
}

func above(list []Count, limit int) (n int) {
	for _, c := range list {
		if c.N > limit {
			n++
		}
	}
	return n
}

// within returns the packages in dir and below it.
func within(packages []Count, dir string) (list []Count) {
	for _, p := range packages {
		if p.Name == dir || strings.HasPrefix(p.Name, dir+"/") {
			list = append(list, p)
		}
	}
	return list
}

// quantile returns the smallest number that percent of a descending list do not exceed: of 10 numbers, the 90th
// percentile is the second largest.
func quantile(list []Count, percent int) int {
	if len(list) == 0 {
		return 0
	}
	at := (percent*len(list) + 99) / 100 // how many numbers it covers, rounded up
	return list[len(list)-max(1, at)].N
}

// receiver returns the name of the type whose method fn is, or "".
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return ""
	}
	for of := fn.Recv.List[0].Type; ; {
		switch v := of.(type) {
		case *ast.StarExpr:
			of = v.X
		case *ast.IndexExpr:
			of = v.X
		case *ast.IndexListExpr:
			of = v.X
		case *ast.Ident:
			return v.Name
		default:
			return ""
		}
	}
}
