package ssh

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/ssh/link"
	"scrimp/internal/engine/ssh/setting"
	"scrimp/internal/lib/durable"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/wait"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

var seeds = flag.Int("seeds", lane.Pick(20, 450), "labs that hurt the driver, each by its seed")

const paperOffer = "lab/own/cpu4-8g/reserved"

// hurt is a driver of simulated machines, with a record of its answers.
type hurt struct {
	*testing.T
	*world
	d        *Driver
	dir      string
	seed     int
	machines []*paper
	told     map[string][]string // machines by key, as answered
	closed   map[string]bool     // keys that are not requested any more
	givenUp  map[string]bool     // closed keys for which nothing was granted
	ended    map[string]engine.Instance
}

func newHurt(t *testing.T, seed int, dir string) *hurt {
	h := &hurt{T: t, dir: dir, seed: seed, told: map[string][]string{}, closed: map[string]bool{}, givenUp: map[string]bool{},
		ended: map[string]engine.Instance{}, world: &world{rng: rand.New(rand.NewPCG(uint64(seed), 22)), dies: -1}}
	h.wrong = func(format string, args ...any) { t.Errorf("seed %d: "+format, append([]any{seed}, args...)...) }
	for n := range 3 {
		h.machines = append(h.machines, newPaper(h.world, fmt.Sprintf("m%d", n+1), dir))
	}
	h.opens()
	return h
}

// opens starts a server after the previous one died.
func (h *hurt) opens() {
	if h.d != nil {
		h.mu.Lock()
		h.dies = -1
		h.server++
		h.mu.Unlock()
		_ = h.d.Close(context.Background())
	}
	rate, marginal := money.Rate(360_000_000_000), money.Rate(0)
	d, err := newDriver("lab", h.dir, &setting.With{Currency: money.USD, Rate: rate}, usual.Detect, nil)
	must.Do(h, err)
	h.mu.Lock()
	server := h.server
	h.end = d.stop
	h.mu.Unlock()
	d.journal.replace = func(path string, text []byte) error {
		if !h.step(server) {
			return errDead
		}
		return durable.Replace(path, text)
	}
	for _, p := range h.machines {
		d.add(&setting.Machine{SSH: p.name, Name: p.name, Rate: &rate, Marginal: &marginal}, paperWay{p, server})
	}
	h.d = d
}

// acts does one thing at random.
func (h *hurt) acts(ctx context.Context) {
	key := fmt.Sprintf("k.%d", h.pick(8))
	switch n := h.pick(16); {
	case n < 4 && !h.closed[key]:
		h.launches(ctx, key)
	case n == 4 && len(h.told[key]) == 0:
		err := h.d.Cancel(ctx, key) // after a failure it is retried later, or the launch continues
		h.closed[key], h.givenUp[key] = err == nil || errors.Is(err, engine.ErrNotFound), err == nil
	case n < 7 && len(h.told[key]) > 0:
		_ = h.d.Terminate(ctx, h.told[key][h.pick(len(h.told[key]))])
	case n < 12:
		h.hurts(h.machines[h.pick(len(h.machines))])
	case n == 12:
		h.lists(ctx)
	default:
		_ = wait.For(ctx, h.upTo(10*time.Second))
	}
	h.mu.Lock()
	dead := h.server != h.d.links[0].Way.(paperWay).of
	h.mu.Unlock()
	if dead {
		h.opens()
	}
}

func (h *hurt) pick(n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rng.IntN(n)
}

// hurts injects one fault into machines or servers.
func (h *hurt) hurts(p *paper) {
	h.mu.Lock()
	h.faults++
	h.mu.Unlock()
	switch h.pick(7) {
	case 0, 1:
		if !p.isCut() {
			p.cut()
			time.AfterFunc(h.upTo(90*time.Second), p.restore)
		}
	case 2:
		p.fails()
	case 3:
		p.hostdsDie()
	case 4: // die in the middle of an operation
		p.mu.Lock()
		p.doomed = h.pick(4)
		p.mu.Unlock()
	case 5:
		p.ends()
	case 6:
		next := h.pick(6)
		h.mu.Lock()
		h.dies = next
		h.mu.Unlock()
	}
}

