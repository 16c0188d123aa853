package command

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A server that is killed as it starts writes nothing to its log. The command notices the end of the process, waits two
// seconds for a server that another command has started, and says how the process ended.
func TestBegun_NoticesKilledServer(t *testing.T) {
	log := filepath.Join(t.TempDir(), "server.log")
	synctest.Test(t, func(t *testing.T) {
		a := &App{Data: t.TempDir(), Now: time.Now}
		ended := make(chan error, 1)
		ended <- errors.New("signal: killed")
		begin := time.Now()
		_, err := a.begun(t.Context(), log, 0, "the server did not start within 20 s", ended)
		if took := time.Since(begin); err == nil || !strings.Contains(err.Error(), "signal: killed") || took > 3*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		begin = time.Now()
		_, err = a.begun(t.Context(), log, 0, "the server did not start within 20 s", nil)
		if took := time.Since(begin); err == nil || err.Error() != "the server did not start within 20 s" || took < 20*time.Second {
			t.Errorf("of a process that goes on, after %v: %v", took, err)
		}
	})
}
