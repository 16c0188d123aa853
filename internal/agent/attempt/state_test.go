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
			Workspace: &workspace.Workspace{Task: api.Assignment{Node: c.node, Nodes: 2, Checkpoint: api.Checkpoints{AllRanks: c.all}}}}
		if s := g.State(); s.ShouldCheckpoint != c.want || !s.ShouldStop {
			t.Errorf("%+v: the program receives %+v", c, s)
		}
	}
}
