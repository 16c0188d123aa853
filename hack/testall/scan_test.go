package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/testbin"
)

// tree writes files into a temporary folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return root
}

func TestScan_SortsTestsByTheirMarks(t *testing.T) {
	root := tree(t, map[string]string{
		"a/a_test.go": `package a
func TestFast(t *testing.T) {}
func TestReal(t *testing.T) { lane.Component(t, "ssh"); run() }
func TestLong(t *testing.T) { lane.Nightly(t, "it takes an hour"); run() }
`,
		"internal/engine/aws/aws_test.go": `package aws
func TestWhole(t *testing.T) {}
func TestWholeButLong(t *testing.T) { lane.Nightly(t, "many seeds") }
func TestMain(m *testing.M) {}
`,
		"a/testdata/x_test.go": "this is no Go",
		"build/x_test.go":      "nor is this",
	})
	marks, err := scan(root)
	must.Do(t, err)
	want := map[string]string{ // test to suite
		"./a TestReal": "ssh", "./a TestLong": "", "./internal/engine/aws TestWhole": "aws",
		"./internal/engine/aws TestWholeButLong": "",
	}
	if len(marks) != len(want) {
		t.Errorf("%d marks, want %d: %v", len(marks), len(want), marks)
	}
	for _, m := range marks {
		if suite, ok := want[m.pkg+" "+m.test]; !ok || suite != m.suite {
			t.Errorf("%s %s is of suite %q, want %q", m.pkg, m.test, m.suite, suite)
		}
	}
}

func TestScan_RefusesAMarkThatIsNotFirst(t *testing.T) {
	for name, text := range map[string]string{
		"second statement": `func TestReal(t *testing.T) { run(); lane.Component(t, "ssh") }`,
		"in a part":        `func TestReal(t *testing.T) { t.Run("x", func(t *testing.T) { lane.Component(t, "ssh") }) }`,
		"in a helper":      `func newHome(t *testing.T) { lane.Component(t, "ssh") }`,
	} {
		root := tree(t, map[string]string{"a/a_test.go": "package a\n" + text})
		if _, err := scan(root); err == nil || !strings.Contains(err.Error(), "a_test.go:2") {
			t.Errorf("%s: %v, want an error that names the place", name, err)
		}
	}
}

func TestScan_RefusesATestThatNoLaneRuns(t *testing.T) {
	for constraint, refused := range map[string]bool{
		"": false, "linux": false, "!linux": false, "local": false, "!local": true, "linux && !local": true,
	} {
		text := "package a\n\nfunc TestX(t *testing.T) {}\n"
		if constraint != "" {
			text = "//go:build " + constraint + "\n\n" + text
		}
		_, err := scan(tree(t, map[string]string{"a/a_test.go": text}))
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "no lane runs TestX") {
			t.Errorf("the constraint %q: %v, want an error: %v", constraint, err, refused)
		}
		marked := strings.Replace(text, "{}", `{ lane.Component(t, "whole") }`, 1)
		if _, err := scan(tree(t, map[string]string{"a/a_test.go": marked})); err != nil {
			t.Errorf("the constraint %q, marked: %v", constraint, err)
		}
	}
}

func TestScan_EverySuiteOfTheRepositoryHasTests(t *testing.T) {
	t.Parallel()
	marks, err := scan(testbin.Root())
	must.Do(t, err)
	for _, s := range lane.Suites {
		if len(selected(marks, s.Name)) == 0 {
			t.Errorf("suite %s has no test", s.Name)
		}
		if _, err := inputs(testbin.Root(), s, selection{}); err != nil {
			t.Errorf("suite %s: %v: correct Inputs in internal/test/lane/suites.go", s.Name, err)
		}
	}
}
