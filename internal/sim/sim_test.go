package sim

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/core"
)

var (
	seeds = flag.Int("seeds", 300, "how many lives to simulate")
	first = flag.Int("first", 0, "the first seed")
)

// actions are all that the core can ask for.
var actions = []string{"launch", "terminate", "drain", "notify"}

// faults that a life can meet, by the action or message they strike.
var strikes = []string{
	"refused × launch", "answer lost × launch", "late × launch", "twice × launch", "never boots × launch", "crash before act × launch",
	"late × terminate", "crash before act × terminate", "late × drain", "crash before act × drain", "crash before act × notify",
	"twice × message", "twice × instance_ended", "silent × agent",
}

func TestInvariants(t *testing.T) {
	seen := map[string]int{}
	for n := range *seeds {
		seed := uint64(*first + n)
		w := Run(seed, PlantNone)
		for _, b := range w.Broken {
			t.Errorf("%s\nrepeat: go test ./internal/sim -run TestInvariants -first %d -seeds 1", b, seed)
		}
		if n%4 == 0 || len(w.Broken) > 0 {
			if again := Run(seed, PlantNone); !bytes.Equal(w.Story.Bytes(), again.Story.Bytes()) {
				t.Errorf("seed %d told two stories", seed)
			}
		}
		for what, count := range w.Seen {
			seen[what] += count
		}
		if t.Failed() {
			t.Log(w.Story.String())
			t.FailNow()
		}
	}
	if *seeds < 100 {
		return // too few to meet everything
	}
	var table strings.Builder
	need := func(what string) {
		fmt.Fprintf(&table, "%-44s %8d\n", what, seen[what])
		if seen[what] == 0 {
			t.Errorf("in %d lives there was no %q: the seeds prove nothing about it", *seeds, what)
		}
	}
	for _, k := range core.Kinds {
		if k != "checkpoint_refused" { // decides nothing; the agent's tests have it
			need("event " + k)
		}
	}
	for _, a := range actions {
		need("action " + a)
	}
	for _, s := range strikes {
		need("fault " + s)
	}
	for _, what := range []string{"notice", "interruption", "deadline promised"} {
		need(what)
	}
	t.Logf("what %d lives met:\n%s", *seeds, table.String())
}

// TestPlantedFaultsAreCaught breaks one thing at a time and names the property that notices.
func TestPlantedFaultsAreCaught(t *testing.T) {
	for plant, property := range map[Plant]string{
		PlantNoKey:      "rented twice",
		PlantNoSweep:    "leaked|unfinished",
		PlantNoRedo:     "unfinished|leaked",
		PlantDecideNew:  "replay",
		PlantDropBill:   "chain|money|sums",
		PlantDeaf:       "work",
		PlantTwiceHeard: "work",
	} {
		t.Run(string(plant), func(t *testing.T) {
			caught := map[string]int{}
			for seed := range uint64(200) {
				for _, b := range Run(seed, plant).Broken {
					name, _, _ := strings.Cut(b, ":")
					caught[name]++
				}
				for _, name := range strings.Split(property, "|") {
					if caught[name] > 0 {
						return
					}
				}
			}
			t.Errorf("200 lives with %s and nobody noticed; wanted %q, saw %v", plant, property, slices.Sorted(maps.Keys(caught)))
		})
	}
}
