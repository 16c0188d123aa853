package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/wire/api"
)

// shellOf returns the assignment of a session with a shell. What the machine has as bash is the script.
func shellOf(t *testing.T, script string) api.Assignment {
	t.Helper()
	a := assign(t, "")
	a.Args, a.Session, a.Signal, a.Checkpoint.Dir = nil, "shell", "HUP", "."
	a.Setup = "mkdir bin; printf '%s\\n' '#!/bin/sh' '" + script + "' >bin/bash; chmod +x bin/bash"
	a.Env = map[string]string{"PATH": "bin:/usr/bin:/bin"}
	return a
}

// When its machine is interrupted, a session saves its whole work folder, hidden files and those that were written just
// now too, although its shell dies of the signal.
func TestSession_SavesWholeFolderOnNotice(t *testing.T) {
	t.Parallel()
	r := newRig(t, shellOf(t, "echo kept >new; echo hidden >.dot; echo part >a.tmp; while :; do sleep 0.1; done"))
	m := newMarket(t)
	r.config.Metadata.AWS = m.URL
	r.config.Quiet = time.Hour // only the end saves
	r.start()
	r.server.waitFor("its start", func(m api.Message) bool { return m.Started != nil })
	r.server.wait("its files", func() bool {
		_, err := os.Stat(filepath.Join(r.config.MachineDir, "slots/1/work/a.tmp"))
		return err == nil
	})
	m.notice(20 * time.Second)
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"new": "kept\n", ".dot": "hidden\n"} {
		if got, _ := r.keeper.newest(name); got != want {
			t.Errorf("%s holds %q", name, got)
		}
	}
	i := slices.IndexFunc(r.server.messages(), func(m api.Message) bool { return m.Ended != nil })
	if i < 0 || r.server.messages()[i].Ended.Reason != api.EndDrained || !r.server.messages()[i].Ended.Saved {
		t.Errorf("story: %s", r.server.story())
	}
}

// A shell that exits with any status completes the session. An unknown kind of session is refused.
func TestSession_ShellExitCompletes(t *testing.T) {
	t.Parallel()
	r := newRig(t, shellOf(t, "exit 130"))
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	other := shellOf(t, "exit 0")
	other.Session = "service"
	r2 := newRig(t, other)
	r2.start()
	if err := r2.end(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		r    *rig
		want string
	}{{r, "completed"}, {r2, "setup"}} {
		if story := c.r.server.story(); !strings.Contains(story, c.want) {
			t.Errorf("story: %s, want %s", story, c.want)
		}
	}
}
