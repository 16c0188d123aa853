package attempt

import (
	"testing"
	"time"

	"scrimp/internal/agent/workspace"
	"scrimp/internal/wire/api"
)

// Rank 0 is asked for checkpoints, other ranks only if each rank's folder is a share of the
// checkpoint. All ranks receive the stop.
func TestState_AsksSavingRanksForCheckpoint(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		node int
		all  bool
		want bool
	}{{0, false, true}, {0, true, true}, {1, false, false}, {1, true, true}} {
		g := &Attempt{Config: Config{Machine: workspace.Machine{Now: time.Now}}, stopping: true,
			Workspace: &workspace.Workspace{Task: api.Assignment{Node: c.node, Nodes: 2,
				Checkpoint: api.Checkpoints{AllRanks: c.all}}}}
		if s := g.State(); s.ShouldCheckpoint != c.want || !s.ShouldStop {
			t.Errorf("%+v: the program receives %+v", c, s)
		}
	}
}

func TestDue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		since, interval time.Duration
		asked, stopping bool
		want            bool
	}{
		{time.Minute, 0, false, false, false},
		{59 * time.Second, time.Minute, false, false, false},
		{time.Minute, time.Minute, false, false, true},
		{0, 0, true, false, true},
		{0, time.Hour, false, true, true},
	} {
		if got := due(epoch.Add(c.since), epoch, c.interval, c.asked, c.stopping); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
