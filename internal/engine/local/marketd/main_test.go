package marketd

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/local"
	"scrimp/internal/engine/procs"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/lib/wait"
	"scrimp/internal/market"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/fast"
	"scrimp/internal/test/must"
)

// The test binary is also the daemon and the machines' program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "daemon":
			os.Exit(serve(os.Args[2]))
		case "machine":
			os.Exit(play(os.Getenv("PLAY")))
		}
	}
	os.Exit(m.Run())
}

func serve(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, "trace.json"))
	var t market.Trace
	if err == nil {
		err = json.Unmarshal(text, &t)
	}
	if err == nil {
		self, _ := os.Executable()
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		err = Serve(ctx, Options{Dir: dir, Trace: t, Machine: []string{self, "machine"}, Idle: 15 * time.Minute, // longer than any test
			Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), now: clockOf(dir),
			disk: func(d disk) disk { return &mortal{disk: d, dir: dir} }})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// clockOf returns the clock of a daemon: the real one, set ahead by what the test wrote with cloud.ahead.
func clockOf(dir string) func() time.Time {
	return func() time.Time {
		text, _ := os.ReadFile(filepath.Join(dir, aheadName))
		by, _ := time.ParseDuration(string(text)) // the file does not exist until a test sets the clock
		return time.Now().Add(by)
	}
}

// Files with which a test controls its daemon.
const (
	aheadName = "ahead" // how far the clock is ahead
	dieName   = "die"   // the step of the journal's disk at which the daemon dies, from 1
	killName  = "kill"  // the first machine that finds it kills the daemon
)

// mortal is a disk on which the daemon dies as with kill -9: in the middle of a write, or before a sync.
type mortal struct {
	disk
	dir  string
	done int // steps since the test armed it
}

func (m *mortal) dies() bool {
	text, err := os.ReadFile(filepath.Join(m.dir, dieName))
	if err != nil {
		return false
	}
	m.done++
	return strconv.Itoa(m.done) == string(text)
}

func (m *mortal) die() {
	_ = os.Remove(filepath.Join(m.dir, dieName)) // the next daemon survives
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func (m *mortal) Write(b []byte) (int, error) {
	if m.dies() {
		_, _ = m.disk.Write(b[:len(b)/2])
		m.die()
	}
	return m.disk.Write(b)
}

func (m *mortal) Sync() error {
	if m.dies() {
		m.die()
	}
	return m.disk.Sync()
}

// play is the program of a test's machine.
func play(what string) int {
	switch what {
	case "exit":
		return 3
	case "family": // processes that leave the session, the parent, or both
		script := `sleep 1000 & setsid sleep 1001 & (setsid sh -c 'sleep 1002 & exec sleep 1003' &) ; (env -i sleep 1004 &) ; echo ready > ready; wait`
		cmd := exec.Command("sh", "-c", script)
		_ = cmd.Run() // it is killed
		return 0
	case "kill": // the machine outlives the daemon, which starts no other one
		if os.Remove(filepath.Join("..", "..", killName)) == nil {
			_ = syscall.Kill(os.Getppid(), syscall.SIGKILL)
		}
	case "daemon": // an agent that adopts orphans, the log and work of its program, and a detached daemon
		adopt()
		_ = os.MkdirAll("tasks/a.1/work", 0o700)
		_ = os.WriteFile("tasks/a.1/log", []byte("hf_unmasked"), 0o600)
		_ = os.WriteFile("tasks/a.1/work/model", []byte("hf_unmasked"), 0o600)
		script := `env -i setsid sh -c 'env -i setsid sh -c "env -i setsid sleep $0 & exit 0" & exit 0'; echo ready > ready`
		_ = exec.Command("sh", "-c", strings.ReplaceAll(script, "$0", os.Getenv("SPAN"))).Run()
	case "env":
		_ = os.WriteFile("env", []byte(strings.Join(os.Environ(), "\n")), 0o600)
	}
	_ = wait.For(context.Background(), 10*time.Minute) // it is killed; after a crashed test it ends by itself
	return 0
}

// line returns an offer of a test's market at 0.36 an hour, which is 0.0001 a second.
func line(zone string, capacity market.Capacity, change func(*market.TraceLine)) market.TraceLine {
	l := market.TraceLine{
		Offer: market.Offer{Provider: "local", Region: "r", Zone: zone, Machine: "m1", Capacity: capacity, CPUs: 1, Memory: size.GiB, Currency: money.USD},
		Price: []market.Price{{Rate: rate("0.36")}},
	}
	if change != nil {
		change(&l)
	}
	l.Offer.ID = market.ID(l.Offer)
	return l
}

func rate(s string) money.Rate {
	r, err := money.ParseRate(s)
	if err != nil {
		panic(err)
	}
	return r
}

const (
	always  market.OfferID = "local/a/m1/on-demand"
	never   market.OfferID = "local/b/m1/spot"
	fleeing market.OfferID = "local/c/m1/spot" // interrupted 90 market seconds after its launch
)

func testTrace(speed float64) market.Trace {
	return market.Trace{Name: "test", Currency: money.USD, Speed: speed, Lines: []market.TraceLine{
		line("a", market.OnDemand, nil),
		line("b", market.Spot, func(l *market.TraceLine) { l.Available = []market.Span{{From: 1000 * time.Hour, To: 1001 * time.Hour}} }),
		line("c", market.Spot, func(l *market.TraceLine) {
			l.Offer.MaxLifetime, l.Offer.Notice = 90*time.Second, time.Second
			l.Offer.Billing = market.Billing{Minimum: time.Minute, FreeIfInterruptedWithin: time.Hour}
		}),
	}}
}

// cloud is a test's market with a real daemon.
type cloud struct {
	*local.Driver
	t   testing.TB
	dir string
}

func newCloud(t testing.TB, trace market.Trace) *cloud {
	t.Helper()
	dir := fast.Dir(t)
	b, err := json.Marshal(trace)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "trace.json"), b, 0o600)
	}
	must.Do(t, err)
	d, err := local.Dial(dir)
	must.Do(t, err)
	c := &cloud{d, t, dir}
	t.Cleanup(c.clean)
	c.start()
	return c
}

