package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/store/sqlite"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
)

// cloud is a provider shared by several installations.
type cloud struct {
	mu     sync.Mutex
	all    []engine.Instance
	ended  []string
	part   int  // machines granted per launch; 0: all
	hidden bool // List omits them
	short  bool // the rest of a partial grant never comes
}

const cloudOffer = market.OfferID("cloud/z/m/on-demand")

func (c *cloud) Launch(_ context.Context, r engine.Request) ([]engine.Instance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.of(r.Key)
	for len(list) == 0 || len(list) < r.Machines() && (c.part == 0 || len(list) < c.part) {
		i := engine.Instance{
			ID: fmt.Sprintf("i-%d", len(c.all)+1), Key: r.Key, Offer: r.Offer, State: engine.Running, Launched: time.Now().UTC(), Rate: 1e12, Tags: r.Tags,
		}
		c.all, list = append(c.all, i), append(list, i)
	}
	if len(list) < r.Machines() && c.short {
		return list, &engine.RefusalError{Err: fmt.Errorf("%w: the third is not to be had", engine.ErrNoCapacity), Scope: "offer"}
	}
	if len(list) < r.Machines() {
		return list, engine.ErrPending
	}
	return list, nil
}

// of returns the machines of a key.
func (c *cloud) of(key string) (list []engine.Instance) {
	for _, i := range c.all {
		if i.Key == key {
			list = append(list, i)
		}
	}
	return list
}

func (c *cloud) Terminate(_ context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = append(c.ended, id)
	for n := range c.all {
		if i := &c.all[n]; i.ID == id && i.State == engine.Running {
			i.State, i.Ended, i.Cause = engine.Ended, time.Now().UTC(), engine.Terminated
		}
	}
	return nil
}

func (c *cloud) List(context.Context) ([]engine.Instance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hidden {
		return nil, errors.New("the list is down")
	}
	return slices.Clone(c.all), nil
}

func (c *cloud) Offers(context.Context) ([]market.Offer, []market.Quote, error) {
	o := market.Offer{ID: cloudOffer, Provider: "cloud", Region: "r", Zone: "z", Machine: "m", Capacity: market.OnDemand, CPUs: 1, Memory: 1 << 30, Speed: 1, Currency: money.USD}
	q := market.Quote{Offer: o.ID, Rate: 1e12, Priced: true, Available: true, At: time.Now().UTC(), Source: "test"}
	return []market.Offer{o}, []market.Quote{q}, nil
}

func (c *cloud) terminations() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ended)
}

// engineOf returns an engine with the given poll and sweep interval.
func engineOf(name string, d engine.Driver, every time.Duration) []engine.Engine {
	return []engine.Engine{{Name: name, Driver: d, Timing: engine.Timing{Poll: every, Sweep: every, Boot: 5 * time.Minute}}}
}

// open runs a server on the folder until stop.
func (c *cloud) open(t *testing.T, folder string) (*Control, func()) {
	t.Helper()
	return c.openFor(t, folder, 0)
}

// openFor is open with a limit on the jobs that hold a machine; 0: the default.
func (c *cloud) openFor(t *testing.T, folder string, running int) (*Control, func()) {
	t.Helper()
	st, err := sqlite.Open(folder)
	must.Do(t, err)
	now := time.Now().UTC()
	s, err := New(t.Context(), st, engineOf("cloud", c, 10*time.Millisecond), Config{
		Clock: Clock{Wall: now, Market: now, Speed: 1}, Silence: time.Hour, Running: running,
		Log: slog.New(slog.DiscardHandler), Env: func(*engine.Engine, string) map[string]string { return nil },
	})
	must.Do(t, err)
	return s, runs(t, s, st)
}

// until waits for a condition that the servers reach without a request.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	eventually.True(t, what, ok)
}

// rented returns the machine of the job's newest attempt; empty means none.
func rented(s *Control, job string) (id string) {
	s.ReadUncommitted(func(m *core.Machine) {
		if j, ok := m.Job(job); ok && j.Live() != nil {
			id = j.Live().Instance()
		}
	})
	return id
}

// swept waits until a server has swept the provider twice.
func swept(t *testing.T, s *Control) {
	t.Helper()
	for range 2 {
		s.sweep(t.Context(), s.sources[0])
	}
}

