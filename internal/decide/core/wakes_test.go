package core

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/core/step"
)

// Reviews are ordered by time, and at the same time by the submission of their jobs, whatever the order of the
// requests.
func TestWakes_AreOrderedByTimeThenSubmission(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	m := New()
	for i := range 200 {
		m.Step(Event{At: time.Unix(0, 0), Schema: Schema, Tenant: "t", Body: JobSubmitted{Job: fmt.Sprint("j", i)}})
	}
	jobs := m.step.State.Jobs()
	for range 200 {
		var asked step.Wakes
		var list []step.Wake
		for range rng.IntN(60) {
			if len(list) > 0 && rng.IntN(3) == 0 {
				if first := asked.Pop(); first != list[0] {
					t.Fatalf("job %d at %v comes before job %d at %v", first.Job.Order(), first.At, list[0].Job.Order(), list[0].At)
				}
				list = list[1:]
				continue
			}
			j := jobs[rng.IntN(len(jobs))]
			w := step.Wake{At: time.Unix(rng.Int64N(8), 0), Job: j}
			asked.Push(w)
			list = append(list, w)
			slices.SortFunc(list, func(a, b step.Wake) int {
				return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Job.Order(), b.Job.Order()))
			})
		}
		for _, w := range list {
			if first := asked.Pop(); first != w {
				t.Fatalf("job %d at %v comes before job %d at %v", first.Job.Order(), first.At, w.Job.Order(), w.At)
			}
		}
		if len(asked) != 0 {
			t.Fatalf("%d looks are left that nobody asked for", len(asked))
		}
	}
}
