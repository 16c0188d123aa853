package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/must"
)

// faulty is a data folder whose servers fail at the steps that the test chooses.
type faulty struct {
	*testing.T
	folder string
	fails  atomic.Pointer[func(job string)] // called before a step works on a job
	limit  time.Duration
}

// serve runs a server on the log until stop, or until it ends the process.
func (f *faulty) serve() (c *Control, stop func()) {
	f.Helper()
	st, err := sqlite.Open(f.folder)
	must.Do(f, err)
	now := time.Now().UTC()
	c, err = New(f.Context(), st, engineOf("shut", shut{}, time.Hour), Config{
		Clock: Clock{Wall: now, Market: now, Speed: 1}, Silence: time.Hour, Log: slog.New(slog.DiscardHandler), Running: 100,
		StepLimit: f.limit,
		Die:       func() { os.Exit(diedOf) },
		OnWork: func(job string) {
			if fails := f.fails.Load(); fails != nil {
				(*fails)(job)
			}
		},
	})
	must.Do(f, err)
	ctx, cancel := context.WithCancel(f.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = c.Run(ctx) }()
	<-c.Begun()
	return c, func() {
		cancel()
		<-done
		if err := st.Close(); err != nil {
			f.Error(err)
		}
	}
}

// diedOf is the exit status of a server that ended itself.
const diedOf = 77

// inProcess runs does in its own process on the folder, because the server under test ends its process.
func (f *faulty) inProcess(does func()) {
	f.Helper()
	const variable = "SCRIMP_TEST_FAULTY"
	if folder := os.Getenv(variable); folder != "" {
		f.folder = folder
		does()
		f.Fatal("the process goes on")
	}
	f.folder = f.TempDir()
	run := exec.CommandContext(f.Context(), os.Args[0], "-test.run=^"+f.Name()+"$")
	run.Env = append(os.Environ(), variable+"="+f.folder)
	out, err := run.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != diedOf {
		f.Fatalf("the process ended with %v: %s", err, out)
	}
}

func (f *faulty) fail(how func(job string)) {
	if how == nil {
		f.fails.Store(nil)
		return
	}
	f.fails.Store(&how)
}

func failing(jobs ...string) func(string) {
	return func(job string) {
		for _, j := range jobs {
			if j == job {
				panic("no rule for " + job)
			}
		}
	}
}

// states lists the states of the jobs.
func states(c *Control) (all string) {
	c.Read(func(m *core.Machine) {
		for _, j := range m.State().Jobs() {
			all += fmt.Sprintf("%s %s; ", j.ID(), j.State())
		}
	})
	return all
}

func isAsideError(err error) bool {
	var e *AsideError
	return errors.As(err, &e)
}

// The server refuses a submission whose step fails, also when it comes again and also after a restart. All other jobs
// continue as if it had never come.
func TestSubmit_IsRefusedWhenItsStepFails(t *testing.T) {
	t.Parallel()
	f := &faulty{T: t, folder: t.TempDir()}
	tries := 0
	f.fail(func(job string) {
		if job == "bad" {
			tries++
			panic("no rule for it")
		}
	})
	c, stop := f.serve()
	for _, id := range []string{"a", "bad", "b", "bad", "c"} {
		if err := c.Propose(t.Context(), submission(c, id)); isAsideError(err) != (id == "bad") || err != nil && id != "bad" {
			t.Errorf("job %s: %v", id, err)
		}
	}
	want := states(c)
	stop()
	c, stop = f.serve()
	defer stop()
	if got := states(c); got != want {
		t.Errorf("after a restart the jobs are %q, before %q", got, want)
	}
	if err := c.Propose(t.Context(), submission(c, "bad")); !isAsideError(err) || tries != 1 {
		t.Errorf("the next server says %v; the step was tried %d times", err, tries)
	}
	if err := c.Propose(t.Context(), submission(c, "d")); err != nil {
		t.Error(err)
	}
}

