package ssh

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/hostd"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/enginetest"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/test/sshtest"
)

// The test binary is the program that is copied to machines.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "hostd" {
		exe, _ := os.Executable()
		err := hostd.Serve(context.Background(), os.Stdin, os.Stdout, hostd.Options{Dir: os.Args[3], Agent: []string{exe,
			"agent"}})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		if os.Getenv("PLAY") != "exit" {
			<-time.After(10 * time.Minute) // the test kills it; after a crashed test it ends by itself
		}
		os.Exit(3)
	}
	var err error
	if shared, err = os.MkdirTemp("", "scrimp-lab-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	_ = os.RemoveAll(shared)
	os.Exit(status)
}

// shared is the folder of all test machines, which are this host.
var shared string

// lab is a test engine.
type lab struct {
	*Driver
	t       testing.TB
	setting engine.Setting
	dir     string
}

var labs atomic.Int64

// newLab returns an engine with the machines of the given numbers. cpus gives machines different
// processors, so that tests can tell them apart.
func newLab(t testing.TB, machines *sshtest.Machines, name string, cpus map[int]int, numbers ...int) *lab {
	t.Helper()
	serial := labs.Add(1) // the machines of each test have separate folders
	w := map[string]any{"config": machines.Config, "rate": "0.36", "marginal": "0.06", "folder": shared}
	var hosts []map[string]any
	for _, k := range numbers {
		h := map[string]any{"ssh": fmt.Sprintf("m%d", k), "name": fmt.Sprintf("m%d.%d", k, serial)}
		if n := cpus[k]; n > 0 {
			h["cpus"] = n
		}
		hosts = append(hosts, h)
	}
	w["hosts"] = hosts
	dir, err := os.MkdirTemp("", "l") // short, because socket paths are limited
	must.Do(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l := &lab{t: t, dir: dir, setting: engine.Setting{Name: name, Kind: Kind, With: engine.WithOf(w)}}
	l.open()
	t.Cleanup(l.end)
	return l
}

func (l *lab) open() {
	l.t.Helper()
	e, err := Open(l.t.Context(), l.setting, engine.Host{Dir: l.dir, Socket: "unix://" + filepath.Join(l.dir,
		"server.sock"),
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	must.Do(l.t, err)
	l.Driver = e.Driver.(*Driver)
}

// restart kills the server, which closes its connections, and starts the next one.
func (l *lab) restart() {
	l.stop()
	l.open()
}

func (l *lab) end() {
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	defer cancel()
	l.look(ctx)
	l.mu.Lock()
	var running []string
	for _, v := range l.seen {
		for _, i := range v.list {
			if i.State == engine.Running {
				running = append(running, i.ID)
			}
		}
	}
	l.mu.Unlock()
	for _, id := range running {
		_ = l.Terminate(ctx, id) // the instance of another engine is ended by that one
	}
	_ = l.Close(ctx)
}

// offers returns the engine's offers by their number of processors.
func (l *lab) offers() map[int]market.OfferID {
	l.t.Helper()
	offers, _, err := l.Offers(l.t.Context())
	must.Do(l.t, err)
	by := map[int]market.OfferID{}
	for _, o := range offers {
		by[o.CPUs] = o.ID
	}
	return by
}

// The driver passes the conformance tests on machines with real sshds, and its documentation page
// lists the cases.
func TestDriver_Conforms(t *testing.T) {
	lane.Component(t, "ssh")
	t.Parallel()
	machines := sshtest.Start(t, 6, 78)
	results := enginetest.Run(t, func(t testing.TB) enginetest.Rig {
		l := newLab(t, machines, "lab", map[int]int{1: 3, 2: 3, 3: 3, 4: 3, 5: 5}, 1, 2, 3, 4, 5)
		by := l.offers()
		host := l.links[4].Host.Name // another server uses that machine
		link := l.link(host)
		if _, err := link.Ask(t.Context(), hostd.Request{Do: "launch", Launch: &hostd.Launch{Key: "theirs",
			Name:  "their-" + host,
			Offer: by[5], Rate: money.Rate(1), At: time.Now()}}, time.Minute); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			a, _ := link.Ask(context.Background(), hostd.Request{Do: "list"}, time.Minute)
			for _, i := range a.Instances {
				_, _ = link.Ask(context.Background(), hostd.Request{Do: "end", Instance: i.ID}, time.Minute)
			}
		})
		return enginetest.Rig{
			Driver: l, Granted: by[3], Empty: by[5],
			Restart: func(testing.TB) { l.restart() },
			Foreign: func(t testing.TB) string {
				other := newLab(t, machines, "other", map[int]int{6: 7}, 6)
				list, err := other.Launch(t.Context(), engine.Request{Key: "a.1", Offer: other.offers()[7]})
				must.Do(t, err)
				return list[0].ID
			},
		}
	})
	enginetest.Page(t, "../../../docs/engines/ssh.md", results)
}
