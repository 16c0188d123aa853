package marketd

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/local"
	"scrimp/internal/engine/procs"
	"scrimp/internal/lib/wait"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// restless returns a client that retries quickly, since its daemon dies all the time.
func restless(d engine.Driver, seed uint64) *engine.Client {
	chance := rand.New(rand.NewPCG(seed, 9))
	var mu sync.Mutex
	cfg := engine.DefaultClient()
	cfg.Timeout, cfg.Tries, cfg.Wait, cfg.MaxWait = 10*time.Second, 1000, 2*time.Millisecond, 20*time.Millisecond
	cfg.Read, cfg.Act = engine.Limit{}, engine.Limit{}
	cfg.Jitter = func() float64 { mu.Lock(); defer mu.Unlock(); return chance.Float64() }
	return engine.NewClient(d, cfg)
}

// The daemon dies at each step of a launch of three machines and of the end of one. The machines
// are still rented together and once, and the end is billed once.
func TestCrash_AtAnyStepKeepsLaunchWhole(t *testing.T) {
	steps := []string{"write the launch", "sync the launch", "write the processes", "sync the processes",
		"write the end", "sync the end", "between the starts of two machines"}
	for n, step := range steps {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			const nodes, key = 3, "g.1"
			c := newCloud(t, testTrace(60))
			beside := c.launch("beside", always)
			died := 0
			insist := func(ask func() error) {
				for err := ask(); err != nil; err = ask() {
					if _, err := c.Clock(t.Context()); err == nil {
						t.Fatalf("the daemon answers, and yet: %v", err)
					}
					died++
					c.start()
					if list := c.of(key); len(list) != 0 && len(list) != nodes {
						t.Fatalf("%d machines of %d are rented", len(list), nodes)
					}
				}
			}
			request := gangOf(key, nodes)
			if n < 6 {
				c.steer(dieName, strconv.Itoa(n+1))
			} else {
				c.steer(killName, "")
				request.Env = map[string]string{"PLAY": "kill"}
			}
			var gang, again []engine.Instance
			launch := func(list *[]engine.Instance) func() error {
				return func() (err error) { *list, err = c.Launch(t.Context(), request); return err }
			}
			insist(launch(&gang))
			insist(func() error {
				if err := c.Terminate(t.Context(), gang[1].ID); !engine.Refused(err) {
					return err
				}
				return nil // it ended before the daemon died
			})
			insist(launch(&again))
			if died != 1 {
				t.Errorf("the daemon died %d times", died)
			}
			if !slices.Equal(ids(again), ids(gang)) {
				t.Errorf("%s rented %v, and later %v", key, ids(gang), ids(again))
			}
			c.until("the end of what has no process", func() bool {
				return !slices.ContainsFunc(c.of(key), func(i engine.Instance) bool {
					return i.State == engine.Running && len(procs.Members(i.ID, 0, "")) == 0
				})
			})
			before := c.of(key)
			for _, i := range before {
				n := len(procs.Members(i.ID, 0, ""))
				switch {
				case i.State == engine.Running && (n != 1 || i.ID == gang[1].ID):
					t.Errorf("%s runs, with %d processes", i.ID, n)
				case i.State == engine.Ended && (n != 0 || len(i.Bill) != 1 || i.Bill[0].Amount != i.Rate.Until(i.Ended.Sub(i.Launched))):
					t.Errorf("%s ended, with %d processes: %+v", i.ID, n, i)
				}
			}
			c.kill()
			c.start()
			if after := c.of(key); !reflect.DeepEqual(before, after) {
				t.Errorf("listed were %+v, and for the next daemon %+v", before, after)
			}
			if i := c.instance(beside.ID); i.State != engine.Running || len(procs.Members(i.ID, 0, "")) != 1 {
				t.Errorf("the machine beside them is %+v", i)
			}
		})
	}
}

