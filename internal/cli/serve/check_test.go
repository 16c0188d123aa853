package serve_test

import (
	"strings"
	"testing"
	"time"

	"scrimp/internal/cli/serve"
)

// The guaranteed run takes days, as --retain does.
func TestMinimumRun_ReadsSpansWithDays(t *testing.T) {
	for text, want := range map[string]time.Duration{"10m": 10 * time.Minute, "1s": time.Second, "30d": 30 * 24 * time.Hour,
		"1d12h": 36 * time.Hour} {
		if d, err := serve.MinimumRun(text); err != nil || d != want {
			t.Errorf("%s: %v, %v", text, d, err)
		}
	}
	for _, text := range []string{"", "0s", "-1h", "31d", "10", "999ms"} {
		if _, err := serve.MinimumRun(text); err == nil || !strings.HasPrefix(err.Error(), "--preempt-after "+text+":") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
