package inbox

import (
	"reflect"
	"testing"
	"time"

	"scrimp/internal/wire/api"
)

// Whatever a machine's clock says, its messages keep their distance in time before the report. If the clock is about
// right, nothing changes.
func TestOurs_CorrectsClockSkew(t *testing.T) {
	t.Parallel()
	heard := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	until := heard.Add(2 * time.Minute)
	for _, off := range []time.Duration{0, minSkew - 1, 1 - minSkew, minSkew, 2 * time.Hour, -2 * time.Hour, -48 * time.Hour} {
		sent := heard.Add(off)
		m := api.Message{Seq: 3, At: sent.Add(-time.Minute), Saved: &api.Saved{Captured: sent.Add(-2 * time.Minute), Took: time.Second}, Noticed: &api.Noticed{Until: until}}
		captured := m.Saved.Captured
		got := ours(m, sent, heard)
		if off.Abs() < minSkew {
			if !reflect.DeepEqual(got, m) {
				t.Errorf("a clock that is off by %v is set", off)
			}
			continue
		}
		if at, c := heard.Sub(got.At), heard.Sub(got.Saved.Captured); at != time.Minute || c != 2*time.Minute || !got.Noticed.Until.Equal(until) {
			t.Errorf("a clock that is off by %v: said %v ago, captured %v ago, a notice until %v", off, at, c, got.Noticed.Until)
		}
		if !m.Saved.Captured.Equal(captured) {
			t.Error("the report itself was changed")
		}
	}
	old := api.Message{At: heard.Add(-time.Hour)}
	if got := ours(old, time.Time{}, heard); !got.At.Equal(old.At) {
		t.Errorf("an agent that says no time is taken to be off: %v", got.At)
	}
}
