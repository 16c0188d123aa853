package enginetest

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/test/must"
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
	must.Do(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	was, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the cases", page)
	}
	now := Table(results)
	if *update {
		text := []byte(before + begin + now + end + after)
		must.Do(t, os.WriteFile(page, text, 0o644))
		return
	}
	if was != now {
		t.Errorf("%s says\n%sand what ran is\n%srun the test again with -update", page, was, now)
	}
}
