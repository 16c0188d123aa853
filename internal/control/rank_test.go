package control

import (
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// Messages of all ranks become events before the end that one of them reports.
func TestReport_WritesTheEndOfARankAfterOtherRanksMessages(t *testing.T) {
	t.Parallel()
	p := &place{name: "a", rate: 1e12}
	s, stop := opened(t, t.TempDir(), p.engine())
	defer stop()
	must.Do(t, s.Propose(t.Context(), at(s, "g", "a")))
	until(t, "a machine", func() bool { return rented(s, "g") != "" })
	say := func(node int, m ...api.Message) {
		t.Helper()
		now := time.Now()
		for n := range m {
			m[n].At = now
		}
		if _, err := s.Report(t.Context(), api.Report{Attempt: "g.1", Node: node, Now: now, First: 1, Messages: m}); err != nil {
			t.Fatal(err)
		}
	}
	say(0, api.Message{Seq: 1, Started: &api.Started{}})
	say(1, api.Message{Seq: 1, Started: &api.Started{}})
	say(0, api.Message{Seq: 2, Step: &api.Step{Step: 1}})
	until(t, "progress", func() bool { return len(eventsOf(t, s, core.Progressed{}.Kind())) == 1 })
	say(0, api.Message{Seq: 3, Step: &api.Step{Step: 2}}) // buffered
	say(1, api.Message{Seq: 2, Ended: &api.Ended{Reason: api.EndFailed, Exit: 1}})
	steps, ends := eventsOf(t, s, core.Progressed{}.Kind()), eventsOf(t, s, core.AttemptEnded{}.Kind())
	if len(steps) != 2 || len(ends) != 1 || steps[1] > ends[0] {
		t.Errorf("progress is told by the events %v, the end by %v", steps, ends)
	}
}

// eventsOf returns the numbers of the durable events of a kind.
func eventsOf(t *testing.T, s *Control, kind string) (seqs []uint64) {
	t.Helper()
	list, err := s.store.RecordsOf(t.Context(), kind, 0, 1000)
	must.Do(t, err)
	for _, r := range list {
		seqs = append(seqs, r.Seq)
	}
	return slices.Sorted(slices.Values(seqs))
}
