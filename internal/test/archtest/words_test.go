package archtest

import (
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestWords_SourceHasNoPrivateWords(t *testing.T) {
	seen := map[string]bool{}
	hold := func(of string, problems []string) {
		seen[of] = true
		report(t, problems)
	}
	for _, p := range packages(t) {
		hold(p.Dir, Words(p))
	}
	files := os.DirFS(root(t))
	names, err := Documents(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		problems, err := Document(files, name)
		if err != nil {
			t.Fatal(err)
		}
		hold(name, problems)
	}
	if !seen["README.md"] {
		t.Error("README.md was not read: the rule would hold over no document")
	}
}

func TestWords_FindsPrivateWords(t *testing.T) {
	for text, want := range map[string]int{
		"package x\n\n// F says what mends\n// it.\nfunc F() {}":               1,
		"package x\n\nvar Help = \"what cannot be taken away\"":                2,
		"package x\n\nvar Head = []string{\"TAKEN\", \"taken\"}":               1,
		"package x\n\ntype Purse struct{ Doubt int }":                          2,
		"package x\n\nfunc Peek() {}\n\nfunc (T) Tell() {}":                    2,
		"package x\n\n// progress bars use a carriage return\nvar A = 1":       0,
		"package x\n\ntype T struct{ Text string `json:\"mend\"` }":            1,
		"package x\n\n// a look at the kind of thing that is taken\nvar A = 1": 0,
	} {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, "x.go", text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if got := Words(Package{Dir: "x", Files: []File{{Name: "x.go", Tree: f, Set: set}}}); len(got) != want {
			t.Errorf("%s\n%d words %q, want %d", text, len(got), got, want)
		}
		if got := Words(Package{Dir: "x", Files: []File{{Name: "x_test.go", Test: true, Tree: f, Set: set}}}); len(got) != 0 {
			t.Errorf("in a test: %q", got)
		}
	}
	files := fstest.MapFS{"a.md": {Data: []byte("# A\n\nfine\n\nit cannot be\ntaken away\n")}, "CHANGELOG.md": {},
		"build/b.md": {}}
	if got, err := Document(files, "a.md"); err != nil || len(got) != 2 || !strings.HasPrefix(got[0], "a.md:5: ") {
		t.Errorf("%q %v", got, err)
	}
	if got, err := Documents(files); err != nil || !slices.Equal(got, []string{"a.md"}) {
		t.Errorf("%q %v", got, err)
	}
}