// Two installations on one provider, with jobs of the same name, tell their machines apart and terminate none of the
// other's.
func TestInstallations_DoNotTerminateEachOthersMachines(t *testing.T) {
	t.Parallel()
	c := &cloud{}
	a, stopA := c.open(t, t.TempDir())
	defer stopA()
	b, stopB := c.open(t, t.TempDir())
	defer stopB()
	for _, s := range []*Control{a, b} {
		must.Do(t, s.Propose(t.Context(), submission(s, "train")))
		until(t, "a machine", func() bool { return rented(s, "train") != "" })
	}
	swept(t, a)
	swept(t, b)
	if one, two := rented(a, "train"), rented(b, "train"); one == two || len(c.terminations()) > 0 {
		t.Errorf("they have %s and %s, ended were %v", one, two, c.terminations())
	}
	if others := a.Foreign(); len(others) != 1 || others[0].ID != rented(b, "train") {
		t.Errorf("of others it shows %v", others)
	}
	for _, i := range c.all {
		if !strings.Contains(i.Key, i.Tags[tagInstallation]) || i.Tags[tagIncarnation] != "1" || i.Tags[tagJob] != "train" {
			t.Errorf("a machine has key %s and tags %v", i.Key, i.Tags)
		}
	}
}

// logOf returns the installation and incarnation of the server's log.
func logOf(s *Control) (of string) {
	s.ReadUncommitted(func(m *core.Machine) { of = fmt.Sprintf("%s/%d", m.State().Installation(), m.State().Incarnation()) })
	return of
}

// copied copies a data folder.
func copied(t *testing.T, folder string) string {
	t.Helper()
	to := t.TempDir()
	must.Do(t, os.CopyFS(to, os.DirFS(folder)))
	return filepath.Clean(to)
}

// A copy of a data folder leaves the log's machines alone until a user decides. Released machines stay with the
// original, and the copy rents its own; adopted machines belong to the copy.
func TestRestoredCopy_LeavesMachinesAlone(t *testing.T) {
	t.Parallel()
	for _, adopt := range []bool{false, true} {
		t.Run(fmt.Sprintf("adopt=%v", adopt), func(t *testing.T) {
			c, folder := &cloud{}, t.TempDir()
			a, stop := c.open(t, folder)
			must.Do(t, a.Propose(t.Context(), submission(a, "train")))
			until(t, "a machine", func() bool { return rented(a, "train") != "" })
			first := rented(a, "train")
			stop()
			b, stopB := c.open(t, copied(t, folder))
			defer stopB()
			undecided := func() (open bool) {
				b.ReadUncommitted(func(m *core.Machine) { open = m.State().Undecided() })
				return open
			}
			until(t, "the copy asks whose the machine is", undecided)
			must.Do(t, b.Propose(t.Context(), submission(b, "other"), b.event(b.Now(), core.JobEnded{Job: "train"})))
			swept(t, b)
			if ended := c.terminations(); len(ended) > 0 || rented(b, "other") != "" {
				t.Fatalf("before anybody decides %v were ended, and %q was rented", ended, rented(b, "other"))
			}
			must.Do(t, b.Propose(t.Context(), b.event(b.Now(), core.OwnershipDecided{Adopt: adopt})))
			until(t, "the copy goes on", func() bool { return rented(b, "other") != "" })
			if adopt {
				until(t, "the adopted machine of a cancelled job is ended", func() bool { return slices.Contains(c.terminations(), first) })
				return
			}
			swept(t, b)
			if ended := c.terminations(); len(ended) > 0 {
				t.Errorf("%v were ended, and %s is the original's", ended, first)
			}
			again, stopA := c.open(t, folder)
			defer stopA()
			if one, two := logOf(again), logOf(b); rented(again, "train") != first || !strings.HasSuffix(one, "/1") || two != strings.TrimSuffix(one, "1")+"2" {
				t.Errorf("the original has %q as %s, the copy is %s", rented(again, "train"), one, two)
			}
		})
	}
}

// Nothing that a copy does at its start, such as reading the limit of running jobs, launches a job that was queued in
// its log.
func TestRestoredCopy_LaunchesNothingAtStart(t *testing.T) {
	t.Parallel()
	c, folder := &cloud{}, t.TempDir()
	a, stop := c.openFor(t, folder, 1)
	must.Do(t, a.Propose(t.Context(), submission(a, "train"), submission(a, "waits")))
	until(t, "a machine", func() bool { return rented(a, "train") != "" })
	stop()
	b, stopB := c.openFor(t, copied(t, folder), 4)
	defer stopB()
	<-b.Begun()
	swept(t, b)
	if got := rented(b, "waits"); got != "" || len(c.all) != 1 {
		t.Errorf("the copy has rented %q before anybody decided: %+v", got, c.all)
	}
	must.Do(t, b.Propose(t.Context(), b.event(b.Now(), core.OwnershipDecided{})))
	until(t, "the copy goes on", func() bool { return rented(b, "waits") != "" })
}
