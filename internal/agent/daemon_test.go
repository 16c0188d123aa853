package agent

import (
	"crypto/rand"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scrimp/internal/agent/place"
	"scrimp/internal/wire/api"
)

// A machine runs one task after the other, and nothing of the first is left when the second starts:
// no process, no folder, no secret.
func TestAgent_CleansBetweenTasks(t *testing.T) {
	t.Parallel()
	marker := strings.ToLower(rand.Text())
	first := assign(t, "")
	first.Args, first.Secrets = nil, map[string]string{"MINE": "s3cr3t-value"}
	first.Command = `echo "$MINE" > kept; mkdir shut; echo x > shut/f; chmod 500 shut; ` +
		`(trap "" TERM; exec sleep 1000.` + digits(marker) + `) & (setsid sleep 1000.` + digits(marker) + `) & echo begun`
	second := assign(t, "")
	second.Job, second.Attempt, second.AttemptToken, second.Args = "job-2", "job-2.1", "second-token", nil
	second.Command = `cd "$PWD/../../.." && find . -path '*job-1*'; grep -rl s3cr3t-value . ; ` +
		`grep -lsz '^1000.` + digits(marker) + `$' /proc/[0-9]*/cmdline; echo looked`
	r := newRig(t, first)
	r.config.keep = false
	r.server.order(func() { r.server.next, r.server.onceClean = &second, true })
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if r.server.claims == 0 || len(r.server.before) == 0 { // a pull may be delivered twice, with its task
		t.Fatalf("the machine took no second task: %d, %v", r.server.claims, r.server.before)
	}
	if got := string(r.server.log); got != "looked\n" {
		t.Errorf("the second task finds\n%s", got)
	}
	if e := told(r.server, endedIn); len(e) != 1 || e[0].Reason != api.EndCompleted {
		t.Errorf("the second task ended %+v", e)
	}
	var left []string
	err := filepath.WalkDir(r.config.MachineDir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() != "unclean" { // the agent ended before it showed that the machine is clean
			left = append(left, filepath.Base(path))
		}
		return err
	})
	if err != nil || !slices.Equal(left, []string{"machine.key"}) {
		t.Errorf("left on the machine are %v, %v: want its key alone", left, err)
	}
}

// digits returns the digits of a token, as an argument of sleep that no other test uses.
func digits(token string) string {
	return strings.Map(func(c rune) rune { return '0' + c%10 }, token[:12])
}

// An agent restarted on its machine uses its key again, and needs no token.
func TestIdentity_SurvivesRestart(t *testing.T) {
	t.Parallel()
	r := newRig(t, assign(t, "print", "TEST_TAIL=x"))
	if err := KeepToken(r.config.MachineDir, r.config.Token); err != nil {
		t.Fatal(err)
	}
	r.config.Token = ""
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	key := r.server.key
	if _, err := os.Stat(tokenFile(r.config.MachineDir)); !os.IsNotExist(err) {
		t.Errorf("the spent token is on the machine's disk: %v", err)
	}
	if st, err := os.Stat(filepath.Join(place.OwnFolder(r.config.MachineDir), "machine.key")); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", st, err)
	}
	r.server.order(func() {
		r.server.applied, r.server.log, r.server.registered = nil, nil, api.Registration{}
		r.server.assignment.Attempt = "job-1.2"
	})
	r.start()
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	if !r.server.key.Equal(key) || r.server.registered.Key != "" {
		t.Error("it registered anew")
	}
	if e := told(r.server, endedIn); len(e) != 1 || e[0].Reason != api.EndCompleted {
		t.Errorf("its task ended %+v", e)
	}
}

// A machine without a token, or whose key belongs to another machine, gets no task.
func TestAgent_RunsNothingWithoutToken(t *testing.T) {
	t.Parallel()
	r := newRig(t, assign(t, "print"))
	r.config.Token = ""
	r.start()
	if err := r.end(); err == nil || !strings.Contains(err.Error(), "SCRIMP_TOKEN") {
		t.Errorf("without a token: %v", err)
	}
	if r.server.pulls > 0 {
		t.Error("it pulled")
	}
}
