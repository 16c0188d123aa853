//go:build !local

package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	api "scrimp/client"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/pgtest"
	"scrimp/internal/test/proc"
	"scrimp/internal/test/testbin"
)

// Two servers share a database and a data folder. The leader is killed repeatedly while a job runs: the other takes
// over, the program keeps running, and the machine is rented once. Users whom it has erased stay so, and nothing in the
// database has their name.
func TestTakeover_JobKeepsRunning(t *testing.T) {
	lane.Component(t, "postgres")
	t.Parallel()
	db := pgtest.Start(t)
	bin := testbin.Full.Path(t)
	dir, err := os.MkdirTemp("", "s") // short, because socket paths have a limit
	must.Do(t, err)
	h := &home{t: t, dir: dir, data: filepath.Join(dir, "d"), bin: bin}
	defer func() { _ = os.RemoveAll(dir) }()
	url := db.Database(t)
	begin := func() *proc.Process {
		cmd, _, _ := h.start("serve", "--json", "--listen", "127.0.0.1:0", "--db", url)
		return cmd
	}
	servers := []*proc.Process{begin(), begin()}
	answers := func() (s api.Server, ok bool) {
		cmd := h.command("server", "status", "--json")
		out, err := cmd.Output()
		return s, err == nil && json.Unmarshal(out, &s) == nil && s.PID > 0
	}
	h.until("one leads", func() bool { _, ok := answers(); return ok })
	h.write("job.yaml", endless)
	h.do("run", "-y", "-d", "job.yaml")
	h.until("the program runs", func() bool { return h.job("endless").Phase == "running" })
	machine := h.job("endless").Machine
	for n := range lane.Pick(2, 5) {
		h.do("users", "set", "zephyrine", "--email", "zephyrine@example.org")
		s, ok := answers()
		if !ok {
			t.Fatal("nobody answers")
		}
		var killed *proc.Process
		for i, cmd := range servers {
			if cmd.Process.Pid == s.PID {
				killed, servers = cmd, append(servers[:i:i], servers[i+1:]...)
				break
			}
		}
		if killed == nil {
			t.Fatalf("process %d answers, which was not started here", s.PID)
		}
		h.do("users", "erase", "zephyrine", "--yes")
		must.Do(t, killed.Process.Signal(syscall.SIGKILL))
		_ = killed.Wait()
		h.until("another leads", func() bool { next, ok := answers(); return ok && next.PID != s.PID })
		if j := h.job("endless"); j.Machine != machine || j.Attempts != 1 || j.State != "running" {
			t.Errorf("after it the job is %s on %s after %d attempts, was on %s", j.State, j.Machine, j.Attempts, machine)
		}
		if out := h.do("users"); strings.Contains(out, "zephyrine") || !strings.Contains(out, fmt.Sprint("erased-", n+1)) {
			t.Errorf("after it the users are\n%s", out)
		}
		servers = append(servers, begin())
	}
	for _, table := range []string{"event", "meta"} {
		if out, err := db.Query(url, "SELECT count(*) FROM "+table+" AS t WHERE t::text LIKE '%zephyrine%'"); err != nil ||
			strings.TrimSpace(out) != "0" {
			t.Errorf("rows of %s that name an erased user: %s, %v", table, out, err)
		}
	}
	h.mustStop("endless")
	h.until("it is done", func() bool { return h.job("endless").Closed })
	if j := h.job("endless"); j.State != "succeeded" || j.Attempts != 1 {
		t.Errorf("%s after %d attempts, want succeeded after 1", j.State, j.Attempts)
	}
	h.do("ledger", "verify")
	if out := h.do("logs", "endless"); out != "one\ntwo\n" {
		t.Errorf("its output: %q", out)
	}
	last, _ := answers()
	for _, cmd := range servers { // followers first, or one of them would take over
		if cmd.Process.Pid != last.PID {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			if err := cmd.Wait(); err != nil {
				t.Errorf("a server that follows is asked to end: %v", err)
			}
		}
	}
	var ended sync.WaitGroup
	for _, cmd := range servers { // a child that nobody waits for still seems to run
		if cmd.Process.Pid == last.PID {
			ended.Go(func() { _ = cmd.Wait() })
		}
	}
	h.do("server", "stop", "--now")
	ended.Wait()
	if _, err := os.Stat(filepath.Join(h.data, "scrimp.db")); err == nil {
		t.Error("a server began a log of its own beside the database")
	}
	if out, err := h.try("serve", "--listen", "127.0.0.1:0"); err == nil || !strings.Contains(out, "--db") {
		t.Errorf("a server without the database starts: %v\n%s", err, out)
	}
}
