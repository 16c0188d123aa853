package sim

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
)

var teamSeeds = flag.Int("teams", lane.Pick(100, 3_000), "how many lives of several teams to simulate")

// reasons lists why a job can be refused.
var reasons = []string{"role", "tags", "no_budget", "other_open", "dollars", "no_gpu_hours", "gpu_hours", "jobs"}

// teamMoments lists other situations that the lives of teams must cover.
var teamMoments = []string{
	"the same key again", "a batch", "let in later", "a budget from the work", "an end is refused", "a webhook is away", "a warning", "stopped at a limit",
	"a late write is fenced", "a backup in the middle", "a limit over jobs without a budget", "a limit more than half spent", "orphan", "interruption", "given up, then billed",
	"a start under dollars an hour", "a job waits for dollars an hour", "a machine is registered", "a machine that another has registered", "a machine is not registered any more",
}

// TestTeams simulates several teams on successive servers and a store that fails in every possible way, at every kind
// of write.
func TestTeams(t *testing.T) {
	seen := map[string]int{}
	inOrder(*teamSeeds, func(n int) lived { return liveTwice(n, 8, RunTeams) }, func(n int, l lived) {
		seed := uint64(*first + n)
		for _, b := range l.w.Broken {
			t.Errorf("%s\nrepeat: go test ./internal/sim -run TestTeams -first %d -teams 1", b, seed)
		}
		if l.differs {
			t.Errorf("seed %d told two stories", seed)
		}
		for what, count := range l.w.Seen {
			seen[what] += count
		}
		if t.Failed() {
			t.Log(l.w.Story.String())
			t.FailNow()
		}
	})
	if *teamSeeds < 400 {
		return // too few to cover everything
	}
	var table strings.Builder
	need := func(what string) {
		fmt.Fprintf(&table, "%-60s %8d\n", what, seen[what])
		if seen[what] == 0 {
			t.Errorf("in %d lives there was no %q: the seeds prove nothing about it", *teamSeeds, what)
		}
	}
	// In these lives the provider answers launches at once, tables are ready at once, and nothing is reserved.
	// TestInvariants covers pending launches, requested tables, and rounds.
	elsewhere := []string{"cancel", "build_table", "run_round"}
	actions := slices.DeleteFunc(slices.Clone(actions), func(a string) bool { return slices.Contains(elsewhere, a) })
	for _, fate := range fates {
		for _, what := range slices.Concat(actions, []string{"job_submitted", "job_ended", "budgets_set", "identity_changed", "report"}) {
			need("fault " + fate + " × " + what)
		}
	}
	for _, a := range actions {
		need("action " + a)
		need("fault done late × " + a)
	}
	for _, why := range reasons {
		need("let in: no, " + why)
	}
	for _, what := range teamMoments {
		need(what)
	}
	if *teamSeeds >= 2000 { // they are rare
		need("let in: no, other_gpu_open")
		for _, fate := range fates {
			need("fault " + fate + " × job_reviewed")
		}
	}
	t.Logf("what %d lives met:\n%s", *teamSeeds, table.String())
}

// teamPlants holds, for each fault planted in the store or the server, the properties of which one must detect it.
var teamPlants = map[Fault]plant{
	FaultAckEarly:   {"lost|audit", 0},
	FaultNoEpoch:    {"fence", 6},
	FaultBlindRetry: {"replay", 0},
	FaultActEarly:   {"unwritten", 0},
	FaultTorn:       {"backup", 0},
	FaultNoHold:     {"limit", 5},
	FaultOneBook:    {"limit|quota", 2},
	FaultNoGuard:    {"limit", 4},
	FaultSpares:     {"limit", 261},
	FaultRulesGone:  {"limit|quota|tags", 0},
	FaultNoSeen:     {"submitted twice", 4},
	FaultNoAudit:    {"audit", 0},
	FaultNoRole:     {"role", 0},
	FaultStaleRoles: {"role", 0},
	FaultNoAsking:   {"approval", 4},
	FaultOwnWord:    {"role", 13},
	FaultNoTags:     {"tags", 0},
	FaultNoWarning:  {"warned", 121},
	FaultProject:    {"owners", 0},
	FaultNoKey:      {"rented twice", 14},
	FaultNoRedo:     {"unfinished|leaked", 1},
	FaultNoSweep:    {"leaked|money|unfinished", 5},
	FaultLostFact:   {"replay", 0},
	FaultBurns:      {"rate", 0},
}

// TestPlantedTeamFaults_AreCaught plants one fault at a time and checks that an expected property detects it.
func TestPlantedTeamFaults_AreCaught(t *testing.T) {
	const lives = 400
	for _, plant := range slices.Sorted(maps.Keys(teamPlants)) {
		t.Run(string(plant), func(t *testing.T) {
			t.Parallel()
			caught := map[string]int{}
			for n := range uint64(lives) {
				seed := teamPlants[plant].from + n
				for _, b := range RunTeams(seed, plant).Broken {
					name, _, _ := strings.Cut(b, ":")
					if caught[name]++; caught[name] == 1 {
						t.Logf("seed %d: %s", seed, b)
					}
				}
				for _, name := range strings.Split(teamPlants[plant].properties, "|") {
					if caught[name] > 0 {
						return
					}
				}
			}
			t.Errorf("%d lives with %s and nobody noticed; wanted %q, saw %v", lives, plant, teamPlants[plant].properties, slices.Sorted(maps.Keys(caught)))
		})
	}
}
