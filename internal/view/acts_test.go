package view_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/lib/identity"
	"scrimp/internal/store"
	"scrimp/internal/view"
)

// The acts of everybody, of a user and of a route are those of the log, whatever their names contain.
func TestActs_AreThoseOfEverybodyTheUserAndTheRoute(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 11)
	names := []string{"", "ann", "ann/", "ann/0", "annette", "ä~", "3/ann"}
	want := map[view.Actor][]uint64{}
	write := func(n int) {
		for range n {
			w.write(w.rng.IntN(3))
			w.seq++
			who, route := names[w.rng.IntN(len(names))], "PUT /"+names[w.rng.IntN(len(names))]
			e := state.Event{At: time.Unix(int64(w.seq), 0).UTC(), Schema: 1, Tenant: "default",
				Body: state.Audited{Act: identity.Act{Who: who, Route: route}}}
			text, err := json.Marshal(e)
			must(t, err)
			must(t, w.Append(t.Context(), []store.Record{{Seq: w.seq, Tenant: "default", At: e.At, Kind: e.Body.Kind(),
				Event: text}}))
			for _, of := range []view.Actor{view.Everybody(), view.OfUser(who), view.OfRoute(route)} {
				want[of] = append(want[of], w.seq)
			}
			w.rise(w.seq)
		}
	}
	for range 2 {
		v, end := w.follow()
		write(60)
		for of, all := range want {
			var got []uint64
			for after := uint64(0); ; after = got[len(got)-1] {
				records, err := v.Acts(t.Context(), w.seq, of, after, 3)
				must(t, err)
				for _, r := range records {
					got = append(got, r.Seq)
				}
				if len(records) < 3 {
					break
				}
			}
			if !slices.Equal(got, all) {
				t.Errorf("acts of %v: %v, want %v", fmt.Sprint(of), got, all)
			}
		}
		end()
	}
}
