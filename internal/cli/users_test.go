package cli_test

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// With users: auto, the programs on an engine's machines run as separate users.
func TestRun_ProgramsRunAsSeparateUsers(t *testing.T) {
	lane.Component(t, "host")
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("programs run as another user where the agent is root, and these tests are not")
	}
	h := newHome(t)
	at, err := os.MkdirTemp("", "scrimp-machines-") // other users cannot enter the test's own folder
	t.Cleanup(func() { _ = os.RemoveAll(at) })
	must.Do(t, errors.Join(err, os.Chmod(at, 0o711)))
	h.write("d/engines.yaml", "engines: [{name: local, kind: local, users: auto, with: {machines: "+at+"/m}}]\n")
	h.write("who.yaml", "name: who\ncommand: 'id -u'\n")
	if out := h.do("run", "-y", "who.yaml"); !strings.Contains(out, "succeeded") {
		t.Errorf("the run says\n%s", out)
	}
	if user, err := strconv.Atoi(strings.TrimSpace(h.do("logs", "who"))); err != nil || user < 480_000 {
		t.Errorf("it ran as %d, %v", user, err)
	}
	if out := h.do("doctor"); strings.Contains(out, "users") {
		t.Errorf("doctor says\n%s", out)
	}
}
