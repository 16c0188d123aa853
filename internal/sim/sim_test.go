package sim

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/decide/core"
	"scrimp/internal/test/lane"
)

var (
	seeds = flag.Int("seeds", lane.Pick(140, 3_000), "how many lives to simulate")
	first = flag.Int("first", 0, "the first seed")
	keep  = flag.String("keep", "", "write the life to testdata/scenario/NAME.txt: its events, and what the core made of them")
)

// actions lists all actions of the core.
var actions = []string{"launch", "cancel", "terminate", "drain", "look", "build_table", "run_round", "notify"}

// strikes lists the faults of a life, by the action or message that they affect.
var strikes = []string{
	"refused × launch", "answer lost × launch", "answer lost × look", "crash before act × look", "late × launch", "twice × launch", "never boots × launch", "crash before act × launch",
	"late × terminate", "crash before act × terminate", "late × drain", "crash before act × drain", "crash before act × notify",
	"pending × launch", "late × cancel", "late × bill", "twice × bill", "lags × inventory",
	"twice × message", "reordered × message", "twice × instance_ended", "silent × agent", "unlisted × inventory", "killed while saving", "away × provider",
	"answer lost × machine_registered", "twice × machine_registered", "another key later × machine_registered", "another key first × machine_registered",
	"another machine × machine_registered", "after the boot limit × machine_registered", "after its end × machine_registered", "crash before write × machine_registered",
	"not cleaned × machine", "never ends × seat", "crash before write × machine_cleaned", "in part × launch",
}

// ends lists the reasons why a job can end.
var ends = []string{
	"completed", "target_reached", "budget_spent", "budget_short", "gpu_hours_spent", "wall_clock", "plateau", "diverged", "machine_idle",
	"cancelled_by_user", "stopped_by_user", "exit", "setup_failed", core.Rejected, core.ApprovalExpired,
}

// moments lists other situations that the seeds together must cover.
var moments = []string{
	"notice", "interruption", "deadline promised", "guard diverged", "guard plateau", "guard target_reached", "values between two reports", "stopped with a checkpoint",
	"deadline first, over the budget", "done under a highest price", "a job waits for a place", "rerun", "program fails", "tried again",
	"not tried again", "outputs kept", "secret in the last words", "fenced out", "word of a dead machine", "given up, then billed", "orphan", "the second rung", "a variant",
	"a restored copy", "granted, then cancelled", "reviewed: approved", "reviewed: rejected", "a job waits for a quota", "a launch under a quota",
	"an update needs no approval any more", "paused at once", "paused once it has saved", "paused with a checkpoint", "updated", "reopened",
	"a machine is registered", "a machine that another has registered", "a machine registers before its launch is answered", "a machine is not registered any more",
	"a machine waits for a job", "a machine serves another task", "a machine serves another job",
	"a machine has several tasks", "a seat is left",
	"a gang works", "a machine goes on with the next attempt", "a rank fails after a loss", "what is left of a gang is ended",
	"parts began", "parts found no room", "parts found their hold closed", "a part got another budget", "a part got no more", "a hold more than half spent",
	"a job is archived", "a job is rehydrated", "a group is archived", "a group is rehydrated",
	"a posting about time", "time is taken back", "time that was posted gets its use",
	"a stage begins", "a stage is done", "a stage is reused", "a stage is skipped", "a stage is failed", "a pipeline is over", "a pipeline is over: gpu_hours_spent", "a pipeline is over: time_spent", "a study is over: gpu_hours_spent",
	"a study is over: time_spent", "a study is over: plateau", "a trial is promoted", "a run begins", "a run is skipped", "a run waits for a price", "a stage deploys", "a schedule is over",
	"a round moves a job", "a seat is left for another job", "a group is stale", "a job is pinned",
	"a job is preempted", "a preempted job goes on", "a job moves beside others", "a kept seat is taken", "a kept seat is not needed",
}

