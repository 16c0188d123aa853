package show

import (
	"strings"
	"testing"

	api "scrimp/client"
)

// Text from a job's program and its submitter cannot steer a terminal.
func TestJob_TextCannotSteerTerminal(t *testing.T) {
	const steers = "\x1b]0;owned\a\x1b[2J\u009b31m\u202e\rowned"
	j := api.Job{ID: "a", Name: "a", State: "running", Why: steers, Detail: steers, Phase: steers, Machine: steers, Offer: steers, Team: steers, Project: steers, User: steers,
		Outputs: steers, Tags: map[string]string{steers: steers}, Metrics: map[string]float64{steers: 1, "loss": 1}, Step: 1}
	for name, text := range map[string]string{"status": Job(j, Place{}), "progress": Progress(j, Place{}), "the list": Jobs([]api.Job{j}, Place{})} {
		if at := strings.IndexAny(text, "\x1b\a\u009b\u202e\r"); at >= 0 {
			t.Errorf("%s: %q", name, text[max(0, at-30):min(len(text), at+30)])
		}
	}
}
