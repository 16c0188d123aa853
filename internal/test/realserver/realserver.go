// Package realserver runs the scrimp program in a folder of a test: its server and its command line.
package realserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/lib/wait"
	"scrimp/internal/test/enginetest"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
	"scrimp/internal/test/proc"
)

// A Server is a data folder, d, whose commands run in the folder w beside it.
type Server struct {
	Dir, Data string // folder of both, and d in it
	Program   string
	t         testing.TB
}

// New makes the folders in dir. It skips the test under the race detector.
func New(t testing.TB, dir, program string) *Server {
	t.Helper()
	if enginetest.Raced {
		t.Skip("skipped: this test starts other programs, and the race detector sees nothing of them")
	}
	s := &Server{dir, filepath.Join(dir, "d"), program, t}
	for _, sub := range []string{"w", "d"} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, sub), 0o700))
	}
	return s
}

// File writes a file below the folder.
func (s *Server) File(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.Dir, name)
	must.Do(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(s.t, os.WriteFile(path, []byte(text), 0o600))
}

// Scrimp runs a command and returns its output, with its errors if it fails.
func (s *Server) Scrimp(args ...string) (string, error) {
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), s.Program,
		append([]string{"--data", s.Data}, args...)...) // also at the end of the test, when its context has ended
	cmd.Dir = filepath.Join(s.Dir, "w") // the folder that is sent to machines
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String() + said.String(), err
	}
	return out.String(), nil
}

// Does runs a command that has to succeed.
func (s *Server) Does(args ...string) string {
	s.t.Helper()
	out, err := s.Scrimp(args...)
	if err != nil {
		s.t.Fatalf("scrimp %s: %v\n%s\n%s", strings.Join(args, " "), err, out, s.ServerLog())
	}
	return out
}

// ServerLog returns the end of the server's log.
func (s *Server) ServerLog() string {
	text, _ := os.ReadFile(filepath.Join(s.Data, "server.log"))
	return string(text[max(0, len(text)-64<<10):])
}

// Job returns a job.
func (s *Server) Job(id string) (j client.Job) {
	s.t.Helper()
	must.Do(s.t, json.Unmarshal([]byte(s.Does("status", id, "--json")), &j))
	return j
}

// TryJob returns a job; ok is false if it is unknown or no server responds.
func (s *Server) TryJob(id string) (j client.Job, ok bool) {
	out, err := s.Scrimp("status", id, "--json")
	return j, err == nil && json.Unmarshal([]byte(out), &j) == nil
}

// Unfinished counts the jobs that may still cost something. If no server responds, it returns 3.
func (s *Server) Unfinished() (n int) {
	out, err := s.Scrimp("jobs", "--json")
	if err != nil {
		return 3
	}
	for l := range strings.Lines(out) {
		var j client.Job
		if json.Unmarshal([]byte(l), &j) == nil && !j.Closed {
			n++
		}
	}
	return n
}

// Finished waits for the end of a job, which must have succeeded with at least that many attempts.
func (s *Server) Finished(name string, attempts int, until func(what string, ok func() bool)) client.Job {
	s.t.Helper()
	until(name+" is over", func() bool { return s.Job(name).Closed })
	j := s.Job(name)
	if j.State != "succeeded" || j.Attempts < attempts {
		s.t.Fatalf("%s: %s (%s) after %d attempts, want it succeeded after %d\n%s", name, j.State, j.Why, j.Attempts,
			attempts, s.Does("logs", name))
	}
	return j
}

// Receipt returns a job's receipt and checks its sums.
func (s *Server) Receipt(id string) (r receipt.Receipt) {
	s.t.Helper()
	must.Do(s.t, json.Unmarshal([]byte(s.Does("receipt", id, "--json")), &r))
	if err := r.Check(); err != nil || !r.Ledger.Agrees {
		s.t.Errorf("the receipt of %s does not add up: %v, %v", id, err, r.Ledger.Agrees)
	}
	return r
}

// Counts writes the file of a job that counts to n in steps of half a second, saves at every fourth and at a drain, and
// continues from what it saved.
func (s *Server) Counts(name, n, rest string) {
	s.t.Helper()
	s.File("w/"+name+".yaml", "name: "+name+"\n"+rest+`
checkpoint: {dir: ck, interval: 2s}
progress: 'step=(?P<step>\d+)'
grace: 5s
command: |
  n=$(cat ck/n 2>/dev/null || echo 0)
  save() { echo $n > ck/n.tmp; mv ck/n.tmp ck/n; echo "saved=$n"; }
  trap 'save; exit 143' TERM
  echo "began at $n on $SCRIMP_INSTANCE"
  while [ $n -lt `+n+` ]; do
    n=$((n+1)); echo "step=$n"; sleep 0.5 & wait $!
    [ $((n%4)) = 0 ] && save
  done
  save
`)
}