// launches requests a key, sometimes twice at the same time.
func (h *hurt) launches(ctx context.Context, key string) {
	var asked sync.WaitGroup
	var got [2][]engine.Instance
	var errs [2]error
	for n := range 1 + h.pick(2) {
		asked.Go(func() {
			got[n], errs[n] = h.d.Launch(ctx, engine.Request{Key: key, Nodes: h.nodes(key), Offer: paperOffer,
				Env: map[string]string{"KEY": key}})
		})
	}
	asked.Wait()
	for n, list := range got {
		if errs[n] != nil || list == nil {
			continue
		}
		var ids []string
		for _, i := range list {
			ids = append(ids, i.ID)
			if i.Key != key {
				h.Errorf("seed %d: asked for %s, and it answers %s", h.seed, key, i.Key)
			}
		}
		if was := h.told[key]; was != nil && !slices.Equal(was, ids) || len(ids) != h.nodes(key) {
			h.Errorf("seed %d: key %s was %v and is %v", h.seed, key, was, ids)
		}
		h.told[key] = ids
	}
}

// nodes returns the number of machines requested for a key.
func (h *hurt) nodes(key string) int {
	if key == "k.6" || key == "k.7" {
		return 2
	}
	return 1
}

// lists compares List with earlier answers. A lost machine may be missing until it responds again.
func (h *hurt) lists(ctx context.Context) []engine.Instance {
	list, err := h.d.List(ctx)
	if err != nil {
		return nil
	}
	shown := map[string]engine.Instance{}
	for _, i := range list {
		if shown[i.ID].ID != "" {
			h.Errorf("seed %d: %s is listed twice", h.seed, i.ID)
		}
		shown[i.ID] = i
		h.bill(&i)
	}
	for key, ids := range h.told {
		for _, id := range ids {
			if _, there := shown[id]; !there && !h.quiet(id) {
				h.Errorf("seed %d: %s was rented for %s, and is not listed", h.seed, id, key)
			}
		}
	}
	return list
}

// quiet reports whether the machine of an instance may be missing.
func (h *hurt) quiet(id string) bool {
	h.d.mu.Lock()
	defer h.d.mu.Unlock()
	for _, l := range h.d.links {
		if h.d.made(l, &engine.Instance{ID: id}) {
			return h.d.quiet(l) >= h.d.lost
		}
	}
	return false
}

// bill checks an ended instance's bill against its span, and against earlier answers.
func (h *hurt) bill(i *engine.Instance) {
	if i.State != engine.Ended {
		if h.ended[i.ID].ID != "" {
			h.Errorf("seed %d: %s had ended, and is %s", h.seed, i.ID, i.State)
		}
		return
	}
	var sum money.Amount
	for _, l := range i.Bill {
		sum = sum.Add(l.Amount)
	}
	if want := i.Rate.Until(i.Ended.Sub(i.Launched)); sum != want || i.Ended.Before(i.Launched) {
		h.Errorf("seed %d: %s ran %v at %v and is billed %v, want %v", h.seed, i.ID, i.Ended.Sub(i.Launched), i.Rate, sum, want)
	}
	if was, known := h.ended[i.ID]; known && (!was.Ended.Equal(i.Ended) || was.Cause != i.Cause) {
		h.Errorf("seed %d: %s had ended %v (%s), and now %v (%s)", h.seed, i.ID, was.Ended, was.Cause, i.Ended, i.Cause)
	}
	h.ended[i.ID] = *i
}

