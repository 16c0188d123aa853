package marketd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/procs"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

func gangOf(key string, nodes int) engine.Request {
	return engine.Request{Key: key, Offer: always, Nodes: nodes}
}

func ids(list []engine.Instance) (names []string) {
	for _, i := range list {
		names = append(names, i.ID)
	}
	return names
}

// Four machines have different addresses, and the next daemon knows them as one launch.
func TestGang_SurvivesRestart(t *testing.T) {
	t.Parallel()
	c := newCloud(t, testTrace(60))
	list, err := c.Launch(t.Context(), gangOf("g.1", 4))
	if err != nil || len(list) != 4 {
		t.Fatalf("%v, %v", list, err)
	}
	c.kill()
	c.start()
	again, err := c.Launch(t.Context(), gangOf("g.1", 4))
	if err != nil || !slices.Equal(ids(again), ids(list)) {
		t.Errorf("rented were %v; the next daemon says %v, %v", ids(list), ids(again), err)
	}
	text, err := os.ReadFile(filepath.Join(c.dir, journalName))
	must.Do(t, err)
	hosts := map[string]bool{}
	for _, m := range read(text).machines {
		hosts[m.Host] = true
		if n := len(procs.Members(m.ID, 0, "")); n != 1 {
			t.Errorf("%s has %d processes", m.ID, n)
		}
	}
	if len(hosts) != 4 {
		t.Errorf("4 machines have the addresses %v", hosts)
	}
	must.Do(t, c.Terminate(t.Context(), list[2].ID))
	for n, i := range list {
		got := c.instance(i.ID)
		if ended := n == 2; (got.State == engine.Ended) != ended || (len(got.Bill) == 1) != ended {
			t.Errorf("one was given back: rank %d is %+v", n, got)
		}
	}
}

// A daemon killed at any moment of a launch of several machines leaves all of them or none.
func TestGang_CrashLeavesAllOrNone(t *testing.T) {
	lane.Nightly(t, "kills daemons at random moments")
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			const gangs, nodes, kills = 6, 4, 8
			c := newCloud(t, testTrace(60))
			p := restless(c, seed)
			var users sync.WaitGroup
			ctx, leave := context.WithCancel(t.Context())
			defer users.Wait()
			defer leave()
			rented := make([][]string, gangs)
			for g := range gangs {
				users.Go(func() {
					pause(t, rand.New(rand.NewPCG(seed, uint64(g))), 500)
					list, err := p.Launch(ctx, gangOf(fmt.Sprintf("g.%d", g), nodes))
					if err != nil || len(list) != nodes {
						t.Errorf("%v, %v", list, err)
					}
					rented[g] = ids(list)
				})
			}
			chance := rand.New(rand.NewPCG(seed, 1000))
			for range kills {
				pause(t, chance, 60)
				c.kill()
				c.start()
				all, err := p.List(t.Context())
				if err != nil {
					t.Error(err)
				}
				of := map[string]int{}
				for _, i := range all {
					of[i.Key]++
				}
				for key, n := range of {
					if n != nodes {
						t.Errorf("%s has %d machines of %d", key, n, nodes)
					}
				}
			}
			users.Wait()
			for g, names := range rented {
				if list, err := p.Launch(t.Context(), gangOf(fmt.Sprintf("g.%d", g), nodes)); err != nil || !slices.Equal(ids(list), names) {
					t.Errorf("g.%d rented %v, and then %v, %v", g, names, ids(list), err)
				}
			}
		})
	}
}

// Wherever the write of a launch is torn, the journal contains all of its machines or none.
func TestGang_TornWriteLeavesNone(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	var gang []*machine
	for n := range 4 {
		gang = append(gang, &machine{Wall: at, Instance: engine.Instance{ID: fmt.Sprintf("i-abc123-%d", n+1), Key: "g.1",
			Offer: always, State: engine.Running, Launched: at}})
	}
	opening, err := encode(record{Opened: &opened{Trace: testTrace(1), At: at, Prefix: "abc123"}})
	must.Do(t, err)
	text, err := encode(recordOf(gang))
	must.Do(t, err)
	for cut := range len(text) + 1 {
		s := read(append(bytes.Clone(opening), text[:cut]...))
		want := 0
		if cut == len(text) {
			want = len(gang)
		}
		if len(s.machines) != want || cut > 0 && want == 0 && s.hidden < 1 {
			t.Fatalf("torn at %d of %d bytes: %d machines of %d, %d hidden", cut, len(text), len(s.machines), want, s.hidden)
		}
	}
	voided, err := encode(record{Voids: []string{gang[0].ID, gang[1].ID, gang[2].ID, gang[3].ID}})
	must.Do(t, err)
	for cut := range len(voided) + 1 {
		s := read(append(append(bytes.Clone(opening), text...), voided[:cut]...))
		if n := len(s.machines); n != 0 && n != len(gang) || (n == 0) != (cut == len(voided)) {
			t.Fatalf("taken back up to byte %d of %d: %d machines", cut, len(voided), n)
		}
	}
}

