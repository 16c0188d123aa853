package control

import (
	"slices"
	"testing"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/core"
)

// Progress becomes an event now and then only, but what a program said last is
// told before its save, its end or anything else that is judged by it.
func TestTheLastProgressIsToldBeforeWhatFollows(t *testing.T) {
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	c := &Control{cfg: Config{Clock: Clock{Wall: start, Market: start, Speed: 1}}}
	l := &Latest{}
	seq := int64(0)
	say := func(at time.Duration, m api.Message) (kinds []string) {
		seq++
		m.Seq, m.At = seq, start.Add(at)
		for _, e := range c.heardFrom(l, "a", m) {
			kinds = append(kinds, e.Body.Kind())
			if p, ok := e.Body.(core.Progressed); ok && (e.Key == "" || p.Message > seq) {
				t.Errorf("%+v has the key %q", p, e.Key)
			}
		}
		return kinds
	}
	step := func(n int64) api.Message { return api.Message{Step: &api.Step{Step: n}} }
	const ms = time.Millisecond
	progress, saved, ended := core.Progressed{}.Kind(), core.CheckpointSaved{}.Kind(), core.AttemptEnded{}.Kind()
	for i, c := range []struct {
		at   time.Duration
		say  api.Message
		want []string
	}{
		{0, step(1), []string{progress}},
		{100 * ms, step(2), nil},
		{200 * ms, api.Message{Saved: &api.Saved{}}, []string{progress, saved}},
		{300 * ms, api.Message{Saved: &api.Saved{}}, []string{saved}},
		{400 * ms, step(3), nil},
		{3000 * ms, step(4), []string{progress}},
		{3100 * ms, step(5), nil},
		{3200 * ms, step(6), nil},
		{12 * time.Second, api.Message{Usage: &api.Usage{}}, []string{progress, core.UsageSeen{}.Kind()}}, // the core hears no older message after a newer one
		{12100 * ms, step(7), []string{progress}},
		{12200 * ms, step(8), nil},
		{12300 * ms, api.Message{Ended: &api.Ended{Step: 8}}, []string{progress, ended}},
	} {
		if got := say(c.at, c.say); !slices.Equal(got, c.want) {
			t.Errorf("message %d: events %v, want %v", i+1, got, c.want)
		}
	}
}