func (c *cloud) start() {
	c.t.Helper()
	self, err := os.Executable()
	if err == nil {
		err = local.Spawn(context.Background(), c.dir, self, []string{"daemon", c.dir})
	}
	must.Do(c.t, err)
}

// pid returns the daemon's process id.
func (c *cloud) pid() int {
	b, err := os.ReadFile(filepath.Join(c.dir, lockName))
	pid, err2 := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || err2 != nil || pid <= 1 {
		c.t.Fatalf("the daemon's process: %q, %v, %v", b, err, err2)
	}
	return pid
}

// kill sends SIGKILL to the daemon only.
func (c *cloud) kill() {
	c.t.Helper()
	pid := c.pid()
	was := procs.Begun(pid)
	must.Do(c.t, syscall.Kill(pid, syscall.SIGKILL))
	c.until("the daemon's death", func() bool { return !procs.Alive(pid, was) })
}

// clean ends the machines and the daemon, and checks that nothing is left.
func (c *cloud) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	defer cancel()
	if _, err := c.Clock(ctx); err != nil {
		c.start()
	}
	list, err := c.List(ctx)
	if err != nil {
		c.t.Error(err)
	}
	for _, i := range list {
		if i.State == engine.Running {
			if err := c.Terminate(ctx, i.ID); err != nil && !engine.Refused(err) {
				c.t.Error(err)
			}
		}
	}
	for _, i := range list {
		if left := procs.Members(i.ID, 0, ""); len(left) > 0 {
			c.t.Errorf("processes of %s are left: %v", i.ID, left)
		}
	}
	pid := c.pid()
	was := procs.Begun(pid)
	if err := c.Stop(ctx); err != nil {
		c.t.Error(err)
	}
	c.until("the daemon's end", func() bool { return !procs.Alive(pid, was) })
	if c.t.Failed() {
		log, _ := os.ReadFile(filepath.Join(c.dir, "market.log"))
		c.t.Logf("the daemon's log:\n%s", log)
	}
}

// ahead sets the clock of this and the next daemons ahead of the real one.
func (c *cloud) ahead(by time.Duration) { c.steer(aheadName, by.String()) }

// steer atomically writes a file that the daemon may read at any moment.
func (c *cloud) steer(name, text string) {
	c.t.Helper()
	path := filepath.Join(c.dir, name)
	err := os.WriteFile(path+".new", []byte(text), 0o600)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	must.Do(c.t, err)
}

// until waits for another process.
func (c *cloud) until(what string, ok func() bool) {
	c.t.Helper()
	eventually.True(c.t, what, ok)
}

func (c *cloud) launch(key string, offer market.OfferID, env ...string) engine.Instance {
	c.t.Helper()
	q := engine.Request{Key: key, Offer: offer, Env: map[string]string{}}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		q.Env[name] = value
	}
	list, err := c.Launch(context.Background(), q)
	if err != nil {
		c.t.Fatalf("launch %s: %v", key, err)
	}
	return list[0]
}

func (c *cloud) instance(id string) engine.Instance {
	c.t.Helper()
	list, err := c.List(context.Background())
	must.Do(c.t, err)
	for _, i := range list {
		if i.ID == id {
			return i
		}
	}
	c.t.Fatalf("%s is not listed", id)
	return engine.Instance{}
}

func (c *cloud) machineFile(id, name string) string {
	b, _ := os.ReadFile(filepath.Join(c.dir, "machines", id, name))
	return string(bytes.TrimSpace(b))
}

// of returns the machines that a key rented.
func (c *cloud) of(key string) []engine.Instance {
	c.t.Helper()
	list, err := c.List(context.Background())
	must.Do(c.t, err)
	return slices.DeleteFunc(list, func(i engine.Instance) bool { return i.Key != key })
}
