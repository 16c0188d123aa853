package control

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"scrimp/internal/store"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/must"
)

// Samples older than a week are deleted once two snapshots contain them. Younger ones and all other events stay.
func TestDropSamples_DeletesOldSamplesInBothSnapshots(t *testing.T) {
	t.Parallel()
	st, err := sqlite.Open(t.TempDir())
	must.Do(t, err)
	defer func() { _ = st.Close() }()
	now := time.Now().UTC()
	var records []store.Record
	for n := range 100 {
		r := store.Record{
			Seq: uint64(n + 1), Tenant: "t", At: now.Add(time.Minute - time.Duration(100-n)*4*time.Hour), Kind: "tick", Event: []byte(`{}`), Sample: n%3 > 0,
		}
		records = append(records, r)
	}
	must.Do(t, st.Append(t.Context(), records))
	for _, seq := range []uint64{80, 100} {
		must.Do(t, st.SaveSnapshot(t.Context(), store.Snapshot{Seq: seq, Version: 1, State: []byte(`{}`)}))
	}
	c := &Control{store: st, cfg: Config{Clock: Clock{Wall: now, Market: now, Speed: 1}, Log: slog.New(slog.DiscardHandler)}}
	c.dropSamples(t.Context(), 80)
	left, err := st.Records(t.Context(), 0, 1000)
	must.Do(t, err)
	got := map[bool]int{}
	for _, r := range left {
		old := now.Sub(r.At) > keepSamples
		if r.Sample && old {
			t.Errorf("sample %d of %v is left", r.Seq, r.At)
		}
		got[r.Sample]++
	}
	if want := map[bool]int{false: 34, true: 28}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("left are %v, want %v", got, want)
	}
}
