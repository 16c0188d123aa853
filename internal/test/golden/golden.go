// Package golden compares output with files under testdata. Run the tests of a package with -update to rewrite them,
// and read the diff.
package golden

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/test/must"
)

var update = flag.Bool("update", false, "rewrite golden files")

// Check compares got with testdata/name, or rewrites it under -update.
func Check(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", filepath.FromSlash(name))
	if *update {
		must.Do(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must.Do(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: go test -update writes it", err)
	}
	if got == string(want) {
		return
	}
	a, b := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			t.Errorf("%s, line %d:\n want %q\n"+
				" got  %q\nThe whole is\n%s\ngo test -update rewrites the file", file, i+1, x, y, got)
			return
		}
	}
}

// JSON is Check for v as --json prints it, indented.
func JSON(t *testing.T, name string, v any) {
	t.Helper()
	var line, b bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	must.Do(t, e.Encode(v))
	must.Do(t, json.Indent(&b, line.Bytes(), "", "  "))
	Check(t, name, b.String())
}
