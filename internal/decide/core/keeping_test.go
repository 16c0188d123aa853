package core

import (
	"fmt"
	"testing"
	"time"
)

// A machine that keeps what its ended program left is idle meanwhile. It costs 1 per hour, took one minute to start, and
// the program began 9 minutes ago.
func TestProgramEnded_TheTimeToKeepWhatItLeftIsIdle(t *testing.T) {
	for _, c := range []struct {
		reason  string
		keeping time.Duration
		want    string
	}{
		{"completed", 0, "map[start-up:0.016666666666 useful:0.15]"},
		{"completed", 6 * time.Minute, "map[idle:0.1 start-up:0.016666666666 useful:0.05]"},
		{"failed", 6 * time.Minute, "map[idle:0.1 lost:0.05 start-up:0.016666666666]"},
		{"completed", -time.Hour, "map[start-up:0.016666666666 useful:0.15]"},
		{"completed", time.Hour, "map[idle:0.15 start-up:0.016666666666]"},
	} {
		w := imageRig(t, "", 0)
		a, _ := w.Attempt("j.1")
		w.step(0, AttemptEnded{Attempt: "j.1", Reason: c.reason, Keeping: c.keeping})
		if got := fmt.Sprint(a.Tasks()[0].Uses()); got != c.want {
			t.Errorf("%s, keeping %v: %s, want %s", c.reason, c.keeping, got, c.want)
		}
	}
}