// The server sets aside a job that makes the steps of others fail. The others continue, and the user may resume the
// job.
func TestStep_SetsAsideTheJobThatFailsOthers(t *testing.T) {
	t.Parallel()
	f := &faulty{T: t, folder: t.TempDir()}
	c, stop := f.serve()
	propose := func(e core.Event) {
		t.Helper()
		if err := c.Propose(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	propose(submission(c, "poison"))
	f.fail(failing("poison"))
	propose(c.event(c.Now(), core.MarketSeen{}))
	propose(submission(c, "a"))
	propose(c.event(c.Now(), core.Configured{Config: c.Rules()})) // all waiting jobs are decided again
	check := func(when, state, why string) {
		t.Helper()
		known := c.Job("poison", func(_ *core.Machine, j *core.Job) {
			if string(j.State()) != state || j.Why() != why {
				t.Errorf("%s it is %s, %s: %s", when, j.State(), j.Why(), j.Detail())
			}
			if why == core.SetAside && !strings.Contains(j.Detail(), "(no rule for poison)") {
				t.Errorf("%s it says %q", when, j.Detail())
			}
		})
		if !known {
			t.Errorf("%s it is not known", when)
		}
	}
	check("then", "paused", core.SetAside)
	if !c.Job("a", func(_ *core.Machine, j *core.Job) {
		if j.State() != core.Queued {
			t.Errorf("the other is %s", j.State())
		}
	}) {
		t.Error("the other is not known")
	}
	stop()
	c, stop = f.serve()
	defer stop()
	check("after a restart", "paused", core.SetAside)
	f.fail(nil)
	propose(c.event(c.Now(), core.JobResumed{Job: "poison"}))
	check("resumed", "queued", state.Resumed)
}

// If steps fail whatever is set aside, the process ends at once, and the next server starts with the asides it
// recorded.
func TestStep_EndsTheProcessWhenAsidesDoNotHelp(t *testing.T) {
	t.Parallel()
	f := &faulty{T: t}
	f.inProcess(func() {
		c, _ := f.serve()
		for n := range maxAsides + 2 {
			must.Do(t, c.Propose(t.Context(), submission(c, fmt.Sprint("job", n))))
		}
		f.fail(func(string) { panic("no rule at all") })
		err := c.Propose(t.Context(), c.event(c.Now(), core.Configured{Config: c.Rules()}))
		t.Fatalf("the event is answered: %v", err)
	})
	c, stop := f.serve()
	defer stop()
	aside := 0
	c.Read(func(m *core.Machine) {
		for _, j := range m.State().Jobs() {
			if j.Why() == core.SetAside {
				aside++
			}
		}
	})
	if aside != maxAsides+1 {
		t.Errorf("%d jobs are set aside", aside)
	}
	if err := c.Propose(t.Context(), submission(c, "next")); err != nil {
		t.Error(err)
	}
}

// A step that does not end ends its process, and the next server refuses the event that caused it.
func TestStep_EndsTheProcessWhenItDoesNotReturn(t *testing.T) {
	t.Parallel()
	f := &faulty{T: t, limit: 50 * time.Millisecond}
	f.inProcess(func() {
		c, _ := f.serve()
		f.fail(func(string) {
			for n := 0; ; n++ { // an endless loop that the watch detects
				_ = n
			}
		})
		err := c.Propose(t.Context(), submission(c, "endless"))
		t.Fatalf("the event is answered: %v", err)
	})
	f.limit = 0
	c, stop := f.serve()
	defer stop()
	if err := c.Propose(t.Context(), submission(c, "endless")); !isAsideError(err) {
		t.Errorf("the next server says %v", err)
	}
	if got := states(c); got != "" {
		t.Errorf("there are jobs: %s", got)
	}
	if err := c.Propose(t.Context(), submission(c, "next")); err != nil {
		t.Error(err)
	}
}

// A report is taken except for the message whose step fails. Otherwise the agent would repeat it for ever.
func TestReport_SkipsTheMessageWhoseStepFails(t *testing.T) {
	t.Parallel()
	f := &faulty{T: t, folder: t.TempDir()}
	f.fail(failing("bad"))
	c, stop := f.serve()
	defer stop()
	if err := c.proposeIndependent(t.Context(), submission(c, "a"), submission(c, "bad"), submission(c, "b"), submission(c, "bad")); err != nil {
		t.Error(err)
	}
	if got := states(c); got != "a queued; b queued; " {
		t.Errorf("the jobs are %q", got)
	}
}
