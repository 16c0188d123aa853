package enginetest

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write which cases ran into the engine's page")

// Page checks that the table between two comments of an engine's page lists the cases that ran. It checks nothing if
// only some cases were selected, or some have no result.
func Page(t testing.TB, page string, results []Result) {
	t.Helper()
	none := func(r Result) bool { return r.Skipped == notOver }
	if len(results) < len(Cases()) || slices.ContainsFunc(results, none) {
		return
	}
	const begin, end = "<!-- cases -->\n", "<!-- end of cases -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	was, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the cases", page)
	}
	now := Table(results)
	if *update {
		text := []byte(before + begin + now + end + after)
		if err := os.WriteFile(page, text, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if was != now {
		t.Errorf("%s says\n%sand what ran is\n%srun the test again with -update", page, was, now)
	}
}
