package view_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"scrimp/internal/decide/state"
	"scrimp/internal/store"
	"scrimp/internal/test/lane"
	"scrimp/internal/view"
)

// archived is an archived job as the test knows it.
type archived struct {
	order  uint64
	state  string
	record string
}

// archive appends n events that archive jobs or bring some back, and notes what is archived after each.
func (w *world) archive(n int, there map[string]archived) {
	w.Helper()
	for range n {
		r := w.event()
		facts, err := state.DecodeFacts(r.Facts)
		must(w, err)
		for range w.rng.IntN(3) {
			order := uint64(1 + w.rng.IntN(60))
			job := fmt.Sprintf("k-%d", order)
			if _, gone := there[job]; gone {
				facts = append(facts, state.JobRehydrated{Job: job})
				delete(there, job)
				continue
			}
			a := archived{order: order, state: []string{"succeeded", "failed", "stopped", "cancelled"}[w.rng.IntN(4)]}
			a.record = fmt.Sprintf(`{"id":%q,"order":%d,"state":%q,"why":"event %d"}`, job, order, a.state, w.seq)
			facts = append(facts, state.JobArchived{Job: job, Record: json.RawMessage(a.record)})
			there[job] = a
		}
		if len(facts) > 0 {
			r.Sample = false
		}
		r.Facts, err = state.EncodeFacts(facts)
		must(w, err)
		must(w, w.Append(w.Context(), []store.Record{r}))
	}
	w.rise(w.seq)
}

// page returns the names of the jobs of a page, computed from all.
func page(there map[string]archived, p view.ArchivedPage) []string {
	list := slices.SortedFunc(maps.Keys(there), func(a, b string) int { return int(there[a].order) - int(there[b].order) })
	list = slices.DeleteFunc(list, func(job string) bool {
		a := there[job]
		return a.order <= p.After || p.Before > 0 && a.order >= p.Before || p.State != "" && p.State != a.state
	})
	if p.Backwards {
		return list[max(0, len(list)-p.Limit):]
	}
	return list[:min(len(list), p.Limit)]
}

// The pages and records of archived jobs agree with the facts of the log, also for jobs that came back in between.
func TestArchived_MatchesTheLog(t *testing.T) {
	t.Parallel()
	for seed := range uint64(lane.Pick(4, 40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w, there := newWorld(t, seed), map[string]archived{}
			for range 3 {
				v, end := w.follow()
				w.archive(40, there)
				names := []string{"none"}
				for order := range 61 {
					names = append(names, fmt.Sprintf("k-%d", order))
				}
				records, err := v.Archived(t.Context(), w.seq, names...)
				must(t, err)
				known, err := v.AreArchived(t.Context(), w.seq, names...)
				must(t, err)
				if len(records) != len(there) || len(known) != len(there) {
					t.Errorf("%d records and %d names, want %d", len(records), len(known), len(there))
				}
				for job, a := range there {
					if string(records[job]) != a.record || !known[job] {
						t.Errorf("the record of %s is %s, want %s", job, records[job], a.record)
					}
				}
				for range 50 {
					p := view.ArchivedPage{After: uint64(w.rng.IntN(70)), Before: uint64(w.rng.IntN(70)), Limit: 1 + w.rng.IntN(20),
						State: []string{"", "failed", "running"}[w.rng.IntN(3)], Backwards: w.rng.IntN(2) == 0}
					jobs, err := v.ArchivedPage(t.Context(), w.seq, p)
					must(t, err)
					var got []string
					for _, j := range jobs {
						got = append(got, j.ID())
					}
					if want := page(there, p); !slices.Equal(got, want) {
						t.Errorf("page %+v: %v, want %v", p, got, want)
					}
				}
				end()
			}
		})
	}
}
