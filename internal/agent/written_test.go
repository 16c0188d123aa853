package agent

import (
	"slices"
	"strings"
	"testing"

	"scrimp/internal/wire/api"
)

// The agent keeps what the program makes and changes, and neither its input, nor checkpoints, nor caches.
func TestOutputs_KeepsWrittenFiles(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]string{
		"echo 2 >> given; mkdir -p runs/a c __pycache__; echo x | tee runs/a/log c/state __pycache__/y > model; ln -s model newest; exit 3": "given model newest runs/a/log",
		"echo x > c/state": "",
	} {
		a := assign(t, "")
		a.Args, a.Command, a.Setup = nil, command, "echo 1 | tee given kept-out"
		a.Outputs, a.OutputsURL, a.Checkpoint.Dir = []string{api.OutputsWritten}, "mem://outputs", "c"
		r := newRig(t, a)
		r.start()
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(r.keeper.kept)
		if got := strings.Join(r.keeper.kept, " "); got != want {
			t.Errorf("%s: kept are %q, want %q", command, got, want)
		}
		if where := told(r.server, endedIn)[0].Outputs; (where != "") != (want != "") {
			t.Errorf("%s: outputs are said to be at %q", command, where)
		}
	}
}
