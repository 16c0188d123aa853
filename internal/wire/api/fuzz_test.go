package api_test

import (
	"strings"
	"testing"

	"scrimp/internal/lib/child"
	"scrimp/internal/wire/api"
)

// Each rank has exactly one name, and outputs belong to the job in their name.
func FuzzNames(f *testing.F) {
	for _, text := range []string{"job.1", "job.1/3", "job.1/0", "job.1/-1", "job/07", "/", "\x00/1", "job.1/99999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if attempt, node, ok := api.ParseRank(text); ok && (api.Rank(attempt, node) != text || node < 0) {
			t.Errorf("%q is read as rank %d of %q", text, node, attempt)
		}
		if node, ok := api.ParseOutputs("job", text); ok && (api.OutputsName("job", node) != text || node < 0 ||
			!strings.HasPrefix(text, "job")) {
			t.Errorf("%q is read as outputs of node %d", text, node)
		}
		_ = child.OfAgent(text)
	})
}
