package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	goTestRun = regexp.MustCompile("-run\\s+(?:'([^'\n]+(?:\n[^'\n]+)?)'|([A-Z][A-Za-z0-9_|/]+))")
	testFunc  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example|Benchmark)\w*)\(`)
	named     = regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z]\\w+)`")
)

// TestEveryRunPattern_MatchesATest checks that a command such as go test -run 'A|B' in a document or in the Makefile
// selects a test by each of its alternatives, and that each test that a document names exists: go test prints "ok" where
// a pattern matches nothing, so nobody would notice a renamed test.
func TestEveryRunPattern_MatchesATest(t *testing.T) {
	t.Parallel()
	have := testNames(t)
	list := documents(t)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	list["Makefile"] = string(makefile)
	delete(list, "CHANGELOG.md")    // names tests as they were
	delete(list, "CONTRIBUTING.md") // names examples
	for name, text := range list {
		for _, m := range goTestRun.FindAllStringSubmatch(text, -1) {
			pattern := strings.ReplaceAll(strings.ReplaceAll(m[1]+m[2], "\\|", "|"), "$$", "$")
			if slices.Contains([]string{"^$", "^$$", "XXX", "TEST"}, pattern) { // no test at all, or a placeholder
				continue
			}
			for _, one := range alternatives(pattern) {
				one, _, _ = strings.Cut(one, "/")
				re, err := regexp.Compile(one)
				if err != nil {
					t.Errorf("%s: -run %q: %v", name, pattern, err)
				} else if !slices.ContainsFunc(have, re.MatchString) {
					t.Errorf("%s: -run %q: no test matches %q", name, pattern, one)
				}
			}
		}
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			if !slices.ContainsFunc(have, func(n string) bool { return strings.HasPrefix(n, m[1]) }) {
				t.Errorf("%s names %s, and there is no such test", name, m[1])
			}
		}
	}
}

// alternatives splits a pattern at the bars outside parentheses.
func alternatives(pattern string) (list []string) {
	deep, from := 0, 0
	for i, r := range pattern {
		switch {
		case r == '(':
			deep++
		case r == ')':
			deep--
		case r == '|' && deep == 0:
			list, from = append(list, pattern[from:i]), i+1
		}
	}
	return append(list, pattern[from:])
}

// testNames returns the names of all tests, examples, benchmarks and fuzz tests of the repository.
func testNames(t *testing.T) (list []string) {
	t.Helper()
	for _, folder := range []string{"client", "cmd", "deploy", "examples", "hack", "internal", "money"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range testFunc.FindAllSubmatch(text, -1) {
				list = append(list, string(m[1]))
			}
			return err
		})
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return list
}