func TestCrash_AtAnyMomentBillsMachinesOnce(t *testing.T) {
	lane.Nightly(t, "kills daemons at random moments")
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			c := newCloud(t, testTrace(60))
			p := restless(c, seed)
			const keys, kills = 12, 10
			ids := make([]string, keys)
			var users sync.WaitGroup
			ctx, leave := context.WithCancel(t.Context())
			defer users.Wait()
			defer leave()
			for k := range keys {
				users.Go(func() { // launches, and terminates every second instance
					chance := rand.New(rand.NewPCG(seed, uint64(k)))
					pause(t, chance, 600)
					q := engine.Request{Key: fmt.Sprintf("job.%d", k), Offer: always}
					i, err := p.Launch(ctx, q)
					if err != nil {
						t.Error(err)
						return
					}
					ids[k] = i[0].ID
					pause(t, chance, 300)
					if k%2 == 0 {
						if err := p.Terminate(ctx, i[0].ID); err != nil && !engine.Refused(err) {
							t.Error(err)
						}
					}
					if again, err := p.Launch(ctx, q); err != nil || again[0].ID != i[0].ID {
						t.Errorf("%s rented %v, and then %v (%v)", q.Key, i, again, err)
					}
				})
			}
			ended := map[string]engine.Instance{} // as first seen
			watch := func() {
				list, err := p.List(t.Context())
				if err != nil {
					t.Error(err)
				}
				for _, i := range list {
					before, known := ended[i.ID]
					switch {
					case known && !reflect.DeepEqual(before, i):
						t.Errorf("%s ended as %+v, and later as %+v", i.ID, before, i)
					case i.State == engine.Ended:
						ended[i.ID] = i
					}
				}
			}
			chance := rand.New(rand.NewPCG(seed, 1000))
			for range kills {
				pause(t, chance, 80)
				c.kill()
				c.start()
				watch()
			}
			users.Wait()
			c.kill()
			c.start()
			c.until("the end of what was lost between its record and its process", func() bool {
				list, err := c.List(t.Context())
				return err == nil && !slices.ContainsFunc(list, func(i engine.Instance) bool {
					return i.State == engine.Running && len(procs.Members(i.ID, 0, "")) == 0
				})
			})
			watch()

			list, err := c.List(t.Context())
			must.Do(t, err)
			byKey := map[string]string{}
			for _, i := range list {
				if byKey[i.Key] != "" {
					t.Errorf("%s rented %s and %s", i.Key, byKey[i.Key], i.ID)
				}
				byKey[i.Key] = i.ID
				n := len(procs.Members(i.ID, 0, ""))
				switch {
				case i.State == engine.Running && n != 1:
					t.Errorf("%s runs, with %d processes", i.ID, n)
				case i.State == engine.Ended && n != 0:
					t.Errorf("%s has ended, with %d processes", i.ID, n)
				}
				if i.State == engine.Ended {
					if want := i.Rate.Until(i.Ended.Sub(i.Launched)); len(i.Bill) != 1 || i.Bill[0].Amount != want {
						t.Errorf("the bill of %s is %+v, want one line of %v", i.ID, i.Bill, want)
					}
				}
			}
			running := 0
			for k, id := range ids {
				if byKey[fmt.Sprintf("job.%d", k)] != id {
					t.Errorf("job.%d has %s, listed is %s", k, id, byKey[fmt.Sprintf("job.%d", k)])
				}
				if i := c.instance(id); i.State == engine.Running {
					running++
				} else if i.Cause == engine.Stopped {
					t.Logf("%s was lost between its record and its process", id)
				}
			}
			if len(list) != keys || running == 0 || running > keys/2 {
				t.Errorf("%d instances, %d of them running; want %d and at most %d", len(list), running, keys, keys/2)
			}
		})
	}
}

// pause waits for a random number of milliseconds.
func pause(t *testing.T, chance *rand.Rand, most int) {
	_ = wait.For(t.Context(), time.Duration(chance.IntN(most))*time.Millisecond)
}

