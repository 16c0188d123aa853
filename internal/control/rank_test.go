package control

import (
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/wire/api"
)

func unheard(start time.Time) *Control {
	return &Control{cfg: Config{Clock: Clock{Wall: start, Market: start, Speed: 1}}, agents: agentStatus{by: map[string]ranks{}}}
}

// Two ranks of an attempt may send messages with the same numbers: their events have different keys and actors, and
// do not mix.
func TestReport_TellsRanksApart(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	c := unheard(start)
	first, third := c.agents.hear("a", 0, start), c.agents.hear("a", 2, start.Add(time.Second))
	keys := map[string]bool{}
	for _, m := range []api.Message{
		{Seq: 1, Started: &api.Started{}}, {Seq: 2, Noticed: &api.Noticed{}}, {Seq: 3, Ended: &api.Ended{Reason: api.EndDrained}},
	} {
		for node, l := range map[int]*Latest{0: first, 2: third} {
			m.At = start
			list := c.heardFrom(l, m, start)
			if len(list) != 1 || keys[list[0].Key] || list[0].Actor != "agent:"+api.Rank("a", node) {
				t.Fatalf("rank %d says %+v: %+v", node, m, list)
			}
			keys[list[0].Key] = true
			said := -1
			switch b := list[0].Body.(type) {
			case core.AttemptStarted:
				said = b.Node
			case core.NoticeGiven:
				said = b.Node
			case core.AttemptEnded:
				said = b.Node
			}
			if said != node {
				t.Errorf("what rank %d says is of rank %d", node, said)
			}
			if node == 2 {
				l.committed(list, start)
			}
		}
	}
	if !keys["a/3"] || !keys["a/2/3"] || first.said != 0 || third.said != 3 {
		t.Errorf("keys %v; durable are %d messages of rank 0, and %d of rank 2", keys, first.said, third.said)
	}
	if at := c.agents.last("a", 2); !at.Equal(start.Add(time.Second)) || !c.agents.last("a", 1).IsZero() || !c.agents.last("a", 7).IsZero() {
		t.Errorf("rank 2 was heard at %v, rank 1 at %v", at, c.agents.last("a", 1))
	}
}

// Rank 0 reports for the job: progress and checkpoints of other ranks are no events, and delay nothing.
func TestReport_TakesProgressAndCheckpointsFromRankZeroOnly(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	c := unheard(start)
	l := c.agents.hear("a", 1, start)
	for _, m := range []api.Message{
		{Seq: 1, Step: &api.Step{Step: 7}}, {Seq: 2, Step: &api.Step{Broken: []string{"loss"}}}, {Seq: 3, Saved: &api.Saved{}},
		{Seq: 4, Refused: &api.Refused{}},
	} {
		if list := c.heardFrom(l, m, start); len(list) > 0 || l.Step.Step != 0 {
			t.Errorf("%+v is told as %+v", m, list)
		}
	}
	if list := c.heardFrom(l, api.Message{Seq: 5, At: start, Usage: &api.Usage{CPU: 2}}, start); len(list) > 0 {
		t.Errorf("usage is told at once: %+v", list)
	}
	all, of := c.due(start)
	if len(all) != 1 || all[0].Key != "a/1/5" || all[0].Body.(core.UsageSeen).Node != 1 || len(of) != 1 {
		t.Errorf("due is %+v", all)
	}
	if now, ok := c.LatestOf("a", 1); !ok || now.Usage.CPU != 2 {
		t.Errorf("rank 1 uses %+v, %v", now.Usage, ok)
	}
	if _, ok := c.Latest("a"); ok {
		t.Error("nothing was heard of rank 0")
	}
}

// An attempt is kept as long as any of its ranks was heard lately.
func TestKeep_KeepsAnAttemptWhileAnyRankIsHeard(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	c := unheard(start)
	c.agents.hear("a", 0, start)
	c.agents.hear("a", 3, start.Add(2*time.Minute))
	c.agents.hear("b", 1, start)
	c.agents.keep(map[string]int{"c": 4}, start.Add(2*time.Minute))
	if len(c.agents.ranksOf("a")) != 2 || len(c.agents.ranksOf("b")) != 0 || c.agents.live != 4 {
		t.Errorf("kept are %v, %d live", c.agents.by, c.agents.live)
	}
	c.agents.all(start.Add(time.Hour))
	for _, l := range c.agents.ranksOf("a") {
		if !l.Heard.Equal(start.Add(time.Hour)) {
			t.Errorf("rank %d was heard at %v", l.node, l.Heard)
		}
	}
}

// Messages of all ranks become events before the end that one of them reports.
func TestReport_WritesTheEndOfARankAfterOtherRanksMessages(t *testing.T) {
	t.Parallel()
	p := &place{name: "a", rate: 1e12}
	s, stop := opened(t, t.TempDir(), p.engine())
	defer stop()
	if err := s.Propose(t.Context(), at(s, "g", "a")); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		seqs = append(seqs, r.Seq)
	}
	return slices.Sorted(slices.Values(seqs))
}
