package marketd

import (
	"log/slog"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/test/must"
)

// A market opened for a log that is ahead of wall time starts at the log's time, and continues from
// there after a restart. Time never runs backwards.
func TestServe_StartsAtTimeOfLog(t *testing.T) {
	t.Parallel()
	wall := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct{ after, begins time.Time }{
		"no log":               {time.Time{}, wall},
		"a log that is behind": {wall.Add(-time.Hour), wall},
		"a log that is ahead":  {wall.Add(60 * time.Hour), wall.Add(60 * time.Hour)},
	} {
		now, dir := wall, folder(t)
		for _, after := range []time.Time{c.after, {}} { // the second time finds the market
			d := &daemon{opts: Options{Dir: dir, Trace: testTrace(60), After: after, Log: slog.New(slog.DiscardHandler), now: func() time.Time { return now }}, keys: map[string][]*machine{}}
			must.Do(t, d.load())
			want := c.begins.Add(60 * now.Sub(wall))
			if got := d.now(); !got.Equal(want) || !d.toWall(got).Equal(now) {
				t.Errorf("%s, %v later: market time %v, want %v; back on the wall %v", name, now.Sub(wall), got, want, d.toWall(got))
			}
			if at := (engine.Clock{Wall: d.opened.begun(), Market: d.opened.At}); !at.Market.Equal(c.begins) || !at.Wall.Equal(wall) {
				t.Errorf("%s: it opened at %v, which was %v", name, at.Wall, at.Market)
			}
			if err := d.journal.f.Close(); err != nil {
				t.Error(err)
			}
			now = now.Add(10 * time.Minute)
		}
	}
}
