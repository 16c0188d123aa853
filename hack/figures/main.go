// Command figures prints how large and how complex a tree of Go is: lines, packages, files, functions and types. Run it
// on two trees to compare them:
//
//	go run ./hack/figures . ../parent
//
// Tests (files that end in _test.go) and test data never count. Test support (internal/test) counts everywhere but in
// the first figure, which stands beside its lines.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	trees := os.Args[1:]
	if len(trees) == 0 {
		trees = []string{"."}
	}
	for _, dir := range trees {
		t, err := Read(os.DirFS(dir))
		if err != nil {
			fmt.Fprintf(os.Stderr, "figures: read %s: %v\n", dir, err)
			os.Exit(1)
		}
		if len(trees) > 1 {
			fmt.Printf("== %s\n", dir)
		}
		t.Print(os.Stdout)
	}
}

// The limits of the house. archtest enforces those on single functions and files; the rest are goals.
const (
	complexAbove = 15
	worstAbove   = 25
	largeAbove   = 1500
	shown        = 10
)

// Print writes the figures of the tree, one a line, and the places behind each below it.
func (t *Tree) Print(w io.Writer) {
	packages := t.Packages()
	support := within(packages, "internal/test")
	fmt.Fprintf(w, "Go lines without tests and test support: %d (test support: %d)\n", sum(packages)-sum(support),
		sum(support))
	list(w, packages[:min(shown, len(packages))])
	fmt.Fprintf(w, "packages above %d lines: %d of %d\n", largeAbove, above(packages, largeAbove), len(packages))

	functions := t.Functions
	n := above(functions, complexAbove)
	fmt.Fprintf(w, "functions above complexity %d: %d of %d (%.2f %%); above %d: %d\n", complexAbove, n, len(functions),
		100*float64(n)/float64(max(1, len(functions))), worstAbove, above(functions, worstAbove))
	list(w, functions[:min(shown, len(functions))])

	fmt.Fprintf(w, "lines of a file: median %d, 90th percentile %d, longest %d\n", quantile(t.Files, 50),
		quantile(t.Files, 90), quantile(t.Files, 100))
	if types := t.Types(); len(types) > 0 {
		fmt.Fprintf(w, "methods on one type: at most %d (%s)\n", types[0].N, types[0].Name)
	}
	fmt.Fprintln(w, "packages of the core:")
	list(w, within(packages, "internal/decide/core"))
}

func list(w io.Writer, counts []Count) {
	for _, c := range counts {
		fmt.Fprintf(w, "%8d  %s\n", c.N, c.Name)
	}
}
