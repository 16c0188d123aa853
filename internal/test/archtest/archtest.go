// Package archtest checks the architecture: which package may import which, what is pure, and where randomness and
// cloud SDKs are allowed. Its test reads the source of the whole repository and needs no build.
package archtest

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Module is the import path of this module.
const Module = "scrimp"

// Package is the source of one folder.
type Package struct {
	Dir   string // relative to the repository, with slashes: "internal/decide/core"
	Files []File // by name
}

// File is one Go file.
type File struct {
	Name string
	Test bool
	Tree *ast.File
	Set  *token.FileSet
}

// room returns the package's path below internal, or "".
func (p Package) room() string {
	r, _ := strings.CutPrefix(p.Dir, "internal/")
	if r == p.Dir {
		return ""
	}
	return r
}

// Read parses every Go package below the root of fsys.
func Read(fsys fs.FS) ([]Package, error) {
	byDir := map[string]*Package{}
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipped(d.Name()):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go":
			return nil
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		dir := path.Dir(name)
		if byDir[dir] == nil {
			byDir[dir] = &Package{Dir: dir}
		}
		byDir[dir].Files = append(byDir[dir].Files, File{Name: name, Test: strings.HasSuffix(name, "_test.go"),
			Tree: tree, Set: set})
		return nil
	})
	var list []Package
	for _, p := range byDir {
		list = append(list, *p)
	}
	slices.SortFunc(list, func(a, b Package) int { return strings.Compare(a.Dir, b.Dir) })
	return list, err
}

// skipped reports whether a folder contains no source of ours.
func skipped(dir string) bool {
	return dir == "testdata" || dir == "build" || dir == "node_modules" || dir != "." && strings.HasPrefix(dir, ".")
}

// Layers returns every import of p that does not point down in House.
func Layers(p Package, house []Folder) (problems []string) {
	own := p.room()
	at := floor(house, own)
	if own != "" && at < 0 {
		return []string{fmt.Sprintf("%s has no place in the house: put it into a folder of House in "+
			"internal/test/archtest/house.go", p.Dir)}
	}
	for imported, file := range imports(p) {
		to, ours := strings.CutPrefix(imported, Module+"/internal/")
		switch {
		case !ours && strings.HasPrefix(imported, Module+"/cmd/"):
			problems = append(problems, fmt.Sprintf("%s imports %s: nobody imports a program", file.Name, imported))
		case !ours || own == "":
			// programs, examples and tools may import every package
		case floor(house, to) < 0:
			problems = append(problems, fmt.Sprintf("%s imports %s, which has no place in the house: put it into a folder of "+
				"House in internal/test/archtest/house.go", file.Name, imported))
		case floor(house, to) < at:
			problems = append(problems, fmt.Sprintf("%s imports %s, which stands above it: imports point down, so move what "+
				"both need below, or let %s declare a small interface", file.Name, imported, own))
		}
	}
	return problems
}

// Public returns every import through which a public package would expose types that only this module can name.
func Public(p Package) (problems []string) {
	allowed, public := publics[p.Dir]
	if !public {
		return nil
	}
	for imported, file := range imports(p) {
		if within(imported, Module) && !slices.Contains(allowed, imported) {
			problems = append(problems, fmt.Sprintf("%s imports %s: a public package's types are its own", file.Name, imported))
		}
	}
	return problems
}

// Pure returns what makes p impure. It is empty for packages that need not be pure.
func Pure(p Package) (problems []string) {
	if !pure(p.room()) {
		return nil
	}
	for imported, file := range imports(p) {
		first, _, _ := strings.Cut(imported, "/")
		switch {
		case imported == "math/rand/v2" || first == Module:
			// Chance and Layers check these
		case strings.Contains(first, ".") && !slices.ContainsFunc(thirds[p.room()],
			func(ok string) bool { return within(imported, ok) }):
			problems = append(problems,
				fmt.Sprintf("%s imports %s: a pure package imports another project's code only where thirds in "+
					"internal/test/archtest/house.go says so", file.Name, imported))
		default:
			for bad, why := range outside {
				if within(imported, bad) {
					problems = append(problems, fmt.Sprintf("%s imports %s: %s", file.Name, imported, why))
				}
			}
		}
	}
	for _, f := range p.Files {
		if !f.Test {
			found := impure(f)
			if p.room() == calendar {
				found = slices.DeleteFunc(found, func(what string) bool { return strings.Contains(what, "time.LoadLocation") })
			}
			problems = append(problems, found...)
		}
	}
	return problems
}

// impure returns every use of a clock, goroutine, channel or print in f.
func impure(f File) (problems []string) {
	say := func(n ast.Node, what string) {
		problems = append(problems, fmt.Sprintf("%s: %s", f.Set.Position(n.Pos()), what))
	}
	timeName, fmtName := nameOf(f.Tree, "time"), nameOf(f.Tree, "fmt")
	if timeName == "." {
		say(f.Tree.Name, "imports time with a dot, which hides its clocks")
	}
	ast.Inspect(f.Tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			say(n, "starts a goroutine: a pure package is single-threaded; do it in the shell")
		case *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
			say(n, "uses a channel: a pure package takes values and returns values")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				say(n, "uses a channel: a pure package takes values and returns values")
			}
		case *ast.SelectorExpr:
			of, ok := n.X.(*ast.Ident)
			if ok && of.Name == timeName && slices.Contains(clocks, n.Sel.Name) {
				say(n, "asks for time."+n.Sel.Name+": time enters with an event; pass it in")
			}
			if ok && of.Name == fmtName && strings.HasPrefix(n.Sel.Name, "Print") {
				say(n, "prints: return the text, cli prints")
			}
		}
		return true
	})
	return problems
}

