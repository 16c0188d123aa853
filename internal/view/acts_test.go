package view_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
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

// The acts of everybody, of a user and of a route have one row each by page of events, not one by act: a submission
// has an act, and each row is a write.
func TestActs_HaveOneRowAPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 12)
	e := state.Event{Schema: 1, Tenant: "default", Body: state.Audited{Act: identity.Act{Who: "ann", Route: "POST /v1/jobs"}}}
	text, err := json.Marshal(e)
	must(t, err)
	for range 1200 {
		w.seq++
		must(t, w.Append(t.Context(), []store.Record{{Seq: w.seq, Tenant: "default", Kind: e.Body.Kind(), Event: text}}))
	}
	w.rise(w.seq)
	v, end := w.follow()
	defer end()
	for _, of := range []view.Actor{view.Everybody(), view.OfUser("ann"), view.OfRoute("POST /v1/jobs")} {
		records, err := v.Acts(t.Context(), w.seq, of, 499, 600)
		must(t, err)
		if len(records) != 600 || records[0].Seq != 500 || records[599].Seq != 1099 {
			t.Errorf("acts of %v after 499: %d", of, len(records))
		}
	}
	marks, err := w.Store.(store.ProjectionStore).Marks(t.Context())
	must(t, err)
	rows := 0
	for name := range marks {
		if strings.HasPrefix(name, "acts/") {
			list, err := w.Store.(store.ProjectionStore).RowRange(t.Context(), name, store.Range{Before: "~", Limit: 5000})
			must(t, err)
			rows += len(list)
		}
	}
	if rows != 3*3 {
		t.Errorf("%d rows of 1200 acts, want three selections of three pages", rows)
	}
}
