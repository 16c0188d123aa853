package archtest

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// These lists hold what is above a limit today. They may only shrink: what is within the limit must leave its list.
var (
	// tooComplex lists functions above MaxComplexity, tooLong those above MaxFunction.
	tooComplex = []string{}
	tooLong    = []string{}
	// longLines counts lines above MaxLine, by package.
	longLines = map[string]int{}
)

// manyComplex is the number of the project's functions above Complex while that exceeds MaxComplex per cent; then 0.
const manyComplex = 0

func TestFunctionsAreWithinTheLimits(t *testing.T) {
	var complexOnes, long []string
	all, hard := 0, 0
	for _, p := range packages(t) {
		for _, f := range Functions(p) {
			all++
			if f.Complexity > Complex {
				hard++
			}
			if f.Complexity > MaxComplexity {
				complexOnes = append(complexOnes, f.Name)
				if !slices.Contains(tooComplex, f.Name) {
					t.Errorf("%s: %s has complexity %d, and %d is the limit: split it", f.At, f.Name, f.Complexity, MaxComplexity)
				}
			}
			if f.Lines > MaxFunction {
				long = append(long, f.Name)
				if !slices.Contains(tooLong, f.Name) {
					t.Errorf("%s: %s has %d lines, and %d is the limit: split it", f.At, f.Name, f.Lines, MaxFunction)
				}
			}
		}
	}
	gone(t, "tooComplex", tooComplex, complexOnes)
	gone(t, "tooLong", tooLong, long)
	switch enough := hard*100 <= all*MaxComplex; {
	case enough && manyComplex > 0:
		t.Errorf("%d of %d functions are above complexity %d, within %d %%: set manyComplex to 0", hard, all, Complex,
			MaxComplex)
	case !enough && hard > manyComplex:
		t.Errorf("%d of %d functions are above complexity %d, more than the %d that there were: split what was added",
			hard, all, Complex, manyComplex)
	case !enough && hard < manyComplex:
		t.Errorf("%d of %d functions are above complexity %d: set manyComplex to %[1]d", hard, all, Complex)
	}
}

// gone fails for entries of a list that are within the limit now.
func gone(t *testing.T, list string, listed, found []string) {
	t.Helper()
	for _, name := range listed {
		if !slices.Contains(found, name) {
			t.Errorf("%s is within the limit: take it off %s", name, list)
		}
	}
}

func TestFilesAndLinesAreWithinTheLimits(t *testing.T) {
	files := os.DirFS(root(t))
	for _, p := range packages(t) {
		var problems []string
		for _, f := range p.Files {
			if f.Test {
				continue
			}
			text, err := fs.ReadFile(files, f.Name)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), "\n"); n > MaxFile {
				t.Errorf("%s has %d lines, and %d is the limit: split it", f.Name, n, MaxFile)
			}
			problems = append(problems, LongLines(f.Name, string(text))...)
		}
		switch n := longLines[p.Dir]; {
		case len(problems) > n:
			report(t, problems)
			t.Errorf("%s has %d lines that are too long, and had %d", p.Dir, len(problems), n)
		case len(problems) < n && len(problems) > 0:
			t.Errorf("%s has %d lines that are too long: write that in longLines, in place of %d", p.Dir, len(problems), n)
		case len(problems) < n:
			t.Errorf("%s has no line that is too long: take it off longLines", p.Dir)
		}
	}
}

func TestLimits_ListedPackagesExist(t *testing.T) {
	var dirs []string
	for _, p := range packages(t) {
		dirs = append(dirs, p.Dir)
	}
	for _, dir := range slices.Sorted(maps.Keys(longLines)) {
		if !slices.Contains(dirs, dir) {
			t.Errorf("longLines names %s, which is not there", dir)
		}
	}
}

func TestComplexity_CountsEveryBranch(t *testing.T) {
	for body, want := range map[string]int{
		"":                                    1,
		"if a && b || c { x() } else { y() }": 4,
		"for i := range 3 { for { x(i) } }":   3,
		"switch { case a, b: x(); case c: y(); default: z() }":    3,
		"select { case <-a: x(); default: y() }":                  2,
		"f := func() { if a { x() } }; f(); if b { return }":      3,
		"switch v := v.(type) { case int: x(v); case bool: y() }": 3,
	} {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, "x.go", fmt.Sprintf("package x\nfunc (t *T) f() {%s}", body), 0)
		if err != nil {
			t.Fatal(err)
		}
		list := Functions(Package{Dir: "x", Files: []File{{Name: "x.go", Tree: f, Set: set}}})
		if len(list) != 1 || list[0].Complexity != want || list[0].Name != "x T.f" {
			t.Errorf("%s: %+v, want complexity %d", body, list, want)
		}
	}
}

func TestLongLines_FindsALongLine(t *testing.T) {
	if at := LongLines("x.go", strings.Repeat("é", MaxLine)+"\n"+strings.Repeat("e", MaxLine+1)); len(at) != 1 ||
		!strings.HasPrefix(at[0], "x.go:2 ") {
		t.Error(at)
	}
}
