//go:build !local

package kube

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"scrimp/internal/engine"
	"scrimp/internal/engine/kube/client"
	"scrimp/internal/engine/kube/mirror"
	"scrimp/internal/engine/kube/pool"
	"scrimp/internal/engine/kube/record"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/wait"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/kubetest"
	"scrimp/internal/test/lane"
)

var (
	seeds = flag.Int("seeds", lane.Pick(3, 48), "engines whose connection is hurt, each by its seed")
	first = flag.Int("first", 0, "the first of them")
	width = flag.Int("width", 12, "how many are hurt at once")
)

// hurt is an engine with two servers, and what they reported.
type hurt struct {
	*site
	*faulty
	ran  *ran
	seed int
	name string
	asks map[string]int // machines by key
	d    [2]*Driver

	mu     sync.Mutex
	wrong  []string
	told   map[string]map[string]engine.Instance // last report by key and machine
	closed map[string]bool                       // keys that are not requested again
	reused map[string]int                        // refusals by key
	unseen int                                   // pods of cancelled requests that ran before anybody was told
}

func (h *hurt) bad(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wrong = append(h.wrong, fmt.Sprintf("seed %d: ", h.seed)+fmt.Sprintf(format, args...))
}

// server replaces the n-th server by a new one.
func (h *hurt) server(n int) {
	if h.d[n] != nil {
		h.d[n].close()
	}
	w := h.with()
	s := engine.Setting{With: engine.WithOf(w)}
	w, err := pool.Read(&s)
	if err != nil {
		h.bad("%v", err)
		return
	}
	d := newDriver(h.name, w)
	d.server, d.wrap, d.start = "http://127.0.0.1:9", h.wrap, 400*time.Millisecond
	h.d[n] = d
}

func (h *hurt) key(n int) string { return fmt.Sprintf("%s.%d", h.name, n) }

// acts does one random thing with the n-th server.
func (h *hurt) acts(ctx context.Context, n int, rng *rand.Rand) {
	key := h.key(rng.IntN(len(h.asks)))
	h.mu.Lock()
	closed, told := h.closed[key], slices.Sorted(maps.Keys(h.told[key]))
	h.mu.Unlock()
	switch a := rng.IntN(16); {
	case a < 7 && !closed:
		h.launches(ctx, n, key)
	case a == 7:
		h.cancels(ctx, n, key)
	case a == 8 && len(told) > 0:
		_ = h.d[n].Terminate(ctx, told[rng.IntN(len(told))])
	case a == 9:
		h.server(n)
	case a == 10:
		if up := h.ran.running(record.NameOf(key)); len(up) > 0 {
			_ = evict(ctx, h.admin, up[rng.IntN(len(up))])
		}
	case a < 14:
		h.lists(ctx, n)
	default:
		_ = wait.For(ctx, time.Duration(rng.IntN(300))*time.Millisecond)
	}
}

func (h *hurt) cancels(ctx context.Context, n int, key string) {
	h.mu.Lock()
	h.closed[key] = true
	h.mu.Unlock()
	err := h.d[n].Cancel(ctx, key)
	if err != nil {
		h.mu.Lock()
		h.closed[key] = false // it is requested again, or continues
		h.mu.Unlock()
	}
}

func (h *hurt) launches(ctx context.Context, n int, key string) error {
	offer := engineOffer(strings.Replace(std, "k8s", h.name, 1))
	if h.asks[key] == 4 {
		offer = engineOffer(strings.Replace(later, "k8s", h.name, 1))
	}
	before := len(h.ran.of(record.NameOf(key)))
	list, err := h.d[n].Launch(ctx, engine.Request{Key: key, Nodes: h.asks[key], Offer: offer,
		Tags: map[string]string{"scrimp-job": "job"},
		Env:  map[string]string{"SCRIMP_TOKEN": "t", "SCRIMP_SERVER": "http://server"}})
	if engine.Refused(err) && !errors.Is(err, engine.ErrNotFound) {
		h.mu.Lock()
		h.reused[key]++
		h.mu.Unlock()
		if before > 0 && len(list) == 0 { // the started part of a gang is reported with the refusal of the rest
			h.bad("%s was refused when it had run: %v", key, err)
		}
	}
	for _, i := range list {
		h.hears(key, i)
	}
	return err
}

