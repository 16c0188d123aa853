package assign

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// drawn has few jobs and pools, so that all assignments can be tried.
func drawn(rng *rand.Rand, classes, gangs int) Inputs {
	s := Inputs{Now: now, Base: 7}
	for n := range 1 + rng.IntN(3) {
		s.Pools = append(s.Pools, Pool{Offer: market.OfferID(fmt.Sprint("pool", n)), Free: rng.IntN(3), Until: now.Add(100 * time.Hour), Most: 5})
	}
	for n := range 1 + rng.IntN(6) {
		b := Bid{
			Job: fmt.Sprint("job", n), Epoch: n, Nodes: 1, Priority: rng.IntN(classes), Order: uint64(n), Known: true,
			Left: time.Duration(1+rng.IntN(20)) * time.Hour, Restart: time.Duration(rng.IntN(90)) * time.Minute,
			Elsewhere: money.Rate(rng.IntN(5)) * 1e12,
		}
		if gangs > 0 && rng.IntN(3) == 0 {
			b.Nodes = 1 + rng.IntN(gangs)
		}
		for _, p := range s.Pools {
			if rng.IntN(3) > 0 {
				b.Wants = append(b.Wants, Want{p.Offer, b.Elsewhere * money.Rate(1+rng.IntN(2))})
			}
		}
		if len(b.Wants) > 0 && rng.IntN(2) == 0 {
			b.On, b.Seated = b.Wants[rng.IntN(len(b.Wants))].Offer, true
		} else if b.Elsewhere > 0 && rng.IntN(2) == 0 {
			b.On = "elsewhere"
		}
		switch rng.IntN(8) {
		case 0:
			b.Pinned = true
		case 1:
			b.Rests = now.Add(time.Duration(rng.IntN(3)-1) * time.Hour)
		case 2:
			b.Fixed = true
		}
		s.Bids = append(s.Bids, b)
	}
	return s
}

// brute returns the best sum of all assignments of the table by trying each.
func brute(t *table) (most worth) {
	first := true
	caps := slices.Clone(t.caps)
	var try func(i int, sum worth)
	try = func(i int, sum worth) {
		if i == len(t.rows) {
			if first || sum.compare(most) > 0 {
				first, most = false, sum
			}
			return
		}
		for c, can := range t.can[i] {
			if !can || c < t.none() && caps[c] < t.rows[i].Nodes {
				continue
			}
			if c < t.none() {
				caps[c] -= t.rows[i].Nodes
			}
			try(i+1, sum.plus(t.w[i][c]))
			if c < t.none() {
				caps[c] += t.rows[i].Nodes
			}
		}
	}
	try(0, worth{})
	return most
}

func (t *table) sum(at []int) (sum worth) {
	for i, c := range at {
		sum = sum.plus(t.w[i][c])
	}
	return sum
}

// greedy assigns free seats by decreasing worth, as long as each gains something.
func greedy(t *table) worth {
	at, caps := make([]int, len(t.rows)), slices.Clone(t.caps)
	for i, b := range t.rows {
		at[i] = t.col[b]
		if at[i] < t.none() {
			caps[at[i]] -= b.Nodes
		}
	}
	for {
		best, row, col := worth{}, -1, -1
		for i := range t.rows {
			for c := range t.Pools {
				if gain := t.w[i][c].minus(t.w[i][at[i]]); t.can[i][c] && c != at[i] && caps[c] >= t.rows[i].Nodes && gain.compare(best) > 0 {
					best, row, col = gain, i, c
				}
			}
		}
		if row < 0 {
			return t.sum(at)
		}
		if at[row] < t.none() {
			caps[at[row]] += t.rows[row].Nodes
		}
		at[row] = col
		caps[col] -= t.rows[row].Nodes
	}
}

// The assignment of jobs that need one seat each is as good as the best of all assignments, and never worse than a
// greedy one.
func TestSolve_SingleSeatsAreOptimal(t *testing.T) {
	better := 0
	for seed := range uint64(5000) {
		s := drawn(rand.New(rand.NewPCG(seed, 1)), priorities, 0)
		x := newTable(&s, nil)
		got, want := x.sum(x.solve()), brute(x)
		if got != want {
			t.Fatalf("seed %d: worth %v, the best is %v\n%+v", seed, got, want, s)
		}
		switch g := greedy(x); {
		case got.compare(g) < 0:
			t.Fatalf("seed %d: worth %v, one after the other %v", seed, got, g)
		case got.compare(g) > 0:
			better++
		}
	}
	if t.Logf("better than one after the other in %d of 5000", better); better < 50 {
		t.Error("the seeds prove nothing")
	}
}

