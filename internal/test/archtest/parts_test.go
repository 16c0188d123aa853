package archtest

import (
	"io/fs"
	"os"
	"strings"
	"testing"
)

// maxMethods bounds the methods of a type of the core, and maxCore the lines of a package of the core: anything larger
// is several things.
const (
	maxMethods = 80
	maxCore    = 3500
)

// isCore reports whether a package is the core or a part of it.
func isCore(p Package) bool {
	return p.Dir == "internal/decide/core" || strings.HasPrefix(p.Dir, "internal/decide/core/")
}

func TestCore_TypesHaveFewMethods(t *testing.T) {
	counts := map[string]int{}
	for _, p := range packages(t) {
		for _, f := range Functions(p) {
			if of, _, ok := strings.Cut(strings.TrimPrefix(f.Name, p.Dir+" "), "."); ok && isCore(p) {
				counts[p.Dir+" "+of]++
			}
		}
	}
	if len(counts) == 0 {
		t.Fatal("the core has no type")
	}
	for of, n := range counts {
		if n > maxMethods {
			t.Errorf("%s has %d methods, and %d is the limit: split it", of, n, maxMethods)
		}
	}
}

func TestCore_PackagesAreSmall(t *testing.T) {
	for _, p := range packages(t) {
		if n := lines(t, p); isCore(p) && n > maxCore {
			t.Errorf("%s has %d lines, and %d is the limit", p.Dir, n, maxCore)
		}
	}
}

// A package above largePackage lines does not fit in a head. largePackages is how many there are; it may only shrink.
const (
	largePackage  = 1500
	largePackages = 11
)

func TestPackages_FewAreLarge(t *testing.T) {
	var large []string
	for _, p := range packages(t) {
		if lines(t, p) > largePackage {
			large = append(large, p.Dir)
		}
	}
	if len(large) != largePackages {
		t.Errorf("%d packages have more than %d lines, and there were %d: cut what grew, or lower largePackages: %s",
			len(large), largePackage, largePackages, strings.Join(large, ", "))
	}
}

// lines counts the lines of a package without its tests.
func lines(t *testing.T, p Package) (n int) {
	t.Helper()
	files := os.DirFS(root(t))
	for _, f := range p.Files {
		if f.Test {
			continue
		}
		text, err := fs.ReadFile(files, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		n += strings.Count(string(text), "\n")
	}
	return n
}
