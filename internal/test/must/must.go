// Package must ends a test when a step that has to succeed fails.
package must

// A T ends a test: *testing.T, *testing.B, *testing.F and *rapid.T.
type T interface {
	Helper()
	Fatal(args ...any)
}

// Do ends the test if err is not nil.
func Do(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