// settles ends all faults, compares what exists with what the driver reports, and then terminates everything.
func (h *hurt) settles(ctx context.Context) {
	h.mu.Lock()
	h.calm, h.dies = true, -1
	h.mu.Unlock()
	for _, p := range h.machines {
		p.mu.Lock()
		p.doomed = -1
		p.mu.Unlock()
	}
	h.opens()
	_ = wait.For(ctx, 2*time.Minute) // cables are back, and running requests arrive
	h.lists(ctx)
	_ = wait.For(ctx, 2*link.AskTime)
	running := map[string]engine.Instance{}
	for _, i := range h.lists(ctx) {
		if i.State == engine.Running {
			running[i.ID] = i
		}
	}
	seated := map[string]int{}
	for _, p := range h.machines {
		for id, r := range p.runs {
			if !r.end.IsZero() {
				delete(running, id)
			}
		}
	}
	h.holds(running, seated)
	for n := range 8 {
		if err := h.d.Cancel(ctx, fmt.Sprintf("k.%d", n)); err != nil && !errors.Is(err, engine.ErrNotFound) {
			h.Errorf("seed %d: cancel: %v", h.seed, err)
		}
	}
	for id := range running {
		if err := h.d.Terminate(ctx, id); err != nil && !errors.Is(err, engine.ErrNotFound) {
			h.Errorf("seed %d: terminate: %v", h.seed, err)
		}
	}
	h.lists(ctx)
	for _, p := range h.machines {
		for id, r := range p.runs {
			if i := h.ended[id]; r.end.IsZero() || i.ID == "" {
				h.Errorf("seed %d: all is given back, and %s of %s is %+v, listed as %+v", h.seed, id, r.key, r, i)
			} else if short := r.end.Sub(r.began) - i.Ended.Sub(i.Launched); short > time.Second {
				h.Errorf("seed %d: %s ran %v and is billed for %v", h.seed, id, r.end.Sub(r.began), i.Ended.Sub(i.Launched))
			}
		}
	}
	_ = h.d.Close(ctx)
	h.machines[0].hostdsDie()
	h.machines[1].hostdsDie()
	h.machines[2].hostdsDie()
}

// holds checks that everything that runs is listed, and that no key has more machines than requested.
func (h *hurt) holds(running map[string]engine.Instance, seated map[string]int) {
	for _, p := range h.machines {
		for id, r := range p.runs {
			if !r.end.IsZero() {
				continue
			}
			if i := running[id]; i.Key != r.key {
				h.Errorf("seed %d: %s runs for %s, and listed is %+v", h.seed, id, r.key, i)
			}
			if told := h.told[r.key]; told != nil && !slices.Contains(told, id) {
				h.Errorf("seed %d: %s runs for %s, which was answered with %v: %+v, seen %+v", h.seed, id, r.key, told, h.d.journal.Keys[r.key], h.d.seen)
			}
			if seated[r.key]++; seated[r.key] > h.nodes(r.key) {
				h.Errorf("seed %d: %s runs %d times", h.seed, r.key, seated[r.key])
			}
			if h.givenUp[r.key] {
				h.Errorf("seed %d: %s was given up, and %s runs", h.seed, r.key, id)
			}
		}
	}
}

// The test injects thousands of faults: cables are out, answers are lost or late, requests arrive twice, machines lose
// power, and server and hostd die between any two of their writes. Still no key rents twice, no machine is lost, every
// bill matches its span, and nothing is left after all instances are terminated.
func TestDriver_RentsOnceUnderFaults(t *testing.T) {
	t.Parallel()
	faults, began := 0, 0
	for seed := range *seeds {
		dir, err := os.MkdirTemp(memory(), "faults")
		must.Do(t, err)
		synctest.Test(t, func(t *testing.T) {
			h := newHurt(t, seed, dir)
			for range 150 {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				h.acts(ctx)
				cancel()
			}
			h.settles(t.Context())
			faults += h.faults
			for _, p := range h.machines {
				began += len(p.runs)
			}
		})
		_ = os.RemoveAll(dir)
		if t.Failed() {
			t.Fatalf("go test ./internal/engine/ssh -run TestFaults -seeds %d repeats it", seed+1)
		}
	}
	t.Logf("%d faults, %d machines began", faults, began)
}

// memory returns a folder without disk latency; empty: the default.
func memory() string {
	if st, err := os.Stat("/dev/shm"); err == nil && st.IsDir() {
		return "/dev/shm"
	}
	return ""
}