// Counter runs the job of Counts.
func (s *Server) Counter(name, n, rest string) {
	s.t.Helper()
	s.Counts(name, n, rest)
	s.Does("run", "-y", "-d", "--force", name+".yaml")
}

// Serve starts the server, and reports whether it listens; false means that it ended. The end of the test stops it with
// its machines.
func (s *Server) Serve(listen string) (listens bool) {
	s.t.Helper()
	log, err := os.OpenFile(filepath.Join(s.Data, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must.Do(s.t, err)
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), s.Program, "--data", s.Data, "serve", "--listen",
		listen, "--insecure") // StopServer ends it
	cmd.Stdout, cmd.Stderr = log, log
	server := proc.Start(s.t, cmd)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Wait() }()
	s.t.Cleanup(func() { // only the last server still runs
		select {
		case <-ended:
		default:
			s.StopServer()
		}
	})
	eventually.True(s.t, "the server listens", func() bool { // a command would start a server that does not listen
		select {
		case <-ended:
			return true
		default:
		}
		c, err := (&net.Dialer{}).DialContext(s.t.Context(), "tcp", listen)
		if err == nil {
			_ = c.Close()
			listens = true
		}
		return listens
	}, s.ServerLog)
	return listens
}

// StopServer stops the server and terminates its machines.
func (s *Server) StopServer() {
	if out, err := s.Scrimp("server", "stop", "--now"); err != nil {
		s.t.Errorf("stop: %v\n%s", err, out)
	}
}

// KillServer kills the server, and reports whether one ran.
func (s *Server) KillServer() bool {
	s.t.Helper()
	var status struct {
		PID int `json:"pid"`
	}
	out, err := s.Scrimp("server", "status", "--json")
	return err == nil && json.Unmarshal([]byte(out), &status) == nil && status.PID > 1 &&
		syscall.Kill(status.PID, syscall.SIGKILL) == nil
}

// Chaos submits jobs, three at a time, and hurts the server and its machines in between, for a span. submit may fail
// because the server was killed: its key submits once. Chaos returns the names of the jobs and how often each fault
// came; "" is none.
func (s *Server) Chaos(span time.Duration, submit func(name string) (string, error), pause func() time.Duration,
	hurt func() string) (names []string, hurts map[string]int) {
	s.t.Helper()
	hurts = map[string]int{}
	for began := time.Now(); time.Since(began) < span; {
		if s.Unfinished() < 3 {
			name := fmt.Sprintf("job%d", len(names))
			if out, err := submit(name); err != nil {
				s.t.Logf("%s: %v: %s", name, err, out)
			}
			names = append(names, name)
		}
		_ = wait.For(s.t.Context(), pause())
		if how := hurt(); how != "" {
			hurts[how]++
			s.t.Logf("%v: %s", time.Since(began).Round(time.Second), how)
		}
	}
	return names, hurts
}

// Outcomes waits for the ends of jobs, each of which must have succeeded unless its submission never arrived. It calls
// each with every job that ended, and returns the number of their attempts.
func (s *Server) Outcomes(names []string, until func(what string, ok func() bool),
	each func(client.Job)) (attempts int) {
	s.t.Helper()
	for _, name := range names {
		until(name+" is over", func() bool { j, ok := s.TryJob(name); return !ok || j.Closed })
		j, ok := s.TryJob(name)
		if !ok {
			continue
		}
		if j.State != "succeeded" {
			s.t.Errorf("%s: %s (%s, exit %d) after %d attempts\n%s", name, j.State, j.Why, j.Exit, j.Attempts,
				s.Does("logs", name))
		}
		attempts += j.Attempts
		each(j)
	}
	return attempts
}

var steps = regexp.MustCompile(`(?m)^step=(\d+)$`)

// Repeated counts the steps in the log of a job of Counts that ran more than once.
func Repeated(log string) (n int) {
	seen := map[string]bool{}
	for _, m := range steps.FindAllStringSubmatch(log, -1) {
		if seen[m[1]] {
			n++
		}
		seen[m[1]] = true
	}
	return n
}