func TestInvariants(t *testing.T) {
	seen := map[string]int{}
	inOrder(*seeds, func(n int) lived { return liveTwice(n, 4, Run) }, func(n int, l lived) {
		seed := uint64(*first + n)
		w := l.w
		for _, b := range w.Broken {
			t.Errorf("%s\nrepeat: go test ./internal/sim -run TestInvariants -first %d -seeds 1\nkeep:   the same with -keep NAME, which writes testdata/scenario/NAME.txt", b, seed)
		}
		if l.differs {
			t.Errorf("seed %d told two stories", seed)
		}
		for what, count := range w.Seen {
			seen[what] += count
		}
		if *keep != "" {
			keepLife(t, w, *keep)
		}
		if t.Failed() {
			t.Log(w.Story.String())
			t.FailNow()
		}
	})
	if *seeds < 300 {
		return // too few to cover everything
	}
	var table strings.Builder
	need := func(what string) {
		fmt.Fprintf(&table, "%-44s %8d\n", what, seen[what])
		if seen[what] == 0 {
			t.Errorf("in %d lives there was no %q: the seeds prove nothing about it", *seeds, what)
		}
	}
	// Covered elsewhere: events that decide nothing, by the agent's tests; reviews of groups, by the tests of holds;
	// differences to bills, by the core's and the server's tests; machines that a user releases, by the core's tests.
	elsewhere := []string{"checkpoint_refused", "checkpoint_failed", "group_reviewed", "bill_reconciled", "machine_released"}
	for _, k := range core.Kinds {
		if !slices.Contains(elsewhere, k) {
			need("event " + k)
		}
	}
	for _, c := range []struct {
		kind  string
		cells []string
	}{{"action ", actions}, {"fault ", strikes}, {"ended ", ends}, {"", moments}} {
		for _, what := range c.cells {
			need(c.kind + what)
		}
	}
	t.Logf("what %d lives met:\n%s", *seeds, table.String())
}

// lived is a life, and whether a repetition differed.
type lived struct {
	w       *World
	differs bool
}

// liveTwice runs life n, and runs it again if n is a multiple of every or a property failed.
func liveTwice(n, every int, life func(uint64, Fault) *World) (l lived) {
	seed := uint64(*first + n)
	l.w = life(seed, FaultNone)
	if n%every == 0 || len(l.w.Broken) > 0 {
		l.differs = !bytes.Equal(l.w.Story.Bytes(), life(seed, FaultNone).Story.Bytes())
	}
	return l
}

// inOrder runs n lives, one per processor at a time, and passes them on in order.
func inOrder(n int, live func(int) lived, see func(int, lived)) {
	done := make([]chan lived, n)
	free := make(chan struct{}, 2*runtime.GOMAXPROCS(0)) // lives that see has not taken yet
	for i := range done {
		done[i] = make(chan lived, 1)
	}
	stop := make(chan struct{})
	defer close(stop)
	next := make(chan int)
	go func() {
		defer close(next)
		for i := range n {
			select {
			case free <- struct{}{}:
			case <-stop:
				return
			}
			next <- i
		}
	}()
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for i := range next {
				done[i] <- live(i)
			}
		}()
	}
	for i := range n {
		see(i, <-done[i])
		<-free
	}
}

// plant describes how a fault is detected: the properties that may detect it, separated by |, and the seed at which to
// start the search for such a life.
type plant struct {
	properties string
	from       uint64
}