func TestAdopt_FindsEndWithoutDaemon(t *testing.T) {
	t.Parallel()
	c := newCloud(t, testTrace(60))
	i := c.launch("a.1", always)
	lost := c.launch("a.2", fleeing)
	pid, _ := procs.First(i.ID)
	c.kill()
	must.Do(t, syscall.Kill(pid, syscall.SIGKILL))
	c.ahead(time.Hour) // the other machine's 90 s pass while no daemon runs
	c.start()
	c.until("both ends", func() bool {
		return c.instance(i.ID).State == engine.Ended && c.instance(lost.ID).State == engine.Ended
	})
	if got := c.instance(i.ID); got.Cause != engine.Stopped {
		t.Errorf("ended as %+v", got)
	}
	// The machine ran a moment longer, which is not billed: its interruption was due earlier. It
	// was not announced either.
	if got := c.instance(lost.ID); got.Cause != engine.Interrupted || got.Ended.Sub(got.Launched) != 90*time.Second || got.Notice >= time.Second {
		t.Errorf("ended as %+v", got)
	}
	if left := procs.Members(lost.ID, 0, ""); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

func TestTerminate_KillsAllProcesses(t *testing.T) {
	for name, end := range map[string]func(*cloud, string){
		"given back": func(c *cloud, id string) {
			if err := c.Terminate(c.t.Context(), id); err != nil {
				c.t.Error(err)
			}
		},
		"its first process is killed": func(c *cloud, id string) {
			pid, _ := procs.First(id)
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				c.t.Error(err)
			}
		},
		"its first process is killed while no daemon runs": func(c *cloud, id string) {
			pid, _ := procs.First(id)
			c.kill()
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				c.t.Error(err)
			}
			c.start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCloud(t, testTrace(60))
			i := c.launch("a.1", always, "PLAY=family")
			other := c.launch("a.2", always, "PLAY=family")
			for _, m := range []string{i.ID, other.ID} {
				c.until("the family of "+m, func() bool { return c.machineFile(m, "ready") != "" && len(procs.Members(m, 0, "")) >= 7 })
			}
			was := map[int]string{}
			for _, pid := range procs.Members(i.ID, 0, "") {
				was[pid] = procs.Begun(pid)
			}
			end(c, i.ID)
			c.until("the end", func() bool { return c.instance(i.ID).State == engine.Ended })
			for pid, start := range was { // a killed process loses its environment at once and disappears a little later
				c.until(fmt.Sprintf("process %d is gone", pid), func() bool { return !procs.Alive(pid, start) })
			}
			if n := len(procs.Members(other.ID, 0, "")); n < 7 {
				t.Errorf("the other machine has %d processes left", n)
			}
		})
	}
}

func TestServe_SeparatesDataFolders(t *testing.T) {
	t.Parallel()
	a, b := newCloud(t, testTrace(60)), newCloud(t, testTrace(60))
	one, two := a.launch("job.1", always, "PLAY=env"), b.launch("job.1", always, "PLAY=env")
	if one.ID == two.ID {
		t.Fatalf("both are %s", one.ID)
	}
	a.kill()
	for n := range 5 { // might reuse a port of the first
		b.launch(fmt.Sprintf("more.%d", n), always)
	}
	a.start()
	for _, c := range []struct {
		*cloud
		i engine.Instance
	}{{a, one}, {b, two}} {
		c.until("its own metadata", func() bool { return c.awsDocument(c.i.ID, "instance-id") == c.i.ID })
	}
	if err := a.Terminate(t.Context(), one.ID); err != nil {
		t.Error(err)
	}
	if err := a.Terminate(t.Context(), two.ID); !engine.Refused(err) {
		t.Errorf("a folder gives back a machine of another: %v", err)
	}
	if got := b.instance(two.ID); got.State != engine.Running || len(procs.Members(two.ID, 0, "")) == 0 {
		t.Errorf("the other folder's machine is %+v", got)
	}
}

func TestDaemon_ContinuesAfterSleep(t *testing.T) { // like a laptop that sleeps
	t.Parallel()
	c := newCloud(t, testTrace(60))
	i, lost := c.launch("a.1", always), c.launch("a.2", fleeing)
	all := append(append(procs.Members(i.ID, 0, ""), procs.Members(lost.ID, 0, "")...), c.pid())
	for _, pid := range all {
		must.Do(t, syscall.Kill(pid, syscall.SIGSTOP))
	}
	c.ahead(time.Hour)
	for _, pid := range all {
		must.Do(t, syscall.Kill(pid, syscall.SIGCONT))
	}
	c.until("the end of the one that fell due", func() bool { return c.instance(lost.ID).State == engine.Ended })
	if got := c.instance(lost.ID); got.Ended.Sub(got.Launched) != 90*time.Second {
		t.Errorf("ended as %+v", got)
	}
	if got := c.instance(i.ID); got.State != engine.Running || len(procs.Members(i.ID, 0, "")) != 1 {
		t.Errorf("the other one is %+v", got)
	}
}

func TestStop_LeavesMachinesRunning(t *testing.T) {
	t.Parallel()
	c := newCloud(t, testTrace(60))
	i := c.launch("a.1", always)
	pid := c.pid()
	was := procs.Begun(pid)
	must.Do(t, c.Stop(t.Context()))
	c.until("the daemon's end", func() bool { return !procs.Alive(pid, was) })
	if n := len(procs.Members(i.ID, 0, "")); n != 1 {
		t.Errorf("the machine has %d processes", n)
	}
	c.start()
	if got := c.instance(i.ID); got.State != engine.Running || c.pid() == pid {
		t.Errorf("the next daemon found %+v", got)
	}
}

