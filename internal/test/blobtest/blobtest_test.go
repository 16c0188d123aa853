package blobtest

import (
	"strings"
	"testing"

	"scrimp/internal/test/lane"
)

// heard is a test that records how it would end.
type heard struct {
	testing.TB
	failed, skipped string
}

func (h *heard) Helper()           {}
func (h *heard) Fatal(args ...any) { h.failed = args[0].(string) }
func (h *heard) Skip(args ...any)  { h.skipped = args[0].(string) }

// A server of objects that is not installed fails the component lane, and elsewhere the skip says what is missing.
func TestProgram_IsMissedLoudly(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("SCRIMP_VERSITYGW", "")
	for _, name := range []string{"", lane.Commit, lane.Components, lane.Night} {
		t.Setenv(lane.Variable, name)
		h := &heard{TB: t}
		program(h, "SCRIMP_VERSITYGW", "versitygw")
		said := h.failed + h.skipped
		if (h.failed != "") != (name == lane.Components) || (h.skipped != "") == (name == lane.Components) ||
			!strings.Contains(said, "versitygw is not installed") || !strings.Contains(said, "SCRIMP_VERSITYGW") {
			t.Errorf("lane %q: fails with %q, skips with %q", name, h.failed, h.skipped)
		}
	}
}
