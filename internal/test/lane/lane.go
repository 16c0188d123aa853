// Package lane sorts tests into the three lanes that the Makefile runs. It is for tests and tools only.
//
// A test without a mark belongs to the commit lane: it needs nothing but Go and a POSIX shell, it never waits for a
// fixed span of real time, and it never compares wall-clock times. A test that needs a real component (sshd, Slurm,
// PostgreSQL, Python, root, …) begins with Component; a test that takes long begins with Nightly.
package lane

import (
	"os"
	"slices"
	"testing"
)

// Variable names the environment variable that chooses the lane. Unset means Commit, so that a plain go test runs what
// make test runs.
const Variable = "SCRIMP_LANE"

// The lanes.
const (
	Commit     = "commit"     // make test: everything that Go alone allows
	Components = "components" // make components: real components, one suite each
	Night      = "nightly"    // make nightly: everything that takes long
)

// Current returns the lane that runs.
func Current() string {
	if l := os.Getenv(Variable); l != "" {
		return l
	}
	return Commit
}

// Component marks t as a test of that suite and skips it unless the component lane runs. The call is the first
// statement of the test function: hack/testall finds the tests of a suite by reading the source.
func Component(t testing.TB, suite string) {
	t.Helper()
	if !slices.ContainsFunc(Suites, func(s Suite) bool { return s.Name == suite }) {
		t.Fatalf("lane: there is no suite %q: the suites are in internal/test/lane/suites.go", suite)
	}
	if Current() != Components {
		t.Skipf("component lane, suite %s", suite)
	}
}

// Nightly marks t as a test that takes too long for each commit and skips it unless the nightly lane runs. The call is
// the first statement of the test function, as with Component.
func Nightly(t testing.TB, why string) {
	t.Helper()
	if Current() != Night {
		t.Skipf("nightly lane: %s", why)
	}
}

// Pick returns few in the commit and component lanes and many in the nightly lane: the number of seeds, rounds or
// generated cases of a property.
func Pick(few, many int) int {
	if Current() == Night {
		return many
	}
	return few
}
