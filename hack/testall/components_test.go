package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// module creates a temporary module with one package that contains the tests.
func module(t *testing.T, tests string) (folder string, env []string) {
	t.Helper()
	folder = tree(t, map[string]string{
		"go.mod":    "module example\n\ngo 1.26\n",
		"x_test.go": "package x\nimport (\"os\"; \"testing\")\nvar _ = os.Getenv\n" + tests,
	})
	t.Chdir(folder)
	t.Setenv("SCRIMP_TOOLS", t.TempDir())
	return folder, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-trimpath")
}

// failsOnce is a test that fails in its first run and passes in the next.
const failsOnce = `
func TestFlickers(t *testing.T) {
	if _, err := os.Stat("ran"); err != nil {
		os.WriteFile("ran", nil, 0o600)
		t.Fatal("the first time it fails")
	}
}
func TestSound(t *testing.T) {}
`

func TestSuite_RunsAFailedTestOnceMoreAndCallsItFlaky(t *testing.T) {
	_, env := module(t, failsOnce)
	rec, err := openRecord()
	must.Do(t, err)
	s := dueSuite{Suite: lane.Suite{Name: "x"}, tests: selection{".": {"TestFlickers", "TestSound"}}, hash: "h"}
	r, took, err := suite(t.Context(), env, s, rec)
	must.Do(t, err)
	if r.count("pass") != 2 || len(r.failed()) > 0 || len(r.broken) > 0 {
		t.Errorf("%d passed, failed %v, broken %v: want both passed", r.count("pass"), r.failed(), r.broken)
	}
	if len(rec.Flaky["TestFlickers"]) != 1 || len(rec.Flaky) != 1 {
		t.Errorf("flaky: %v, want TestFlickers once", rec.Flaky)
	}
	logs, _ := filepath.Glob(filepath.Join(rec.folder, "flaky", "TestFlickers-*.log"))
	if len(logs) != 1 {
		t.Fatalf("%d logs of the failure, want 1", len(logs))
	}
	if text, err := os.ReadFile(logs[0]); err != nil || !strings.Contains(string(text), "the first time it fails") {
		t.Errorf("the log is %q, %v", text, err)
	}
	must.Do(t, rec.done(s, took, r))
	other, err := openRecord()
	must.Do(t, err)
	for _, err := range []error{
		other.update(func() { other.Linted = map[string]string{"./x": "1"} }),
		rec.update(func() { rec.Suites["y"] = suiteRun{Green: "g"} }), // which read the record before
	} {
		must.Do(t, err)
	}
	again, err := openRecord()
	if err == nil && (again.Linted["./x"] != "1" || again.Suites["y"].Green != "g") {
		t.Errorf("one of two runs at once lost what the other wrote: %+v", again)
	}
	if err != nil || again.Suites["x"].Green != "h" || len(again.Flaky["TestFlickers"]) != 1 {
		t.Errorf("the record on the disk is %+v, %v", again, err)
	}
}

func TestSuite_FailsWhatFailsTwice(t *testing.T) {
	_, env := module(t, "func TestBroken(t *testing.T) { t.Run(\"part\", func(t *testing.T) { t.Fatal(\"always\") }) }\n")
	rec, err := openRecord()
	must.Do(t, err)
	s := dueSuite{Suite: lane.Suite{Name: "x"}, tests: selection{".": {"TestBroken"}}, hash: "h"}
	r, took, err := suite(t.Context(), env, s, rec)
	must.Do(t, err)
	if f := r.failed(); len(f) != 1 || f[0].Test != "TestBroken/part" || len(rec.Flaky) != 0 {
		t.Errorf("failed %v, flaky %v: want TestBroken/part and nothing flaky", f, rec.Flaky)
	}
	if err := rec.done(s, took, r); err != nil || rec.Suites["x"].Green != "" {
		t.Errorf("a failed suite is recorded as green: %+v, %v", rec.Suites, err)
	}
}

func TestGoTest_ReportsAPackageThatDoesNotBuildOrPanics(t *testing.T) {
	for name, text := range map[string]string{
		"does not build": "func TestX(t *testing.T) { undefined() }\n",
		"panics":         "func TestX(t *testing.T) { go func() { panic(\"boom\") }(); <-make(chan int) }\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, env := module(t, text)
			r, err := goTest(t.Context(), env, ".")
			must.Do(t, err)
			if len(r.failed())+len(r.broken) == 0 {
				t.Errorf("nothing failed: %+v", r)
			}
		})
	}
}

func TestGoTest_EndsWithItsContext(t *testing.T) {
	_, env := module(t, "func TestForever(t *testing.T) { select {} }\n")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(context.Canceled)
	if _, err := goTest(ctx, env, "."); err == nil {
		t.Error("a run that was cancelled ends without an error")
	}
}

func TestDue_SkipsWhatPassedWithTheseInputsAndBeginsWithTheOldest(t *testing.T) {
	root := tree(t, map[string]string{"a/x.go": "package a", "b/x.go": "package b"})
	old := lane.Suites
	t.Cleanup(func() { lane.Suites = old })
	lane.Suites = []lane.Suite{{Name: "a", Inputs: []string{"a"}}, {Name: "b", Inputs: []string{"b"}}}
	marks := []mark{{"./a", "TestA", "a"}, {"./b", "TestB", "b"}}
	rec := &record{Suites: map[string]suiteRun{}, Flaky: map[string][]time.Time{}}
	names := func(o options) (names string) {
		t.Helper()
		list, err := due(rec, root, marks, o)
		must.Do(t, err)
		for _, s := range list {
			names += s.Name
			rec.Suites[s.Name] = suiteRun{When: rec.Suites[s.Name].When, Green: s.hash}
		}
		return names
	}
	if got := names(options{}); got != "ab" {
		t.Errorf("without a record the suites %q run, want both", got)
	}
	if got := names(options{}); got != "" {
		t.Errorf("after both have passed the suites %q run, want none", got)
	}
	rec.Suites["a"] = suiteRun{When: time.Unix(2, 0), Green: rec.Suites["a"].Green}
	rec.Suites["b"] = suiteRun{When: time.Unix(1, 0), Green: rec.Suites["b"].Green}
	if got := names(options{all: true}); got != "ba" {
		t.Errorf("with all, the suites run in the order %q, want the one that ran longest ago first", got)
	}
	must.Do(t, os.WriteFile(filepath.Join(root, "a", "x.go"), []byte("package a // changed"), 0o600))
	if got := names(options{}); got != "a" {
		t.Errorf("after a change of a the suites %q run, want a alone", got)
	}
	if got := names(options{only: []string{"b"}, all: true}); got != "b" {
		t.Errorf("with -only b the suites %q run", got)
	}
}
