package local

import (
	"flag"
	"os"
	"strings"
	"testing"

	"scrimp/internal/engine/enginetest"
)

var update = flag.Bool("update", false, "write which cases ran into the engine's page")

// The market is held to the contract by its real daemon, and its page says by which cases.
func TestDriverConforms(t *testing.T) {
	results := enginetest.Run(t, func(t testing.TB) enginetest.Rig {
		c := newCloud(t, testTrace(60))
		return enginetest.Rig{
			Driver: c, Granted: always, Empty: never, Fails: fleeing,
			Restart: func(testing.TB) { c.kill(); c.start() },
			Foreign: func(t testing.TB) string { return newCloud(t, testTrace(60)).launch("a.1", always).ID },
		}
	})
	if len(results) < len(enginetest.Cases()) {
		return // some of them were chosen
	}
	const page, begin, end = "../../../docs/engines/local.md", "<!-- cases -->\n", "<!-- end of cases -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	was, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the cases", page)
	}
	now := enginetest.Table(results)
	if *update {
		if err := os.WriteFile(page, []byte(before+begin+now+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if was != now {
		t.Errorf("%s says\n%sand what ran is\n%srun go test -run TestDriverConforms -update", page, was, now)
	}
}
