package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/wire/api"
)

// The agent names outputs that it cannot keep, and keeps the rest.
func TestOutputs_NamesThoseNotKept(t *testing.T) {
	t.Parallel()
	for _, outputs := range []string{"out", api.OutputsWritten} {
		a := stored(t, t.TempDir(), 1, "")
		a.Args, a.Command = nil, `mkdir out; echo weights > out/model
: > "out/$(printf 'r\351')"
truncate -s 5T out/hole
at=out; for i in $(seq 120); do at=$at/d; done; mkdir -p $at; echo x > $at/deep`
		a.Outputs, a.OutputsURL = []string{outputs}, "file://"+t.TempDir()
		r := newRig(t, a)
		withStore(r)
		r.start()
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		e := told(r.server, endedIn)[0]
		hole := "out/hole ("
		if outputs == api.OutputsWritten { // it has its own bound
			hole = "1 of the files that the program wrote (5120.0 GiB)"
		}
		for _, name := range []string{`"out/r\xe9" (its name`, hole, "folders within one another"} {
			if !strings.Contains(e.Error, name) {
				t.Errorf("%s: %q is not named in %q", outputs, name, e.Error)
			}
		}
		if e.Keeping <= 0 {
			t.Errorf("%s: the program is said to be over since %v", outputs, e.Keeping)
		}
		to := filepath.Join(t.TempDir(), "got")
		if err := fetchOutputs(t, e.Outputs, to); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(to, "out", "model")); string(b) != "weights\n" {
			t.Errorf("%s: the rest is %q, %v", outputs, b, err)
		}
	}
}