// hears compares a report about a machine with earlier ones.
func (h *hurt) hears(key string, i engine.Instance) {
	h.mu.Lock()
	was, ok := h.told[key][i.ID]
	if h.told[key] == nil {
		h.told[key] = map[string]engine.Instance{}
	}
	if !ok || was.State != engine.Ended {
		h.told[key][i.ID] = i
	}
	count := len(h.told[key])
	h.mu.Unlock()
	switch {
	case i.Key != key:
		h.bad("%s is of %s and of %s", i.ID, i.Key, key)
	case ok && !was.Launched.Equal(i.Launched):
		h.bad("%s was launched at %v and at %v", i.ID, was.Launched, i.Launched)
	case ok && was.State == engine.Ended && i.State == engine.Ended && (!was.Ended.Equal(i.Ended) || was.Cause != i.Cause):
		h.bad("%s ended %s at %v and %s at %v", i.ID, was.Cause, was.Ended, i.Cause, i.Ended)
	case count > h.asks[key]:
		h.bad("%s has %d machines, and asked for %d", key, count, h.asks[key])
	case i.State == engine.Ended && (len(i.Bill) != 1 || i.Bill[0].Amount != i.Rate.Until(i.Ended.Sub(i.Launched)) ||
		!i.Bill[0].From.Equal(i.Launched) || !i.Bill[0].To.Equal(i.Ended)):
		h.bad("%s costs %+v", i.ID, i)
	}
}

func (h *hurt) lists(ctx context.Context, n int) []engine.Instance {
	h.mu.Lock()
	before := map[string][]string{}
	for key, list := range h.told {
		before[key] = slices.Sorted(maps.Keys(list))
	}
	h.mu.Unlock()
	began := time.Now()
	list, err := h.d[n].List(ctx)
	if err != nil {
		return nil
	}
	seen := map[string]bool{}
	for _, i := range list {
		if seen[i.ID] {
			h.bad("%s is listed twice", i.ID)
		}
		seen[i.ID] = true
		if !strings.HasPrefix(i.Key, h.name+".") {
			h.bad("%s of another engine is listed", i.ID)
		}
		h.hears(i.Key, i)
	}
	if !h.faultsNow() { // both servers started after the report
		for key, ids := range before {
			for _, id := range ids {
				if !seen[id] {
					h.bad("%s of %s is not listed at %v", id, key, began)
				}
			}
		}
	}
	return list
}

// settles ends the faults, terminates everything, and compares what ran with what is billed.
func (h *hurt) settles(ctx context.Context) {
	h.faulty.mu.Lock()
	h.hurts = 0
	h.faulty.mu.Unlock()
	h.server(0)
	h.server(1)
	for n := range 2 {
		h.lists(ctx, n)
	}
	for n := range len(h.asks) {
		key := h.key(n)
		for ctx.Err() == nil && !h.closed[key] && h.asks[key] != 4 {
			if err := h.launches(ctx, n%2, key); err == nil || engine.Refused(err) {
				break
			} else if !errors.Is(err, engine.ErrPending) && !strings.Contains(err.Error(), "tries again") {
				h.bad("%s without faults: %v", key, err)
			}
		}
		if err := h.d[1].Cancel(ctx, key); err != nil && !errors.Is(err, engine.ErrNotFound) {
			h.bad("cancel without faults: %v", err)
		}
	}
	h.server(0) // it knows what the other server has launched
	for _, i := range h.lists(ctx, 0) {
		if err := h.d[0].Terminate(ctx, i.ID); err != nil && !errors.Is(err, engine.ErrNotFound) {
			h.bad("terminate without faults: %v", err)
		}
	}
	h.server(1)
	left := ""
	for {
		ended, list := true, h.lists(ctx, 1)
		for _, i := range list {
			ended = ended && i.State == engine.Ended
		}
		now, err := h.left(ctx)
		if err == nil {
			left = now
		}
		if ended && err == nil && left == "" {
			break
		}
		if wait.For(ctx, 300*time.Millisecond) != nil {
			h.bad("all was given back, and there is %s; listed are %+v", left, list)
			break
		}
	}
	h.d[0].close()
	h.d[1].close()
}

