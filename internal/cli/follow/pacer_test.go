package follow

import (
	"testing"
	"time"

	api "scrimp/client"
)

// If progress goes to a file, a waiting job gets a line a minute, and a change gets a line at once.
func TestPacer_DoesNotRepeatWaitingInFile(t *testing.T) {
	var p pacer
	now := time.Unix(0, 0)
	lines := func(j api.Job, span time.Duration) (n int) {
		for end := now.Add(span); now.Before(end); now = now.Add(100 * time.Millisecond) {
			if p.worth(j, now) {
				n++
			}
		}
		return n
	}
	for _, c := range []struct {
		name string
		job  api.Job
		span time.Duration
		want int
	}{
		{"it waits", api.Job{State: "queued", Why: "waits_spot"}, 50 * time.Second, 1},
		{"it waits for something else", api.Job{State: "queued", Why: "no_offer"}, 50 * time.Second, 1},
		{"it goes on waiting", api.Job{State: "queued", Why: "no_offer"}, 20 * time.Second, 1},
		{"it runs", api.Job{State: "running", Phase: "running", Machine: "i"}, 9 * time.Second, 3},
		{"it saves", api.Job{State: "running", Phase: "saving", Machine: "i"}, time.Second, 1},
	} {
		if got := lines(c.job, c.span); got != c.want {
			t.Errorf("%s: %d lines in %v, want %d", c.name, got, c.span, c.want)
		}
	}
}