// Jobs that need several seats of one pool get all of them or none and never exceed the pool, and the total is
// worth no less than without them.
func TestSolve_GangGetsAllSeatsOrNone(t *testing.T) {
	placed := 0
	for seed := range uint64(3000) {
		s := drawn(rand.New(rand.NewPCG(seed, 2)), 1, 3)
		x := newTable(&s, nil)
		at := x.solve()
		used := make([]int, len(x.caps))
		for i, c := range at {
			if c == x.none() {
				continue
			}
			used[c] += x.rows[i].Nodes
			if x.rows[i].Nodes > 1 {
				placed++
			}
		}
		for c := range used {
			if used[c] > x.caps[c] {
				t.Fatalf("seed %d: %d seats of %d are given", seed, used[c], x.caps[c])
			}
		}
		without := make([]int, len(x.rows))
		for i, b := range x.rows {
			without[i] = -1
			if b.Nodes > 1 {
				without[i] = x.none()
			}
		}
		if _, sum := x.assign(x.caps, without); x.sum(at).compare(sum) < 0 {
			t.Fatalf("seed %d: worth %v, %v without those that need several", seed, x.sum(at), sum)
		}
	}
	if placed < 300 {
		t.Errorf("%d were placed: the seeds prove nothing", placed)
	}
}

// A round does not move fixed, pinned or resting jobs and assigns no seat twice. A job leaves its seat only for one
// of no lower priority, and the group saves more than its restarts cost.
func TestPlan_KeepsItsRules(t *testing.T) {
	evicted, moved, began := 0, 0, 0
	for seed := range uint64(5000) {
		s := drawn(rand.New(rand.NewPCG(seed, 3)), priorities, int(seed%3))
		p := Plan(s)
		free := map[market.OfferID]int{}
		for _, x := range s.Pools {
			free[x.Offer] = x.Free
		}
		seen := map[string]bool{}
		for _, g := range p.Groups {
			lowest, evicts := priorities, false
			for _, m := range g.Moves {
				b := bidOf(&s, m.Job)
				switch {
				case seen[m.Job] || m.Epoch != b.Epoch || m.Nodes != b.Nodes || m.From != b.On:
					t.Fatalf("seed %d: %+v of %+v", seed, m, b)
				case b.fixed(now):
					t.Fatalf("seed %d: %s is moved: %+v", seed, m.Job, b)
				case b.On != "" && m.Rests < b.Restart:
					t.Fatalf("seed %d: %s rests for %v after a move that takes %v", seed, m.Job, m.Rests, b.Restart)
				}
				seen[m.Job] = true
				if b.Seated {
					free[b.On] += b.Nodes
				}
				if m.To == "" {
					evicts = true
					evicted++
					continue
				}
				lowest = min(lowest, b.Priority)
				free[m.To] -= b.Nodes
				if b.On == "" {
					began++
				} else {
					moved++
				}
			}
			for _, m := range g.Moves {
				if b := bidOf(&s, m.Job); evicts && m.To == "" && b.Priority > lowest && len(g.Moves) == 2 {
					t.Fatalf("seed %d: %s leaves its seat to a job of lesser priority", seed, m.Job)
				}
			}
		}
		for o, n := range free {
			if n < 0 {
				t.Fatalf("seed %d: %d seats of %s too many are given away\n%+v\n%+v", seed, -n, o, s, p)
			}
		}
	}
	if t.Logf("%d left, %d moved, %d began", evicted, moved, began); evicted < 100 || moved < 500 || began < 500 {
		t.Error("the seeds prove nothing")
	}
}

func bidOf(s *Inputs, job string) *Bid {
	return &s.Bids[slices.IndexFunc(s.Bids, func(b Bid) bool { return b.Job == job })]
}

// bid is a job that runs or waits and wants pool a.
func bid(job string, rate money.Rate, on market.OfferID) Bid {
	return Bid{Job: job, Nodes: 1, Priority: 1, On: on, Seated: on == "a", Elsewhere: rate * 1e12, Known: true, Left: 4 * time.Hour,
		Restart: time.Minute, Wants: []Want{{"a", rate * 1e12}}}
}

func pool(free int) []Pool {
	return []Pool{{Offer: "a", Free: free, Until: now.Add(24 * time.Hour), Most: 2}}
}

// The job that would pay more elsewhere gets the seat, even from another job; both moves are one group.
func TestPlan_SwapIsOneGroup(t *testing.T) {
	p := Plan(Inputs{Now: now, Pools: pool(0), Bids: []Bid{bid("patient", 1, "a"), bid("urgent", 3, "od")}})
	if len(p.Groups) != 1 || len(p.Groups[0].Moves) != 2 {
		t.Fatalf("%+v", p)
	}
	leaves, comes := p.Groups[0].Moves[0], p.Groups[0].Moves[1]
	if leaves.Job != "patient" || leaves.To != "" || comes.Job != "urgent" || comes.To != "a" || comes.Most != 2 {
		t.Errorf("%+v", p)
	}
	// A minute at 1 and one at 3 are paid back at 2 per hour after two minutes.
	if comes.Rests.Round(time.Second) != 2*time.Minute || leaves.Rests != comes.Rests {
		t.Errorf("they rest for %v and %v", leaves.Rests, comes.Rests)
	}
}