// Chance returns where p uses randomness that was not passed in, or that it may not use at all. It checks the pure
// packages and the two drivers of the core.
func Chance(p Package) (problems []string) {
	if !pure(p.room()) && p.room() != "sim" && p.room() != "control" {
		return nil
	}
	for _, f := range p.Files {
		name := nameOf(f.Tree, "math/rand/v2")
		switch {
		case f.Test || name == "":
			continue
		case !slices.Contains(seeded, p.room()):
			problems = append(problems,
				fmt.Sprintf("%s imports math/rand/v2: chance enters as an event; only the packages in seeded "+
					"draw, from a seed that was passed in", f.Name))
			continue
		}
		ast.Inspect(f.Tree, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, ok := sel.X.(*ast.Ident); ok && of.Name == name && !strings.HasPrefix(sel.Sel.Name, "New") {
				problems = append(problems,
					fmt.Sprintf("%s: rand.%s draws from the machine's seed: draw from a *rand.Rand that was passed in",
						f.Set.Position(n.Pos()), sel.Sel.Name))
			}
			return true
		})
	}
	return problems
}

// Documented returns a problem unless exactly one file of p has a package comment.
func Documented(p Package) []string {
	var with []string
	var code bool
	for _, f := range p.Files {
		if f.Test {
			continue
		}
		code = true
		doc := f.Tree.Doc.Text()
		if doc == "" {
			continue
		}
		with = append(with, path.Base(f.Name))
		want := "Package " + f.Tree.Name.Name + " "
		if f.Tree.Name.Name == "main" {
			want = "Command "
		}
		named := f.Tree.Name.Name == "main" && strings.EqualFold(strings.SplitN(doc, " ", 2)[0], path.Base(p.Dir))
		if !strings.HasPrefix(doc, want) && !named {
			return []string{fmt.Sprintf("%s: the package comment begins with %q", f.Name, want+"…")}
		}
	}
	switch {
	case code && len(with) == 0:
		return []string{p.Dir + " has no package comment: say in one file what it is for"}
	case len(with) > 1:
		return []string{fmt.Sprintf("%s has %d package comments (%s): keep one", p.Dir, len(with), strings.Join(with, ", "))}
	}
	return nil
}

// Local returns the files of p that add a cloud SDK to the build with the tag local, which would slow down the first
// build of a new user.
func Local(p Package) (problems []string) {
	for _, f := range p.Files {
		if f.Test {
			continue
		}
		for _, spec := range f.Tree.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			if slices.ContainsFunc(clouds, func(c string) bool { return within(imported, c) }) && builtWithLocal(f) {
				problems = append(problems,
					fmt.Sprintf("%s imports %s into the local build: put it into a file with //go:build !local", f.Name, imported))
			}
		}
	}
	return problems
}

// Drivers returns where p names the driver of an engine: only cli lists the drivers, so that everything else knows
// engines by name and kind only.
func Drivers(p Package) (problems []string) {
	if own := p.room(); own == "" || within(own, "cli") || within(own, "engine") {
		return nil
	}
	for imported, file := range imports(p) {
		if strings.HasPrefix(imported, Module+"/internal/engine/") {
			problems = append(problems, fmt.Sprintf("%s imports %s: engines are known by name and kind; internal/cli says "+
				"which kinds there are", file.Name, imported))
		}
	}
	return problems
}

// builtWithLocal reports whether any build with the tag local compiles f.
func builtWithLocal(f File) bool {
	for _, group := range f.Tree.Comments {
		for _, c := range group.List {
			if expr, err := constraint.Parse(c.Text); err == nil && c.Pos() < f.Tree.Package {
				return expr.Eval(func(string) bool { return true })
			}
		}
	}
	return true
}

// imports yields the imports of p's files without tests.
func imports(p Package) func(yield func(string, File) bool) {
	return func(yield func(string, File) bool) {
		for _, f := range p.Files {
			if f.Test {
				continue
			}
			for _, spec := range f.Tree.Imports {
				if !yield(strings.Trim(spec.Path.Value, `"`), f) {
					return
				}
			}
		}
	}
}

// nameOf returns the name under which f imports the package, or "".
func nameOf(f *ast.File, imported string) string {
	for _, spec := range f.Imports {
		if spec.Path.Value != `"`+imported+`"` {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path.Base(strings.TrimSuffix(imported, "/v2"))
	}
	return ""
}

// within reports whether name is dir or lies below it.
func within(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// floor returns the index of a package's folder in House, or -1.
func floor(house []Folder, room string) int {
	return slices.IndexFunc(house, func(f Folder) bool { return within(room, f.Name) })
}
