package archtest

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// root returns the repository: the nearest parent folder with go.mod.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			t.Fatal("no go.mod above this package")
		}
		dir = filepath.Dir(dir)
	}
}

// house is every package of the repository, parsed once.
var house = sync.OnceValues(func() ([]Package, error) { return Read(os.DirFS(filepath.Join("..", "..", ".."))) })

func packages(t *testing.T) []Package {
	t.Helper()
	list, err := house()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, p := range list {
		seen[p.Dir] = true
	}
	for _, must := range []string{"internal/decide/core", "internal/decide/plan", "internal/lib/money", "cmd/scrimp"} {
		if !seen[must] {
			t.Fatalf("%s was not read: the rules would hold over nothing", must)
		}
	}
	return list
}

func report(t *testing.T, problems []string) {
	t.Helper()
	for _, p := range problems {
		t.Error(p)
	}
}

func TestRules_ImportsPointDown(t *testing.T) {
	for _, p := range packages(t) {
		report(t, Layers(p, House))
	}
}

func TestRules_NeighboursStayApart(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range packages(t) {
		seen[p.room()] = true
		report(t, Apart(p))
	}
	for room := range neighbours {
		if !seen[room] {
			t.Errorf("%s is in neighbours, and there is no such package", room)
		}
	}
}

func TestRules_OnlyTheCommandLineNamesDrivers(t *testing.T) {
	for _, p := range packages(t) {
		report(t, Drivers(p))
	}
}

func TestRules_PublicPackagesExposeNothingInternal(t *testing.T) {
	for _, p := range packages(t) {
		report(t, Public(p))
	}
}

func TestRules_OnlyTestsImportTestSupport(t *testing.T) {
	for _, p := range packages(t) {
		report(t, Support(p))
	}
}

// timed lists the test files that still wait for or compare real time. It may only shrink.
const timed = "testdata/timed.txt"

var shrink = flag.Bool("shrink", false, "take the files that do not depend on real time any more off "+timed)

func TestRules_TestsDoNotDependOnRealTime(t *testing.T) {
	text, err := os.ReadFile(timed)
	if err != nil {
		t.Fatal(err)
	}
	listed := strings.Fields(string(text))
	found := map[string]bool{}
	for _, p := range packages(t) {
		for _, problem := range Timed(p) {
			file, _, _ := strings.Cut(problem, ":")
			if found[file] = true; !slices.Contains(listed, file) {
				t.Error(problem)
			}
		}
	}
	left := slices.DeleteFunc(slices.Clone(listed), func(file string) bool { return !found[file] })
	switch {
	case len(left) == len(listed):
	case *shrink:
		if err := os.WriteFile(timed, []byte(strings.Join(append(left, ""), "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		for _, file := range listed {
			if !found[file] {
				t.Errorf("%s does not depend on real time any more: go test ./internal/test/archtest -run RealTime -shrink", file)
			}
		}
	}
}

func TestRules_ProgramsDoNotInheritTheEnvironment(t *testing.T) {
	for _, p := range packages(t) {
		report(t, Children(p))
	}
}

// errorTexts lists the files that still test an error's text, each because what they call has no typed error. It may
// only shrink.
var errorTexts = []string{
	"hack/paired/bench.go",                      // output of a benchmark of an older tree
	"internal/content/blob/folderblob/write.go", // an error that already names the full folder
	"internal/job/spec/parse.go",                // the line in an error of the YAML library
}

func TestRules_ErrorsAreDistinguishedByType(t *testing.T) {
	found := map[string]bool{}
	for _, p := range packages(t) {
		for _, problem := range ErrorTexts(p) {
			file, _, _ := strings.Cut(problem, ":")
			if found[file] = true; !slices.Contains(errorTexts, file) {
				t.Error(problem)
			}
		}
	}
	for _, file := range errorTexts {
		if !found[file] {
			t.Errorf("%s acts on no error's text any more: take it off the list", file)
		}
	}
}

func TestRules_FloatsAreConvertedInOnePlace(t *testing.T) {
	for _, p := range packages(t) {
		report(t, Conversions(p))
	}
}

func TestRules_PurePackagesArePure(t *testing.T) {
	for _, p := range packages(t) {
		report(t, Pure(p))
	}
}

func TestRules_RandomnessIsPassedIn(t *testing.T) {
	for _, p := range packages(t) {
		report(t, Chance(p))
	}
}

func TestRules_EveryPackageIsDocumented(t *testing.T) {
	for _, p := range packages(t) {
		report(t, Documented(p))
	}
}

func TestRules_LocalBuildCompilesNoCloud(t *testing.T) {
	for _, p := range packages(t) {
		report(t, Local(p))
	}
}

func TestRules_NoFileNamesAMachine(t *testing.T) {
	dir := root(t)
	var also []string
	if strings.Count(dir, "/") > 1 && len(dir) > 8 {
		also = append(also, dir) // short ones occur in other texts
	}
	problems, err := Traces(os.DirFS(dir), also...)
	if err != nil {
		t.Fatal(err)
	}
	report(t, problems)
}

func TestHouse_NamesEachFolderAndEachExceptionOnce(t *testing.T) {
	exceptions := slices.Concat(notPure, seeded, slices.Sorted(maps.Keys(thirds)))
	for _, p := range packages(t) {
		exceptions = slices.DeleteFunc(exceptions, func(e string) bool { return e == p.room() })
	}
	for _, e := range exceptions {
		t.Errorf("%s is an exception in house.go, and there is no such package", e)
	}
	for i, f := range House {
		if slices.IndexFunc(House, func(o Folder) bool { return within(f.Name, o.Name) }) != i {
			t.Errorf("%s is named twice", f.Name)
		}
	}
}

// A property that draws other cases in each run would fail a commit by chance.
func TestProperties_DrawTheSameCasesInEveryCommit(t *testing.T) {
	for _, p := range packages(t) {
		imports := map[string]bool{}
		for _, f := range p.Files {
			if !f.Test {
				continue
			}
			for _, i := range f.Tree.Imports {
				imports[strings.Trim(i.Path.Value, `"`)] = true
			}
		}
		if imports["pgregory.net/rapid"] && !imports[Module+"/internal/test/sameseed"] {
			t.Errorf("%s has tests with rapid and does not import internal/test/sameseed", p.Dir)
		}
	}
}
