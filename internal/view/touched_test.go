package view_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"scrimp/internal/test/lane"
)

// The jobs that some events concern are listed once, in the order of their last event, whatever the reader has seen.
func TestTouched_ListsJobsOfEventsAfterAnyPosition(t *testing.T) {
	t.Parallel()
	for seed := range uint64(lane.Pick(3, 30)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, seed)
			v, end := w.follow()
			defer func() { end() }()
			for range 3 {
				w.write(100 + w.rng.IntN(900))
				if w.rng.IntN(2) == 0 {
					end()
					v, end = w.follow()
				}
				for range 20 {
					after := uint64(w.rng.IntN(int(w.seq)))
					upTo := after + 1 + uint64(w.rng.IntN(int(w.seq-after)))
					first := map[string]uint64{} // by job: its last event
					for reached := after; reached < upTo; {
						jobs, last, err := v.Touched(t.Context(), reached, upTo)
						must(t, err)
						if last <= reached || last > upTo {
							t.Fatalf("after %d up to %d the page ends at %d", reached, upTo, last)
						}
						want := w.touched(reached, last)
						if !slices.Equal(jobs, want) {
							t.Fatalf("events %d to %d: %v, want %v", reached+1, last, jobs, want)
						}
						for _, job := range jobs {
							first[job] = last
						}
						reached = last
					}
					if all := w.touched(after, upTo); len(first) != len(all) {
						t.Errorf("%d jobs in all pages, want %d", len(first), len(all))
					}
				}
			}
		})
	}
}

// touched lists the jobs of the events in (after, upTo] in the order of their last event, from what the test wrote.
func (w *world) touched(after, upTo uint64) []string {
	last := map[string]string{} // a sortable place
	for seq := after + 1; seq <= upTo; seq++ {
		for i, job := range w.concerned[seq] {
			last[job] = fmt.Sprintf("%09d %09d", seq, i)
		}
	}
	return slices.SortedFunc(maps.Keys(last), func(a, b string) int {
		if last[a] < last[b] {
			return -1
		}
		return 1
	})
}