// plants holds, for each planted fault, the properties of which one must detect it, and a seed close to a life that
// does, which keeps the search short.
var plants = map[Fault]plant{
	FaultNoKey:       {"rented twice", 7},
	FaultNoSweep:     {"leaked|money|unfinished", 13},
	FaultNoRedo:      {"unfinished|leaked", 39},
	FaultLostFact:    {"replay|panic", 1},
	FaultNoBill:      {"money", 12},
	FaultNoOwner:     {"owner", 1},
	FaultNoLag:       {"list", 1},
	FaultOneSweep:    {"list", 1},
	FaultDropBill:    {"chain|money|sums", 0},
	FaultDeaf:        {"work", 1},
	FaultTwiceHeard:  {"work", 1},
	FaultLateHeard:   {"work", 3},
	FaultNoFence:     {"fence", 12},
	FaultNoTick:      {"guard|deadline|budget", 6},
	FaultMute:        {"guard", 42},
	FaultMerge:       {"values|guard", 1},
	FaultBusy:        {"guard", 38},
	FaultDeafProgram: {"guard|work", 1},
	FaultNoPause:     {"pause", 1},
	FaultOldTerms:    {"early|deadline|budget", 3},
	FaultTwoKeys:     {"key", 3},
	FaultUnclean:     {"warm", 16},
	FaultAnyone:      {"warm|seats", 58},
	FaultAnyImage:    {"image", 67},
	FaultNoImage:     {"image", 6},
	FaultWaits:       {"idle|leaked", 4},
	FaultUnpaid:      {"money|idle", 1},
	FaultCrowds:      {"seats", 13},
	FaultEarly:       {"seats", 547},
	FaultHoards:      {"gang wait", 143},
	FaultNoRegister:  {"key", 0},
	FaultFullHold:    {"hold", 8},
	FaultCrowded:     {"array", 67},
	FaultLumps:       {"complete", 0},
	FaultHeedless:    {"after", 97},
	FaultBeyond:      {"study", 439},
	FaultUnreserved:  {"study", 19},
	FaultEndless:     {"pipeline", 0},
	FaultUnready:     {"pipeline", 1},
	FaultDoubled:     {"pipeline", 8},
	FaultOverlaps:    {"schedule", 8},
	FaultSlowFirm:    {"deadline", 345},
	FaultFirmInTime:  {"deadline", 80},
	FaultDearer:      {"budget", 151},
	FaultOwner:       {"sums", 3},
	FaultNoMask:      {"secret", 33},
	FaultNoOutputs:   {"outputs", 1},
	FaultOrder:       {"order", 12},
	FaultNoMax:       {"price", 2},
	FaultRetryAll:    {"retry", 7},
	FaultUnasked:     {"approval", 1},
	FaultBilledTwice: {"money", 2},

	FaultStaleGroup:  {"round|reserved", 39},
	FaultUnpinned:    {"pin", 27},
	FaultTwoDeciders: {"round", 19},
	FaultHasty:       {"least run", 39},
	FaultCostly:      {"preempt saves|preempt deadline", 1},
	FaultRivals:      {"rivals", 267},
	FaultUnkept:      {"kept seat", 733},

	FaultArchiveLost:   {"archive|money", 1},
	FaultArchiveWrong:  {"archive|money", 1},
	FaultArchiveForged: {"archive", 1},
	FaultGroupLost:     {"archive", 1},
}

// TestPlantedFaults_AreCaught plants one fault at a time and checks that an expected property detects it.
func TestPlantedFaults_AreCaught(t *testing.T) {
	const lives = 400
	for _, plant := range slices.Sorted(maps.Keys(plants)) {
		t.Run(string(plant), func(t *testing.T) {
			t.Parallel()
			caught := map[string]int{}
			for n := range uint64(lives) {
				seed := plants[plant].from + n
				for _, b := range Run(seed, plant).Broken {
					name, _, _ := strings.Cut(b, ":")
					if caught[name]++; caught[name] == 1 {
						t.Logf("seed %d: %s", seed, b)
					}
				}
				for _, name := range strings.Split(plants[plant].properties, "|") {
					if caught[name] > 0 {
						return
					}
				}
			}
			t.Errorf("%d lives with %s and nobody noticed; wanted %q, saw %v", lives, plant, plants[plant].properties, slices.Sorted(maps.Keys(caught)))
		})
	}
}

// A quota is removed while a job that holds a machine waits for its retry. The core once counted the job under the
// removed quota.
func TestRun_RemovedQuotaWhileJobAwaitsRetry(t *testing.T) {
	if w := Run(0x547, ""); len(w.Broken) > 0 {
		t.Error(w.Broken)
	}
}
