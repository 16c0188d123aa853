package view_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/store"
	"scrimp/internal/test/lane"
	"scrimp/internal/work/groups"
)

// archiveGroups appends n events that archive pipelines or bring some back, and notes the records that are archived and
// the newest archived stage of each key.
func (w *world) archiveGroups(n int, there map[string]string, made map[string]state.StageRef, since map[string]uint64) {
	w.Helper()
	for range n {
		r := w.event()
		facts, err := state.DecodeFacts(r.Facts)
		must(w, err)
		for range w.rng.IntN(3) {
			name := fmt.Sprintf("g-%d", w.rng.IntN(40))
			if _, gone := there[name]; gone {
				facts = append(facts, state.GroupRehydrated{Group: name})
				delete(there, name)
				continue
			}
			g := state.Group{Name: name, By: "ann", Version: int(r.Seq),
				Terms: state.GroupTerms{Kind: groups.Pipeline, Owner: ledger.Owner{Team: []string{"a", "a/1"}[w.rng.IntN(2)], Project: "p"}}}
			for k := range 1 + w.rng.IntN(3) {
				x := groups.Stage{Phase: []groups.StagePhase{groups.Done, groups.Reused}[w.rng.IntN(2)],
					Key: fmt.Sprintf("k%d", w.rng.IntN(6)), Since: uint64(1 + w.rng.IntN(1000))}
				key := g.Terms.Owner.Team + "|" + x.Key
				if g.Stages = append(g.Stages, x); x.Phase == groups.Done && x.Since >= since[key] {
					made[key], since[key] = state.StageRef{Group: name, Stage: k}, x.Since
				}
			}
			record, err := state.EncodeGroup(&g)
			must(w, err)
			facts = append(facts, state.GroupArchived{Group: name, Record: record})
			there[name] = string(record)
		}
		if len(facts) > 0 {
			r.Sample = false
		}
		r.Facts, err = state.EncodeFacts(facts)
		must(w, err)
		must(w, w.Append(w.Context(), []store.Record{r}))
	}
	w.rise(w.seq)
}

// The records of archived groups and the stages that made outputs agree with the facts of the log, also for groups that
// came back in between.
func TestArchivedGroups_MatchTheLog(t *testing.T) {
	t.Parallel()
	for seed := range uint64(lane.Pick(4, 40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w, there := newWorld(t, seed), map[string]string{}
			made, since := map[string]state.StageRef{}, map[string]uint64{}
			for range 3 {
				v, end := w.follow()
				w.archiveGroups(40, there, made, since)
				all, err := v.AllGroups(t.Context(), w.seq)
				must(t, err)
				var names []string
				for _, g := range all {
					if names = append(names, g.Name); g.Kind != groups.Pipeline || g.User != "ann" || g.Project != "p" || g.Version == 0 {
						t.Errorf("the index has %+v", g)
					}
				}
				if want := slices.Sorted(maps.Keys(there)); !slices.Equal(names, want) {
					t.Errorf("the groups %v are archived, want %v", names, want)
				}
				records, err := v.ReadGroups(t.Context(), all...)
				must(t, err)
				for name, record := range there {
					if string(records[name]) != record {
						t.Errorf("the record of %s is %s, want %s", name, records[name], record)
					}
				}
				found, err := v.FindGroups(t.Context(), w.seq, "none", "g-1", "g-2")
				must(t, err)
				for _, name := range []string{"none", "g-1", "g-2"} {
					if _, is := found[name]; is != (there[name] != "") {
						t.Errorf("%s is archived: %v, want %v", name, is, !is)
					}
				}
				for _, team := range []string{"a", "a/1"} {
					for k := range 7 {
						key := fmt.Sprintf("k%d", k)
						ref, ok, err := v.MadeBy(t.Context(), w.seq, team, "p", key)
						must(t, err)
						if want, is := made[team+"|"+key]; ok != is || ref != want {
							t.Errorf("%s of %s is made by %v, want %v", key, team, ref, want)
						}
					}
				}
				end()
			}
		})
	}
}
