package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/content/blob"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/engine"
	"scrimp/internal/engine/local"
	"scrimp/internal/engine/local/marketd"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	sale "scrimp/internal/market"
	"scrimp/internal/test/eventually"
)

// playAgent runs an agent in a process of its own, as a machine does.
func playAgent() int {
	err := Run(context.Background(), Config{
		Server: os.Getenv("SCRIMP_SERVER"), Token: os.Getenv("SCRIMP_TOKEN"), Instance: os.Getenv("SCRIMP_INSTANCE_ID"), MachineDir: os.Getenv("SCRIMP_MACHINE_DIR"),
		Environ: os.Environ(), Version: "test", Quiet: 100 * time.Millisecond, pace: quickPace, Now: clockOf(os.Getenv("TEST_CLOCK")), Build: ownHash(), Sole: true,
		Restart: func(path string) error { return syscall.Exec(path, os.Args, os.Environ()) }, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// clockOf returns the clock of an agent in a process of its own. It jumps once a file exists; see rig.jump.
func clockOf(path string) func() time.Time {
	return func() time.Time {
		now := time.Now()
		if _, err := os.Stat(path); path != "" && err == nil {
			now = now.Add(silenceOfJump + time.Second)
		}
		return now
	}
}

// rented returns a market with one machine for sale, which runs in the test's process.
func rented(t *testing.T, env map[string]string) (*local.Driver, engine.Instance, string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "m") // short, because socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rate, err := money.ParseRate("0.36")
	if err != nil {
		t.Fatal(err)
	}
	o := sale.Offer{Provider: "local", Region: "r", Zone: "a", Machine: "m", Capacity: sale.OnDemand, CPUs: 1, Memory: size.GiB, Currency: money.USD}
	o.ID = sale.ID(o)
	trace := sale.Trace{Name: "one", Currency: money.USD, Speed: 1, Lines: []sale.TraceLine{{Offer: o, Price: []sale.Price{{Rate: rate}}}}}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- marketd.Serve(ctx, marketd.Options{Dir: dir, Trace: trace, Machine: []string{self}}) }()
	d, err := local.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the market answers", func() bool {
		_, err := d.Clock(ctx)
		return err == nil
	})
	list, err := d.Launch(ctx, engine.Request{Key: "job-1.1", Offer: o.ID, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	i := list[0]
	t.Cleanup(func() {
		_ = d.Terminate(context.Background(), i.ID) // in case it still runs
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if t.Failed() {
			b, _ := os.ReadFile(filepath.Join(dir, "machines", i.ID, "console.log"))
			t.Logf("the machine's console:\n%s", b)
		}
		_ = os.RemoveAll(dir)
	})
	return d, i, filepath.Join(dir, "machines", i.ID)
}

func TestAgent_SavesAndSwitchesOffWhenServerStaysUnreachable(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	a := stored(t, store, 1, "train")
	a.Silence = silenceOfJump
	server := newServer(t, a)
	clock := filepath.Join(t.TempDir(), "clock")
	driver, i, dir := rented(t, map[string]string{"TEST_PROGRAM": "agent", "TEST_CLOCK": clock, "SCRIMP_SERVER": server.URL,
		"SCRIMP_TOKEN": "bootstrap-token"})
	server.wait("the program's first output", func() bool { return len(server.log) > 0 })
	server.goAway()
	if err := os.WriteFile(clock, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	var end engine.Instance
	var log []byte // read it while the machine has a disk
	eventually.True(t, "the machine ends after its server went away", func() bool {
		list, err := driver.List(t.Context())
		if err != nil || len(list) != 1 {
			t.Fatalf("listed are %v, %v", list, err)
		}
		if b, err := os.ReadFile(filepath.Join(dir, "tasks", a.Attempt, "log")); err == nil {
			log = b
		}
		end = list[0]
		return end.State == engine.Ended
	})
	if end.Cause != engine.Stopped {
		t.Errorf("ended as %+v, want its own end", end)
	}
	if want := i.Rate.Until(end.Ended.Sub(end.Launched)); len(end.Bill) != 1 || end.Bill[0].Amount != want {
		t.Errorf("the bill is %+v, want %v", end.Bill, want)
	}
	saved := log[strings.LastIndex(string(log), "saved ")+len("saved "):]
	b, err := blob.Open(t.Context(), a.Checkpoint.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	w, err := checkpoint.Open(b, a.Checkpoint.Prefix).Claim(t.Context(), 2, "job-1.2")
	if err != nil {
		t.Fatal(err)
	}
	next := t.TempDir()
	if _, err := w.Restore(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	state, err := os.ReadFile(checkpointFile(next))
	if err != nil || strings.TrimSpace(string(state)) != strings.TrimSpace(string(saved)) {
		t.Errorf("the next attempt begins from %q, the last save was %q, %v", state, saved, err)
	}
}