// A swap that does not pay is not proposed: the other job would have to stay for longer than it needs.
func TestPlan_OmitsSwapThatDoesNotPay(t *testing.T) {
	short := bid("urgent", 3, "od")
	short.Left = 90 * time.Second
	if p := Plan(Inputs{Now: now, Pools: pool(0), Bids: []Bid{bid("patient", 1, "a"), short}}); len(p.Groups) > 0 {
		t.Errorf("%+v", p)
	}
	unknown := bid("urgent", 3, "od")
	unknown.Known = false
	if p := Plan(Inputs{Now: now, Pools: pool(0), Bids: []Bid{bid("patient", 1, "a"), unknown}}); len(p.Groups) > 0 {
		t.Errorf("nobody knows what it needs: %+v", p)
	}
	critical := bid("urgent", 1, "od") // higher priority, and no dearer elsewhere
	critical.Priority = 2
	if p := Plan(Inputs{Now: now, Pools: pool(0), Bids: []Bid{bid("patient", 1, "a"), critical}}); len(p.Groups) > 0 {
		t.Errorf("nothing is saved: %+v", p)
	}
}

// Free seats go by priority, then claim, then deadline, then order.
func TestPlan_OrdersBids(t *testing.T) {
	late, soon := bid("late", 2, ""), bid("soon", 2, "")
	late.Order, soon.Order, soon.Deadline = 1, 2, now.Add(time.Hour)
	dear, low := bid("dear", 3, "od"), bid("low", 9, "od")
	low.Priority = 0
	bids := []Bid{low, late, soon, dear}
	runs := bid("runs", 2, "od") // what it pays counts, not that it has to move
	runs.Order, runs.Deadline = 3, now.Add(time.Minute*30)
	if p := Plan(Inputs{Now: now, Pools: pool(1), Bids: []Bid{late, soon, runs}}); p.Groups[0].Moves[0].Job != "runs" {
		t.Errorf("%+v", p)
	}
	for free, want := range [][]string{{}, {"dear"}, {"dear", "soon"}, {"dear", "late", "soon"}, {"dear", "late", "low", "soon"}} {
		var got []string
		for _, g := range Plan(Inputs{Now: now, Pools: pool(free), Bids: bids}).Groups {
			got = append(got, g.Moves[0].Job)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("of %d seats %v are given, want %v", free, got, want)
		}
	}
}

// A round with many moves proposes what one step can take, and requests the next round at once. A round that skips
// resting jobs says when their rest ends.
func TestPlan_AgainIsWhenNextRoundIsDue(t *testing.T) {
	var bids []Bid
	for n := range 30 {
		bids = append(bids, bid(fmt.Sprint(n), 1, ""))
	}
	p := Plan(Inputs{Now: now, Pools: pool(30), Bids: bids})
	if len(p.Groups) != mostMoves || !p.Again.Equal(now) {
		t.Errorf("%d groups, again at %v", len(p.Groups), p.Again)
	}
	rests := bid("rests", 3, "od")
	rests.Rests = now.Add(time.Hour)
	if p := Plan(Inputs{Now: now, Pools: pool(1), Bids: []Bid{rests}}); len(p.Groups) > 0 || !p.Again.Equal(rests.Rests) {
		t.Errorf("%+v", p)
	}
}

func TestTook_CountsBidsAndSeats(t *testing.T) {
	s := Inputs{Pools: pool(4)}
	for range 20 {
		s.Bids = append(s.Bids, bid("j", 1, ""))
	}
	if d := Took(&s); d != 180*time.Millisecond {
		t.Errorf("it takes %v", d)
	}
}

// BenchmarkRound is the largest round that a server requests: 192 jobs, 32 pools.
func BenchmarkRound(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	s := Inputs{Now: now}
	for n := range 32 {
		s.Pools = append(s.Pools, Pool{Offer: market.OfferID(fmt.Sprint("pool", n)), Free: 2, Until: now.Add(100 * time.Hour)})
	}
	for n := range 192 {
		x := bid(fmt.Sprint(n), money.Rate(1+rng.IntN(9)), "od")
		x.Wants = nil
		for _, p := range s.Pools {
			x.Wants = append(x.Wants, Want{p.Offer, money.Rate(1+rng.IntN(9)) * 1e12})
		}
		s.Bids = append(s.Bids, x)
	}
	if len(Plan(s).Groups) != mostMoves {
		b.Fatal("it does not do the work")
	}
	for b.Loop() {
		Plan(s)
	}
}
