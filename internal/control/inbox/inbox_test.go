package inbox

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
	"scrimp/internal/test/lane"
	"scrimp/internal/wire/api"
)

// Progress becomes an event only now and then, but the last progress becomes one before a save, an end or anything
// else that depends on it, and the core hears no older message after a newer one.
func TestReport_WritesTheLastProgressBeforeWhatFollows(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	c := New(Config{Clock: engine.Clock{Wall: start, Market: start, Speed: 1}})
	l := c.hear("a", 0, start)
	seq, heard := int64(0), int64(0)
	told := func(events []core.Event, at time.Time) (kinds []string) {
		for _, e := range events {
			kinds = append(kinds, e.Body.Kind())
			message := int64(0)
			if _, err := fmt.Sscanf(e.Key, "a/%d", &message); err != nil || message <= heard {
				t.Errorf("%s has the key %q after message %d", e.Body.Kind(), e.Key, heard)
			}
			heard = message
		}
		l.committed(events, at)
		return kinds
	}
	say := func(m api.Message) func(time.Time) []string {
		return func(at time.Time) []string {
			seq++
			m.Seq, m.At = seq, at
			return told(c.heardFrom(l, m, at), at)
		}
	}
	step := func(n int64) func(time.Time) []string { return say(api.Message{Step: &api.Step{Step: n}}) }
	flush := func(at time.Time) []string {
		all, of := c.Due(at)
		kinds := told(all, at)
		c.Release(of, true, at)
		return kinds
	}
	save, use := say(api.Message{Saved: &api.Saved{}}), say(api.Message{Usage: &api.Usage{}})
	const ms = time.Millisecond
	progress, saved, ended, usage := core.Progressed{}.Kind(), core.CheckpointSaved{}.Kind(), core.AttemptEnded{}.Kind(), core.UsageSeen{}.Kind()
	for i, c := range []struct {
		at   time.Duration
		do   func(time.Time) []string
		want []string
	}{
		{0, step(1), nil},
		{0, flush, []string{progress}},
		{0, flush, nil},
		{100 * ms, step(2), nil},
		{150 * ms, flush, nil}, // too soon
		{200 * ms, save, []string{progress, saved}},
		{300 * ms, save, []string{saved}},
		{400 * ms, step(3), nil},
		{2000 * ms, flush, nil},
		{2200 * ms, flush, []string{progress}},
		{3100 * ms, step(5), nil},
		{3200 * ms, use, nil},
		{3200 * ms, step(6), nil},
		{3300 * ms, save, []string{usage, progress, saved}},
		{3400 * ms, use, nil},
		{3500 * ms, say(api.Message{Step: &api.Step{Broken: []string{"loss"}}}), []string{progress}}, // at once
		{13400 * ms, flush, nil}, // the usage is older than the last event
		{13400 * ms, step(8), nil},
		{13500 * ms, use, nil},
		{13600 * ms, flush, []string{progress, usage}},
		{13700 * ms, step(9), nil},
		{13800 * ms, say(api.Message{Ended: &api.Ended{Step: 9}}), []string{progress, ended}},
		{20000 * ms, flush, nil},
	} {
		if got := c.do(start.Add(c.at)); !slices.Equal(got, c.want) {
			t.Errorf("line %d at %v: events %v, want %v", i+1, c.at, got, c.want)
		}
	}
}

// However many agents report, messages that decide nothing add a bounded amount to the log, and no pause between
// reports is long enough to look like silence.
func TestSampling_BoundsTheLogForManyAgents(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	c := New(Config{Clock: engine.Clock{Wall: start, Market: start, Speed: 1}, Silence: 20 * time.Second})
	for _, n := range []int{1, 10, 200, lane.Pick(1000, 5000)} {
		c.by = map[string]ranks{}
		c.live = n
		events, reports := 0, 0
		const span = 2 * time.Minute
		next := make([]time.Duration, n)
		for at := time.Duration(0); at < span; at += FlushEvery {
			wall := start.Add(at)
			for i := range n {
				if at < next[i] {
					continue
				}
				next[i] = at + c.reportEvery(n)
				reports++
				l := c.hear(fmt.Sprint(i), 0, wall)
				l.top++
				events += len(c.heardFrom(l, api.Message{Seq: 2 * l.top, At: wall, Step: &api.Step{Step: l.top}}, wall))
				events += len(c.heardFrom(l, api.Message{Seq: 2*l.top + 1, At: wall, Usage: &api.Usage{}}, wall))
			}
			all, of := c.Due(wall)
			events += len(all)
			c.Release(of, true, wall)
		}
		most := float64(2*n) + span.Seconds()*float64(progressASecond+usagesASecond) // the first message of each becomes an event at once
		if float64(events) > most || float64(reports) > float64(n)+1.3*span.Seconds()*reportsASecond {
			t.Errorf("%d agents: %d reports and %d events in %v, want at most %.0f", n, reports, events, span, most)
		}
		if n <= 10 && events < 30*n {
			t.Errorf("%d agents make %d events in %v, want one each %v of each at first", n, events, span, stepAtLeast)
		}
		if c.reportEvery(n) > c.Silence/2 {
			t.Errorf("%d agents report every %v, and are silent after %v", n, c.reportEvery(n), c.Silence)
		}
	}
}
