package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"scrimp/internal/wire/api"
)

// savesThrice announces a save that is too large to copy whole, another one, and one that is complete.
const savesThrice = `d=$SCRIMP_CHECKPOINT_DIR
save() { echo $1 > $d/state; echo saved $1; until [ -e $GATE/$1 ]; do sleep 0.02; done; }
ln -s /elsewhere/base $d/base; : > "$d/$(printf 'r\351sum\351')"
save 1; save 2; rm $d/*; save 3`

// stays waits until the reported trouble is as wanted, and checks that it still is a while later,
// after many polls of the folder.
func stays(r *rig, says func(string) bool, want bool) {
	r.t.Helper()
	from := 0
	r.server.wait("the trouble", func() bool {
		from = r.server.reports
		return says(r.server.trouble) == want
	})
	r.server.wait("reports after it", func() bool { return r.server.reports > from+10 })
	r.server.order(func() {
		if says(r.server.trouble) != want {
			r.t.Errorf("later the trouble is %q", r.server.trouble)
		}
	})
}

// If the program announces a save that cannot be copied whole, the agent copies what it can. It
// reports what is missing with each such save, and as trouble while the newest save lacks it.
func TestAnnouncedSave_IsKeptPartlyAndReportsWhatIsMissing(t *testing.T) {
	t.Parallel()
	gate := t.TempDir()
	a := stored(t, t.TempDir(), 1, "", "GATE="+gate)
	a.Args, a.Command, a.Progress.Saved = nil, savesThrice, `^saved (?P<step>\d+)`
	r := runningSilent(t, a)
	for step := int64(1); step <= 3; step++ {
		var saved *api.Saved
		r.server.waitFor(fmt.Sprint("save ", step), func(m api.Message) bool {
			if m.Saved != nil && m.Saved.Step == step {
				saved = m.Saved
			}
			return saved != nil
		})
		lacks := func(said string) bool {
			return strings.Contains(said, "base (it leads out") && strings.Contains(said, `"r\xe9sum\xe9" (its name`)
		}
		if lacks(saved.Lacks) != (step < 3) {
			t.Errorf("save %d lacks %q", step, saved.Lacks)
		}
		stays(r, lacks, step < 3)
		if err := os.WriteFile(filepath.Join(gate, fmt.Sprint(step)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
}

// If a save cannot be copied at all because the disk is full, the agent reports it once to the
// job's log, and as trouble until a copy succeeds, even if it can list the folder meanwhile.
func TestAnnouncedSave_ReportsFailedCopyAsTrouble(t *testing.T) {
	t.Parallel()
	gate := t.TempDir()
	a := assign(t, "", "GATE="+gate)
	a.Args, a.Command, a.Progress.Saved = nil, savesThrice, `^saved (?P<step>\d+)`
	r := running(t, a, func(r *rig) {
		r.keeper.full = func() error {
			if _, err := os.Stat(filepath.Join(gate, "2")); err != nil {
				return fmt.Errorf("write: %w", syscall.ENOSPC)
			}
			return nil
		}
	})
	says := func(said string) bool { return strings.Contains(said, "no space left on device") }
	for step := 1; step <= 3; step++ {
		stays(r, says, step < 3)
		if err := os.WriteFile(filepath.Join(gate, fmt.Sprint(step)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, m := range r.server.messages() {
		if m.Unsaved != nil {
			said = append(said, m.Unsaved.Why)
		}
	}
	if len(said) != 1 || !strings.Contains(said[0], "the checkpoint folder cannot be copied whole") {
		t.Errorf("said is %q", said)
	}
}

// Work after the newest save, but before a request to end, is in no checkpoint.
func TestEnded_ReportsWhetherAllWorkIsSaved(t *testing.T) {
	t.Parallel()
	const steps = `for n in 1 2 3 4; do echo step $n; [ $n = $SAVE ] && { echo $n > $SCRIMP_CHECKPOINT_DIR/state; echo saved $n; until [ -e "$GO" ]; do sleep 0.02; done; }; done; `
	const stays = `trap "exit 143" TERM; echo ready; while :; do sleep 0.05; done`
	const saves = `trap "echo 5 > $SCRIMP_CHECKPOINT_DIR/state; echo saved 5; exit 143" TERM; echo ready; while :; do sleep 0.05; done`
	for _, c := range []struct {
		name, save, command, saved string
		drain, want                bool
	}{
		{"fails long after its save", "2", steps + "exit 1", "^saved", false, false},
		{"fails long after its save, unannounced", "2", steps + "exit 1", "", false, false},
		{"fails at its save", "4", steps + "exit 1", "^saved", false, true},
		{"is asked to end, and does not save", "2", steps + stays, "^saved", true, false},
		{"is asked to end, and saves", "2", steps + saves, "^saved", true, true},
		{"is asked to end, and saves unannounced", "2", steps + saves, "", true, true},
		{"is asked to end right at its save", "4", steps + stays, "^saved", true, true},
	} {
		published := filepath.Join(t.TempDir(), "published") // the program continues then
		a := assign(t, "", "SAVE="+c.save, "GO="+published)
		a.Args, a.Command, a.Progress.Pattern, a.Progress.Saved = nil, c.command, `^step (?P<step>\d+)`, c.saved
		r := newRig(t, a)
		r.start()
		r.server.waitFor("its save", func(m api.Message) bool { return m.Saved != nil })
		if err := os.WriteFile(published, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if c.drain {
			r.server.wait("the program's steps", func() bool { return strings.Contains(string(r.server.log), "ready") })
			r.server.order(func() { r.server.orders.Drain = &api.Drain{Why: "enough"} })
		}
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		if e := told(r.server, endedIn)[0]; e.Saved != c.want {
			t.Errorf("%s: all is saved: %v; %s", c.name, e.Saved, r.server.story())
		}
	}
}
