package jobs

import (
	"testing"

	api "scrimp/client"
)

// The queue has running jobs first, then those that wait in the order in which they start, whatever the speed of their
// clocks, then those whose start is unknown.
func TestQueue_IsInTheOrderOfTheStarts(t *testing.T) {
	waits := func(id string, speed, median float64) api.Job {
		return api.Job{ID: id, State: "queued", Speed: speed, Estimate: &api.JobEstimate{StartS: &[3]float64{0, median, 2 * median}}}
	}
	list := []api.Job{{ID: "e", State: "queued"}, waits("d", 1, 700), waits("c", 10, 6000), {ID: "a", State: "running"},
		waits("b", 1, 0), {ID: "f", State: "queued", Estimate: &api.JobEstimate{}}}
	sortJobs(list, "start")
	order := ""
	for _, j := range list {
		order += j.ID
	}
	if order != "abcdef" {
		t.Errorf("the queue is %s", order)
	}
}