// A cleaner of temporary folders deletes sockets too. A daemon that nobody can reach must not keep
// the folder locked forever.
func TestIdle_StopsWithoutSocket(t *testing.T) {
	t.Parallel()
	c := newCloud(t, testTrace(60))
	i := c.launch("a.1", always)
	pid := c.pid()
	must.Do(t, os.Remove(filepath.Join(c.dir, local.SocketName)))
	fresh, err := local.Dial(c.dir) // the connection of c's driver leads to the old daemon
	must.Do(t, err)
	c.Driver = fresh
	c.start()
	if got := c.instance(i.ID); got.State != engine.Running || c.pid() == pid {
		t.Errorf("the next daemon found %+v, process %d after %d", got, c.pid(), pid)
	}
}

func TestAdopt_KillsUnrentedProcess(t *testing.T) {
	t.Parallel()
	c, other := newCloud(t, testTrace(60)), newCloud(t, testTrace(60))
	kept, theirs := c.launch("a.1", always), other.launch("a.1", always)
	journal := filepath.Join(c.dir, journalName)
	before, err := os.ReadFile(journal)
	must.Do(t, err)
	lost := c.launch("a.2", always, "PLAY=family")
	c.until("its family", func() bool { return len(procs.Members(lost.ID, 0, "")) >= 7 })
	c.kill()
	if err := os.WriteFile(journal, before, 0o600); err != nil { // like a disk that lost a synced write
		t.Fatal(err)
	}
	c.start()
	c.until("the end of what is not in the journal", func() bool { return len(procs.Members(lost.ID, 0, "")) == 0 })
	if n := len(procs.Members(kept.ID, 0, "")); n != 1 || c.instance(kept.ID).State != engine.Running {
		t.Errorf("the rented one has %d processes", n)
	}
	if n := len(procs.Members(theirs.ID, 0, "")); n != 1 {
		t.Errorf("the other folder's has %d processes", n)
	}
}

// After a machine has ended, none of its processes runs, whatever session and environment it has,
// and its disk holds only its console log.
func TestTerminate_LeavesOnlyConsoleLog(t *testing.T) {
	t.Parallel()
	span := fmt.Sprintf("97531.%d", os.Getpid()) // another run of this test may be in progress
	c := newCloud(t, testTrace(1))
	i := c.launch("a.1", always, "PLAY=daemon", "SPAN="+span)
	running := func() (n int) {
		names, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, name := range names {
			if b, _ := os.ReadFile(name); string(b) == "sleep\x00"+span+"\x00" {
				n++
			}
		}
		return n
	}
	c.until("its daemon", func() bool { return c.machineFile(i.ID, "ready") != "" && running() == 1 })
	if err := c.Terminate(t.Context(), i.ID); err != nil {
		t.Fatal(err)
	}
	// A killed process is listed until the kernel has run it for the last time.
	c.until("no daemon lives on", func() bool { return running() == 0 })
	entries, err := os.ReadDir(filepath.Join(c.dir, "machines", i.ID))
	if err != nil || len(entries) != 1 || entries[0].Name() != consoleName {
		t.Errorf("its disk holds %v, %v", entries, err)
	}
}

// From the shell that started the market, a machine gets the variables that machines need and the
// credentials of stores, but not what only the server needs.
func TestStart_HidesServersPasswords(t *testing.T) {
	for _, name := range []string{"PGPASSWORD", "DATABASE_URL", "GITHUB_TOKEN", "SCRIMP_TOKEN", "AWS_PROFILE", "https_proxy"} {
		t.Setenv(name, "of-the-shell")
	}
	c := newCloud(t, testTrace(1))
	i := c.launch("a.1", always, "PLAY=env")
	env := ""
	c.until("its environment", func() bool { env = c.machineFile(i.ID, "env"); return strings.Contains(env, "SCRIMP_INSTANCE_ID") })
	for name, want := range map[string]bool{"PGPASSWORD": false, "DATABASE_URL": false, "GITHUB_TOKEN": false, "SCRIMP_TOKEN": false,
		"AWS_PROFILE": true, "https_proxy": true} {
		if got := strings.Contains("\n"+env, "\n"+name+"=of-the-shell"); got != want {
			t.Errorf("%s reaches the machine: %t", name, got)
		}
	}
}
