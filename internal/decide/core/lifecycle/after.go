package lifecycle

import (
	"slices"

	"scrimp/internal/decide/state"
)

// DependOn makes a new job or group wait for others that have not ended.
func (js *Jobs) DependOn(id string, after []state.Dependency) {
	for _, d := range after {
		if _, met := js.admission.Dependency(d); met {
			js.Fact(state.DependencyMet{Of: id, On: d.On})
		} else {
			js.Waiters[d.On] = append(js.Waiters[d.On], id)
		}
	}
}

// dependAgain makes a resumed job wait for its dependencies that have not ended. Those that have ended count as met
// even if they failed, because the user resumed the job knowing that.
func (js *Jobs) dependAgain(j *state.Job) {
	for _, d := range slices.Clone(j.Waits()) {
		known := js.State.Job(d.On) != nil || js.State.Group(d.On) != nil
		if done, _ := js.admission.Dependency(d); done || !known {
			js.Fact(state.DependencyMet{Of: j.ID(), On: d.On})
		} else {
			js.Waiters[d.On] = append(js.Waiters[d.On], j.ID())
		}
	}
}

// Enqueue puts a queued job into the queue, unless it still waits for other jobs.
func (js *Jobs) Enqueue(j *state.Job) {
	if js.queue.ClassOf(j); len(j.Waits()) > 0 {
		return
	}
	js.queue.Queue.Add(j)
}
