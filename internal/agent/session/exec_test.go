package session

import (
	"os"
	"strings"
	"testing"
	"time"

	"scrimp/internal/agent/logship"
)

// Execute keeps the first part of unlimited output, and the command ends.
func TestExecute_KeepsFirstPartOfOutput(t *testing.T) {
	t.Parallel()
	got := Execute(t.Context(), []string{"head", "-c", "5000000", "/dev/zero"}, t.TempDir(), os.Environ(), 0, logship.Masker{}, time.Minute)
	if len(got.Output) != execOutput || got.Exit != 0 || !strings.Contains(got.Error, "cut at 1048576") {
		t.Errorf("%d bytes, exit %d, %q", len(got.Output), got.Exit, got.Error)
	}
}