// books compares the records with the pods that ran.
func (h *hurt) books(ctx context.Context) {
	var maps corev1.ConfigMapList
	if err := h.admin.List(ctx, "configmaps", &metav1.ListOptions{LabelSelector: client.LabelEngine + "=" + h.name},
		&maps); err != nil {
		h.bad("%v", err)
	}
	records := map[string]*record.Record{}
	for n := range maps.Items {
		r, err := record.Of(&maps.Items[n])
		if err != nil {
			h.bad("%v", err)
			continue
		}
		records[r.Key] = r
	}
	for key, machines := range h.asks {
		ids, r := h.ran.of(record.NameOf(key)), records[key]
		if len(ids) > machines {
			h.bad("%s ran %d machines, and asked for %d", key, len(ids), machines)
		}
		for index, uids := range ids {
			if len(uids) > 1 {
				h.bad("machine %d of %s ran %d times", index, key, len(uids))
			}
			switch {
			case r != nil && r.Grant(index) != nil && uids[r.Grant(index).Pod]:
			case r != nil && r.Cancelled: // it was created and removed with its Job while no watch was answered
				h.unseen++
			default:
				h.bad("machine %d of %s ran and is not billed: %+v", index, key, r)
			}
		}
		if r == nil {
			continue
		}
		var sum, want money.Amount
		for n := range r.Granted {
			g := &r.Granted[n]
			if !ids[g.Index][g.Pod] {
				h.bad("machine %d of %s is billed and did not run", g.Index, key)
			}
			if g.End.IsZero() {
				h.bad("machine %d of %s has not ended", g.Index, key)
				continue
			}
			sum, want = sum.Add(r.Bill(g.From, g.End)[0].Amount), want.Add(r.Rate.Until(g.End.Sub(g.From)))
		}
		if sum != want {
			h.bad("%s costs %v, want %v", key, sum, want)
		}
	}
}

// TestFaults_WithManySeeds is TestFaults_RentNothingTwiceAndLoseNothing with the nightly lane's number of seeds, on
// an API server whose watches end after 5 to 10 s.
func TestFaults_WithManySeeds(t *testing.T) {
	lane.Nightly(t, "a minute for each 12 of 48 seeds")
	survivesFaults(t, kubetest.Start(t, "WATCH=5"))
}

// Requests and answers are lost, refused and delayed; watches are cut; pods are evicted; and servers die, with two at
// a time. Still no key runs twice, no machine is lost or billed wrongly, and nothing stays when everything is
// terminated.
func TestFaults_RentNothingTwiceAndLoseNothing(t *testing.T) {
	t.Parallel()
	survivesFaults(t, kubetest.Shared(t))
}

func survivesFaults(t *testing.T, c *kubetest.Cluster) {
	t.Helper()
	quiet.Do(func() { klog.SetSlogLogger(slog.New(slog.DiscardHandler)) })
	s := newSite(t, c)
	s.nodes("std", "64", 4)
	seen := &ran{pods: map[string]map[int]map[types.UID]bool{}, up: map[types.UID]string{}}
	watching, stop := context.WithCancel(context.Background())
	defer stop()
	go mirror.Follower(s.admin, client.LabelManaged+"=scrimp", seen).RunWithContext(watching)
	var (
		wg     sync.WaitGroup
		slots  = make(chan struct{}, *width)
		mu     sync.Mutex
		faults int
		unseen int
		wrong  []string
	)
	for seed := *first; seed < *first+*seeds; seed++ {
		slots <- struct{}{}
		mu.Lock()
		over := len(wrong) > 20
		mu.Unlock()
		if over {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			h := &hurt{site: s, ran: seen, seed: seed, name: fmt.Sprintf("f%d", seed),
				faulty: &faulty{rng: rand.New(rand.NewPCG(uint64(seed), 17)), hurts: 0.2}, asks: map[string]int{},
				told: map[string]map[string]engine.Instance{}, closed: map[string]bool{}, reused: map[string]int{}}
			h.run(t.Context())
			mu.Lock()
			defer mu.Unlock()
			faults += h.faults
			unseen += h.unseen
			wrong = append(wrong, h.wrong...)
		})
	}
	wg.Wait()
	for _, w := range wrong {
		t.Error(w)
	}
	if t.Failed() {
		t.Fatalf("go test ./internal/engine/kube -run %s -first SEED -seeds 1 repeats one", t.Name())
	}
	t.Logf("%d faults; %d pods of requests that were given up ran for a moment, unseen", faults, unseen)
}

// run injects faults into one engine for a while and checks that nothing is harmed.
func (h *hurt) run(ctx context.Context) {
	for n, machines := range []int{1, 1, 2, 3, 4} { // the last one waits for nodes that never come
		h.asks[h.key(n)] = machines
	}
	var wg sync.WaitGroup
	for n := range h.d {
		h.server(n)
		rng := rand.New(rand.NewPCG(uint64(h.seed), uint64(n)))
		wg.Go(func() {
			for range 25 {
				within, cancel := context.WithTimeout(ctx, time.Duration(500+rng.IntN(5000))*time.Millisecond)
				h.acts(within, n, rng)
				cancel()
			}
		})
	}
	wg.Wait()
	within, cancel := context.WithTimeout(ctx, 2*eventually.Limit) // ends a hang
	defer cancel()
	h.settles(within)
	h.books(ctx)
}
