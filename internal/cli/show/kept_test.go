package show_test

import (
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/artifacts"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/golden"
)

// The output names the commands that copy the rest. A request for missing outputs is an error that lists what exists.
func TestKept_ListsStoredOutputs(t *testing.T) {
	at := time.Date(2026, 11, 22, 21, 50, 0, 0, time.UTC)
	of := func(nodes ...int) (list []api.Outputs) {
		for _, n := range nodes {
			list = append(list, api.Outputs{Node: n, Kept: at, Files: n + 1, Bytes: 2048})
		}
		return list
	}
	saves := []api.Checkpoint{{Name: "2", Step: 40, Newest: true}, {Name: "1", Step: 20}}
	const keptText, also = ", 2KiB, kept 2026-11-22T21:50:00Z\n", "Also kept: "
	for _, c := range []struct {
		k          artifacts.Kept
		node, want string
	}{
		{artifacts.Kept{Outputs: of(0)}, "", "d holds the outputs of j: 1 file" + keptText},
		{artifacts.Kept{Outputs: of(0), Checkpoints: saves[1:]}, "", "d holds the outputs of j: 1 file" + keptText + also + "1 checkpoint: scrimp get j --checkpoint\n"},
		{artifacts.Kept{Outputs: of(0, 1, 2, 3), Checkpoints: saves}, "", "d holds the outputs of node 0 of j: 1 file" + keptText +
			also + "outputs of nodes 1 to 3: scrimp get j --node all\n" + also + "2 checkpoints, the newest of step 40: scrimp get j --checkpoint\n"},
		{artifacts.Kept{Outputs: of(0, 2)}, "2", "d holds the outputs of node 2 of j: 3 files" + keptText + also + "outputs of node 0: scrimp get j --node all\n"},
		{artifacts.Kept{Outputs: of(0, 2)}, "all", "d holds the outputs of node 0 of j: 1 file" + keptText + "d holds the outputs of node 2 of j: 3 files" + keptText},
		{artifacts.Kept{}, "", "j has kept no outputs: name folders in outputs of its job file"},
		{artifacts.Kept{Checkpoints: saves}, "", "j has kept no outputs: name folders in outputs of its job file; it has kept 2 checkpoints, the newest of step 40: scrimp get j --checkpoint"},
		{artifacts.Kept{Outputs: of(1, 3)}, "", "node 0 of j has kept no outputs: scrimp get j --node all copies those of nodes 1 and 3"},
		{artifacts.Kept{Outputs: of(0)}, "x", "--node x is not the number of a machine: give one from 0, or all"},
	} {
		c.k.Job = "j"
		got := ""
		list, err := c.k.Of(c.node)
		if err != nil {
			got = err.Error()
		} else {
			for _, o := range list {
				c.k.Copied = append(c.k.Copied, artifacts.Copied{Outputs: o, Folder: "d"})
			}
			got = c.k.Text(show.Place{})
		}
		if got != c.want {
			t.Errorf("--node %q:\n%s\nwant\n%s", c.node, got, c.want)
		}
	}
}

// The output of an end names the command that continues the job.
func TestEnding_NamesCommandThatContinues(t *testing.T) {
	for want, got := range map[string]string{
		"j saves a checkpoint and ends: scrimp attach j shows it. scrimp resume j goes on from there.\n":                                             artifacts.Ending(api.Job{ID: "j", State: "running"}, true, true, show.Place{}),
		"j ends; it keeps no checkpoint (checkpoint.dir in its job file). scrimp attach j shows it, scrimp resume j starts it from the beginning.\n": artifacts.Ending(api.Job{ID: "j", State: "running"}, true, false, show.Place{}),
		"j is stopped.\nscrimp resume j takes it up again.\n":                                                                                        artifacts.Ending(api.Job{ID: "j", State: "stopped", Closed: true}, true, true, show.Place{}),
		"j is cancelled.\nscrimp resume j goes on from its checkpoint of step 40.\n":                                                                 artifacts.Ending(api.Job{ID: "j", State: "cancelled", SavedStep: 40}, false, true, show.Place{}),
		"j is stopped.\nNobody approved the proposal: scrimp rerun j submits it again.\n": artifacts.Ending(api.Job{ID: "j",
			State: "stopped", Closed: true, Approval: &api.Approval{Proposal: true}}, true, true, show.Place{}),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestCache_ListsWhatOutputsAreWorth(t *testing.T) {
	cost, value, used := money.Picos(12e12), 9.5, now.Add(-30*time.Hour)
	v := api.Cache{Currency: money.USD, Bytes: 3<<30 + 5, Saved: money.Picos(24e12), Entries: []api.CacheEntry{
		{Job: "retrain.prepare", Group: "retrain", Stage: "prepare", Team: "vision", Bytes: 3 << 30, Cost: &cost, Uses: 2,
			Used: &used, Odds: 0.79, Value: &value, Needed: true},
		{Job: "old.train", Bytes: 5, Odds: 0.04}}}
	for width, p := range map[string]show.Place{"80": {Width: 80, Now: now}, "120": {Width: 120, Now: now}} {
		golden.Check(t, "cache."+width+".txt", artifacts.Cache(v, p))
	}
	if text := artifacts.Cache(api.Cache{}, show.Place{}); !strings.Contains(text, "No outputs") {
		t.Errorf("without outputs: %s", text)
	}
}
