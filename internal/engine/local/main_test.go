package local

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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/await"
	"scrimp/internal/engine"
	"scrimp/internal/engine/procs"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/size"
)

// patience ends a hang, and is no measure of speed.
const patience = 40 * time.Second

// The test's own binary is the daemon and the machines' program too.
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
		err = Serve(ctx, Options{Dir: dir, Trace: t, Machine: []string{self, "machine"}, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// play is what a machine of a test does.
func play(what string) int {
	switch what {
	case "exit":
		return 3
	case "family": // processes that leave the session, the parent, or both
		script := `sleep 1000 & setsid sleep 1001 & (setsid sh -c 'sleep 1002 & exec sleep 1003' &) ; (env -i sleep 1004 &) ; echo ready > ready; wait`
		cmd := exec.Command("sh", "-c", script)
		_ = cmd.Run() // it is killed
		return 0
	case "daemon": // an agent, which adopts; its program's log and work; and a daemon as daemons are made
		adopt()
		_ = os.MkdirAll("tasks/a.1/work", 0o700)
		_ = os.WriteFile("tasks/a.1/log", []byte("hf_unmasked"), 0o600)
		_ = os.WriteFile("tasks/a.1/work/model", []byte("hf_unmasked"), 0o600)
		script := `env -i setsid sh -c 'env -i setsid sh -c "env -i setsid sleep 97531.24 & exit 0" & exit 0'; echo ready > ready`
		_ = exec.Command("sh", "-c", script).Run()
	case "env":
		_ = os.WriteFile("env", []byte(strings.Join(os.Environ(), "\n")), 0o600)
	}
	<-time.After(10 * time.Minute) // it is killed; a test that dies leaves nothing for long
	return 0
}

// line is an offer of a test's market at 0.36 an hour, which is 0.0001 a second.
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
	fleeing market.OfferID = "local/c/m1/spot" // taken 90 market seconds after its launch
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

// cloud is a market of a test, served by a real daemon.
type cloud struct {
	*Driver
	t   testing.TB
	dir string
}

func newCloud(t testing.TB, trace market.Trace) *cloud {
	t.Helper()
	dir, err := os.MkdirTemp("", "m") // short: the path of a socket is
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(trace)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "trace.json"), b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	d, err := Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := &cloud{d, t, dir}
	t.Cleanup(c.clean)
	c.start()
	return c
}

func (c *cloud) start() {
	c.t.Helper()
	self, err := os.Executable()
	if err == nil {
		err = Spawn(context.Background(), c.dir, self, []string{"daemon", c.dir})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// pid is the daemon's.
func (c *cloud) pid() int {
	b, err := os.ReadFile(filepath.Join(c.dir, lockName))
	pid, err2 := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || err2 != nil || pid <= 1 {
		c.t.Fatalf("the daemon's process: %q, %v, %v", b, err, err2)
	}
	return pid
}

// kill is kill -9 of the daemon alone.
func (c *cloud) kill() {
	c.t.Helper()
	pid := c.pid()
	was := procs.Begun(pid)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		c.t.Fatal(err)
	}
	c.until("the daemon's death", func() bool { return !procs.Alive(pid, was) })
}

// clean ends the machines and the daemon, and checks that nothing is left.
func (c *cloud) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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
	_ = os.RemoveAll(c.dir)
}

// until waits for another process; the limit only ends a hang.
func (c *cloud) until(what string, ok func() bool) {
	c.t.Helper()
	await.True(c.t, what, ok)
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
	if err != nil {
		c.t.Fatal(err)
	}
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
