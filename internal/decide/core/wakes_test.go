package core

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Whatever the order in which looks are asked for, they come out by their time, and
// those of one time in the order in which their jobs were submitted.
func TestLooksComeInTheirOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	m := New()
	for i := range 200 {
		m.Step(Event{At: time.Unix(0, 0), Schema: Schema, Tenant: "t", Body: JobSubmitted{Job: fmt.Sprint("j", i)}})
	}
	jobs := m.s.Jobs()
	for range 200 {
		var asked wakes
		var list []wake
		for range rng.IntN(60) {
			if len(list) > 0 && rng.IntN(3) == 0 {
				if first := asked.pop(); first != list[0] {
					t.Fatalf("job %d at %v comes before job %d at %v", first.job.Order(), first.at, list[0].job.Order(), list[0].at)
				}
				list = list[1:]
				continue
			}
			j := jobs[rng.IntN(len(jobs))]
			w := wake{time.Unix(rng.Int64N(8), 0), j}
			asked.push(w)
			list = append(list, w)
			slices.SortFunc(list, func(a, b wake) int {
				return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.job.Order(), b.job.Order()))
			})
		}
		for _, w := range list {
			if first := asked.pop(); first != w {
				t.Fatalf("job %d at %v comes before job %d at %v", first.job.Order(), first.at, w.job.Order(), w.at)
			}
		}
		if len(asked) != 0 {
			t.Fatalf("%d looks are left that nobody asked for", len(asked))
		}
	}
}