// The disk is full when a gang is recorded, and when its start is recorded.
func TestGang_FullDisk(t *testing.T) {
	t.Parallel()
	dir, full := folder(t), newFullDisk(1<<20)
	s := serveHere(t, dir, testTrace(60), func(o *Options) {
		o.disk = func(d disk) disk { f := full; f.disk = d; return f }
	})
	full.set(300, false) // room for one of its machines
	if list, err := s.Launch(t.Context(), gangOf("g.1", 4)); err == nil || engine.Refused(err) || len(list) > 0 {
		t.Fatalf("on a full disk: %v, %v", list, err)
	}
	if list, err := s.List(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("listed are %v, %v", list, err)
	}
	full.set(1<<20, false)
	if list, err := s.Launch(t.Context(), gangOf("g.1", 4)); err != nil || len(list) != 4 {
		t.Errorf("once there is room: %v, %v", list, err)
	}
}

// If one machine of a gang does not start, the daemon ends the others and bills nothing.
func TestGang_IsNotRentedIfOneDoesNotStart(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := serveHere(t, dir, testTrace(60), nil)
	one, err := s.rent("a.1", always)
	must.Do(t, err)
	cut := strings.LastIndexByte(one.ID, '-') + 1
	blocked := filepath.Join(dir, "machines", one.ID[:cut]+"4")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil { // 2 and 3 start, but 4 gets no folder
		t.Fatal(err)
	}
	if list, err := s.Launch(t.Context(), gangOf("g.1", 4)); err == nil || len(list) > 0 {
		t.Fatalf("rented %v, %v", list, err)
	}
	if list, err := s.List(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("listed are %v, %v", ids(list), err)
	}
	for n := 2; n <= 5; n++ {
		if left := procs.Members(fmt.Sprintf("%s%d", one.ID[:cut], n), 0, ""); len(left) > 0 {
			t.Errorf("of machine %d the processes %v are left", n, left)
		}
	}
	list, err := s.Launch(t.Context(), gangOf("g.1", 4))
	if err != nil || len(list) != 4 {
		t.Errorf("asked again: %v, %v", ids(list), err)
	}
	s.stop()
	s = serveHere(t, dir, testTrace(60), nil)
	if again, err := s.Launch(t.Context(), gangOf("g.1", 4)); err != nil || !slices.Equal(ids(again), ids(list)) {
		t.Errorf("rented were %v; the next daemon says %v, %v", ids(list), ids(again), err)
	}
}

// A daemon that is stopped while it takes over machines ends. It does not wait for a service that it has just started.
func TestServe_EndsWhileItTakesOverMachines(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := serveHere(t, dir, testTrace(60), nil)
	if _, err := s.Launch(t.Context(), gangOf("g.1", 4)); err != nil {
		t.Fatal(err)
	}
	for range 40 {
		s.stop()
		s = serveHere(t, dir, testTrace(60), nil)
	}
}

// A launch has at most maxLaunch machines. The end of one ends no other.
func TestGang_LivesThoughOneDies(t *testing.T) {
	t.Parallel()
	c := newCloud(t, testTrace(60))
	if _, err := c.Launch(t.Context(), gangOf("g.1", maxLaunch+1)); !errors.Is(err, engine.ErrRequest) {
		t.Errorf("%d machines: %v, want ErrRequest", maxLaunch+1, err)
	}
	list, err := c.Launch(t.Context(), gangOf("g.2", 2))
	must.Do(t, err)
	pid, _ := procs.First(list[1].ID)
	must.Do(t, syscall.Kill(pid, syscall.SIGKILL))
	c.until("the end of the one that died", func() bool { return c.instance(list[1].ID).State == engine.Ended })
	if got := c.instance(list[0].ID); got.State != engine.Running {
		t.Errorf("the other one is %+v", got)
	}
}
