package inbox

import (
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
	"scrimp/internal/wire/api"
)

func unheard(start time.Time) *Inbox {
	return New(Config{Clock: engine.Clock{Wall: start, Market: start, Speed: 1}})
}

// Two ranks of an attempt may send messages with the same numbers: their events have different keys and actors, and
// do not mix.
func TestReport_TellsRanksApart(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	c := unheard(start)
	first, third := c.hear("a", 0, start), c.hear("a", 2, start.Add(time.Second))
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
	if at := c.Last("a", 2); !at.Equal(start.Add(time.Second)) || !c.Last("a", 1).IsZero() || !c.Last("a", 7).IsZero() {
		t.Errorf("rank 2 was heard at %v, rank 1 at %v", at, c.Last("a", 1))
	}
}

// Rank 0 reports for the job: progress and checkpoints of other ranks are no events, and delay nothing.
func TestReport_TakesProgressAndCheckpointsFromRankZeroOnly(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	c := unheard(start)
	l := c.hear("a", 1, start)
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
	all, of := c.Due(start)
	if len(all) != 1 || all[0].Key != "a/1/5" || all[0].Body.(core.UsageSeen).Node != 1 || len(of) != 1 {
		t.Errorf("due is %+v", all)
	}
	if now, ok := c.Latest("a", 1); !ok || now.Usage.CPU != 2 {
		t.Errorf("rank 1 uses %+v, %v", now.Usage, ok)
	}
	if _, ok := c.Latest("a", 0); ok {
		t.Error("nothing was heard of rank 0")
	}
}

// An attempt is kept as long as any of its ranks was heard lately.
func TestKeep_KeepsAnAttemptWhileAnyRankIsHeard(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	c := unheard(start)
	c.hear("a", 0, start)
	c.hear("a", 3, start.Add(2*time.Minute))
	c.hear("b", 1, start)
	c.Keep(map[string]int{"c": 4}, start.Add(2*time.Minute))
	if len(c.RanksOf("a")) != 2 || len(c.RanksOf("b")) != 0 || c.live != 4 {
		t.Errorf("kept are %v, %d live", c.by, c.live)
	}
	c.HearAll(start.Add(time.Hour))
	for _, l := range c.RanksOf("a") {
		if !l.Heard.Equal(start.Add(time.Hour)) {
			t.Errorf("rank %d was heard at %v", l.Node, l.Heard)
		}
	}
}
