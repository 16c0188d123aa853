package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/plan/assign"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

// hall is a machine with on-demand and the given number of reserved machines. Only the test runs the rounds that it
// requests.
type hall struct {
	t      *testing.T
	m      *core.Machine
	now    time.Time
	seen   core.MarketSeen
	rounds []core.RunRound
	drains []string
	boot   time.Duration // time to boot a machine
	n      int
	log    *replayed // nil without a follower
}

const (
	paidFor = market.OfferID("paid")
	rented  = market.OfferID("on-demand")
)

func newHall(t *testing.T, count int) *hall {
	t.Helper()
	return followedHall(t, count, nil)
}

// followedHall returns a hall whose log is followed from the start.
func followedHall(t *testing.T, count int, log *replayed) *hall {
	t.Helper()
	h := &hall{t: t, m: core.New(), now: start, log: log}
	for _, o := range []market.Offer{
		{ID: rented, Capacity: market.OnDemand},
		{ID: paidFor, Capacity: market.Reserved, Reserved: market.Reservation{
			Count: count, From: start, Until: start.Add(100 * time.Hour), Paid: money.Picos(2e14)}},
	} {
		o.Provider, o.Region, o.Zone, o.Machine, o.CPUs, o.Speed, o.Currency = "p", "r", "z", "m", 4, 1, money.USD
		h.seen.Offers = append(h.seen.Offers, o)
		h.seen.Quotes = append(h.seen.Quotes, market.Quote{Offer: o.ID, Rate: 3e12, Priced: true, Available: true, At: start})
	}
	h.tell(h.seen)
	return h
}

// tell steps and executes the actions except rounds and drains.
func (h *hall) tell(b core.Body) core.Outcome {
	h.t.Helper()
	e := core.Event{At: h.now, Schema: core.Schema, Tenant: "default", Body: b}
	out := h.m.Step(e)
	if h.log != nil {
		h.log.follow(h.m, e, out)
	}
	for _, a := range out.Actions {
		switch a := a.(type) {
		case core.RunRound:
			h.rounds = append(h.rounds, a)
		case core.Drain:
			h.drains = append(h.drains, a.Attempt)
		case core.Launch:
			h.n++
			h.tell(core.LaunchDone{Launch: a.Allocation, Instance: fmt.Sprint("i-", h.n), Offer: a.Offer, Rate: 3e12, From: h.now})
			h.now = h.now.Add(h.boot)
			h.tell(core.AttemptStarted{Attempt: a.Allocation, Message: 1})
		}
	}
	return out
}

// submit submits a job of ten hours with the given time to its deadline; 0: no deadline.
func (h *hall) submit(id string, within time.Duration) {
	t := core.Terms{Currency: money.USD, Priority: 1, Restart: 3 * time.Minute, Grace: time.Minute, Saves: true, Promise: 0.99,
		Need: plan.Need{Requirements: plan.Requirements{CPUs: 1}}, Work: 10 * time.Hour, Steps: 600}
	if within > 0 {
		t.Deadline = h.now.Add(within)
	}
	h.tell(core.JobSubmitted{Job: id, Terms: t})
}

// propose runs the requested round at the present time.
func (h *hall) propose() core.RoundProposed {
	h.t.Helper()
	if len(h.rounds) == 0 {
		h.t.Fatal("no round is asked for")
	}
	h.rounds = nil
	p := assign.Plan(h.m.RoundInputs())
	return core.RoundProposed{Base: p.Base, Groups: p.Groups, Again: p.Again}
}

// later advances time tick by tick.
func (h *hall) later(d time.Duration) {
	for end := h.now.Add(d); h.now.Before(end); {
		h.now = h.now.Add(time.Second)
		h.tell(core.Tick{})
	}
}

// on returns the offer of the machine that the job has or requests.
func (h *hall) on(id string) market.OfferID {
	j, ok := h.m.Job(id)
	if !ok {
		h.t.Fatalf("no job %s", id)
	}
	if a := j.Live(); a != nil {
		return a.Offer()
	}
	if a := j.Asked(); a != nil {
		return a.Offer()
	}
	return ""
}

func TestRound_IsRequestedInTheSameStep(t *testing.T) {
	h := newHall(t, 1)
	h.submit("a", 0)
	if len(h.rounds) != 1 || h.on("a") != "" {
		t.Fatalf("%d rounds are asked for, and the job is on %q", len(h.rounds), h.on("a"))
	}
	if h.tell(h.propose()); h.on("a") != paidFor {
		t.Errorf("the job is on %q", h.on("a"))
	}
}

// A round has started with a job's bid, and the market is seen again before the round ends. The job waits for the
// round and does not rent what it may get for free.
func TestRound_JobWaitsForARunningRound(t *testing.T) {
	h := newHall(t, 1)
	h.submit("a", 0)
	proposed := h.propose()
	if h.tell(h.seen); h.on("a") != "" {
		t.Errorf("it did not wait: it is on %q", h.on("a"))
	}
	if h.tell(proposed); h.on("a") != paidFor {
		t.Errorf("it is on %q", h.on("a"))
	}
}

// A job waits for a round for two periods at most.
func TestRound_JobDecidesAloneAfterTwoPeriods(t *testing.T) {
	h := newHall(t, 1)
	h.submit("a", 0)
	h.later(29 * time.Second)
	if h.on("a") != "" {
		t.Fatalf("it did not wait: it is on %q", h.on("a"))
	}
	if h.later(3 * time.Second); h.on("a") != rented {
		t.Errorf("it is on %q", h.on("a"))
	}
	h.rounds = nil
	if h.later(5 * time.Minute); len(h.rounds) == 0 {
		t.Error("a round that was lost is not asked for again")
	}
}

// After a restart no round is known, and the core requests one.
func TestRound_IsRequestedAfterARestart(t *testing.T) {
	h := newHall(t, 1)
	h.submit("a", 0)
	h.m, h.rounds = core.On(h.m.State(), plan.NewPlanner()), nil
	h.now = h.now.Add(time.Second)
	if h.tell(core.Tick{}); len(h.rounds) != 1 {
		t.Errorf("%d rounds are asked for", len(h.rounds))
	}
}

// A change since the start of a round makes a group stale; the core drops the whole group.
func TestRound_DropsAStaleGroup(t *testing.T) {
	for what, change := range map[string]func(*hall){
		"the job is over":              func(h *hall) { h.tell(core.JobEnded{Job: "a"}) },
		"the job is paused":            func(h *hall) { h.tell(core.JobPaused{Job: "a"}) },
		"the job has rented elsewhere": func(h *hall) { h.later(40 * time.Second) },
		"the price has risen": func(h *hall) {
			q := h.seen.Quotes[1]
			q.Rate, q.At = 4e12, h.now
			h.tell(core.MarketSeen{Quotes: []market.Quote{q}})
		},
		"it cannot be had any more": func(h *hall) {
			q := h.seen.Quotes[1]
			q.Available, q.At = false, h.now
			h.tell(core.MarketSeen{Quotes: []market.Quote{q}})
		},
		"the seat is taken by a guard": func(h *hall) { h.submit("late", 10*time.Hour+4*time.Minute) },
	} {
		t.Run(what, func(t *testing.T) {
			h := newHall(t, 1)
			h.submit("a", 0)
			p := h.propose()
			if len(p.Groups) != 1 {
				t.Fatalf("%+v", p)
			}
			change(h)
			if out := h.tell(p); out.Stale != 1 || out.Moved != 0 || h.on("a") == paidFor {
				t.Errorf("%d stale, %d happened, and the job is on %q", out.Stale, out.Moved, h.on("a"))
			}
		})
	}
}

// If one of the two moves in a group is stale, neither happens.
func TestRound_AppliesAGroupAllOrNothing(t *testing.T) {
	h := newHall(t, 2)
	h.submit("a", 0)
	h.submit("b", 0)
	j, _ := h.m.Job("a")
	k, _ := h.m.Job("b")
	move := func(j *core.Job) assign.Move {
		return assign.Move{Job: j.ID(), Epoch: j.Epoch(), Nodes: 1, To: paidFor, Most: 3e12}
	}
	stale := move(k)
	stale.Epoch++
	both := []assign.Move{move(j), stale}
	out := h.tell(core.RoundProposed{Base: h.m.Seq(), Groups: []assign.Group{{Moves: both}}})
	if out.Stale != 1 || slices.ContainsFunc(out.Facts, func(f core.Fact) bool { _, placed := f.(state.JobPlaced); return placed }) {
		t.Fatalf("%d stale, %+v", out.Stale, out.Facts)
	}
	both[1] = move(k)
	if h.tell(core.RoundProposed{Base: h.m.Seq(), Groups: []assign.Group{{Moves: both}}}); h.on("a") != paidFor || h.on("b") != paidFor {
		t.Errorf("they are on %q and %q", h.on("a"), h.on("b"))
	}
	// Two jobs cannot have the same seat, so the group is dropped.
	h = newHall(t, 1)
	h.submit("a", 0)
	h.submit("b", 0)
	out = h.tell(core.RoundProposed{Base: h.m.Seq(), Groups: []assign.Group{{Moves: both}}})
	if out.Stale != 1 || h.on("a") == paidFor || h.on("b") == paidFor {
		t.Errorf("%d stale, and they are on %q and %q", out.Stale, h.on("a"), h.on("b"))
	}
}

// The guard takes a seat on its own and pins the job: no round moves it until it has saved there.
func TestGuard_TakesASeatAndPinsTheJob(t *testing.T) {
	h := newHall(t, 1)
	h.submit("late", 10*time.Hour+4*time.Minute)
	j, _ := h.m.Job("late")
	if h.on("late") != paidFor || !j.Pinned() {
		t.Fatalf("it is on %q, pinned %v", h.on("late"), j.Pinned())
	}
	leave := core.RoundProposed{Base: h.m.Seq(), Groups: []assign.Group{{Moves: []assign.Move{
		{Job: "late", Epoch: j.Epoch(), Nodes: 1, From: paidFor, Rests: time.Hour}}}}}
	if out := h.tell(leave); out.Stale != 1 || len(h.drains) > 0 {
		t.Fatalf("a pinned job is moved: %+v", out.Facts)
	}
	h.later(time.Minute)
	h.tell(core.CheckpointSaved{Attempt: "late.1", Message: 2, Manifest: "m", Step: 1, Captured: h.now})
	if j.Pinned() {
		t.Error("it has saved, and is pinned still")
	}
	if out := h.tell(leave); out.Moved != 1 || len(h.drains) != 1 {
		t.Errorf("it is not moved though it has saved: %d stale", out.Stale)
	}
}

// After a move a job rests: no round moves it again in that time.
func TestRound_LetsAMovedJobRest(t *testing.T) {
	h := newHall(t, 1)
	h.boot = 3 * time.Minute
	h.submit("a", 0)
	h.later(40 * time.Second) // without a round
	if h.on("a") != rented {
		t.Fatalf("it is on %q", h.on("a"))
	}
	h.rounds = append(h.rounds, core.RunRound{})
	p := h.propose()
	if out := h.tell(p); out.Moved != 1 || !slices.Equal(h.drains, []string{"a.1"}) {
		t.Fatalf("%+v: %d moved, %v drained", p, out.Moved, h.drains)
	}
	j, _ := h.m.Job("a")
	if got := j.Rests().Sub(h.now); got < 3*time.Minute {
		t.Errorf("it rests for %v, and a move takes three minutes", got)
	}
	if offer, n := j.Kept(h.now); offer != paidFor || n != 1 {
		t.Errorf("%d seats of %q are kept for it", n, offer)
	}
	h.boot = 0
	h.submit("b", 0) // the only seat is kept
	h.rounds = append(h.rounds, core.RunRound{})
	if p := h.propose(); len(p.Groups) > 0 {
		t.Errorf("%+v", p)
	}
	h.tell(core.AttemptEnded{Attempt: "a.1", Message: 2, Reason: "drained", Saved: true})
	if h.on("a") != paidFor {
		t.Fatalf("it is on %q", h.on("a"))
	}
	back := core.RoundProposed{Base: h.m.Seq(), Groups: []assign.Group{{Moves: []assign.Move{
		{Job: "a", Epoch: j.Epoch(), Nodes: 1, From: paidFor}}}}}
	if out := h.tell(back); out.Stale != 1 {
		t.Error("it is moved, and rests")
	}
	h.later(4 * time.Minute)
	if out := h.tell(back); out.Moved != 1 {
		t.Error("it has rested, and is not moved")
	}
}

// The input of a round is bounded however many jobs wait, and contains the most urgent.
func TestRound_BoundsItsInputs(t *testing.T) {
	h := newHall(t, 1)
	cfg := core.DefaultConfig()
	cfg.MaxRunning = 1000
	h.tell(core.Configured{Config: cfg})
	for n := range 300 {
		h.submit(fmt.Sprint("j", n), time.Duration(400-n)*time.Hour)
	}
	in := h.m.RoundInputs()
	if len(in.Bids) == 0 || len(in.Bids) > 192 {
		t.Fatalf("%d bids", len(in.Bids))
	}
	if !slices.ContainsFunc(in.Bids, func(b assign.Bid) bool { return b.Job == "j299" }) {
		t.Error("the most urgent of those that wait is not among them")
	}
}

// A step accepts any proposed moves, of known and unknown jobs and offers. No offer ever has more tasks than
// machines, and the log reproduces the state.
func TestStep_AcceptsEveryRound(t *testing.T) {
	moved, stale := 0, 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 5))
		count := 1 + rng.IntN(2)
		h := followedHall(t, count, &replayed{state.New()})
		job := func() string { return fmt.Sprint("j", rng.IntN(6)) }
		offer := func() market.OfferID {
			return []market.OfferID{"", "", paidFor, paidFor, rented, "nobody"}[rng.IntN(6)]
		}
		for range 150 {
			h.later(time.Duration(rng.IntN(20)) * time.Second)
			attempt := fmt.Sprint(job(), ".", 1+rng.IntN(4))
			switch rng.IntN(9) {
			case 0, 1:
				h.submit(job(), time.Duration(rng.IntN(3))*11*time.Hour)
			case 2:
				h.tell([]core.Body{core.JobPaused{Job: job()}, core.JobPaused{Job: job(), Cause: "a step failed"}, core.JobResumed{Job: job()},
					core.JobEnded{Job: job()}}[rng.IntN(4)])
			case 3:
				h.tell(core.AttemptEnded{Attempt: attempt, Message: int64(rng.IntN(9)), Reason: "drained", Saved: true})
			case 4:
				i := fmt.Sprint("i-", 1+rng.IntN(h.n+1))
				h.tell(core.InstanceEnded{Instance: i, Until: h.now, Cause: "terminated"})
			case 5:
				h.rounds = append(h.rounds, core.RunRound{})
				out := h.tell(h.propose())
				moved, stale = moved+out.Moved, stale+out.Stale
			default:
				var g assign.Group
				for range 1 + rng.IntN(3) {
					m := assign.Move{Job: job(), Epoch: rng.IntN(3), Nodes: 1, From: offer(), To: offer(), Most: 3e12}
					if j, ok := h.m.Job(m.Job); ok && rng.IntN(3) > 0 {
						m.Epoch = j.Epoch()
					}
					g.Moves = append(g.Moves, m)
				}
				out := h.tell(core.RoundProposed{Base: h.m.Seq(), Groups: []assign.Group{g}})
				moved, stale = moved+out.Moved, stale+out.Stale
			}
			has := 0
			for a := range h.m.State().Attempts() {
				if a.Offer() == paidFor && a.Live() {
					has++
				}
			}
			if has > count {
				t.Fatalf("seed %d: %d tasks have %d machines", seed, has, count)
			}
		}
		live, err := h.m.State().Hash()
		must.Do(t, err)
		if again, err := h.log.s.Hash(); err != nil || live != again {
			t.Fatalf("seed %d: the log gives another state (%v)", seed, err)
		}
	}
	if t.Logf("%d groups happened, %d were stale", moved, stale); moved < 100 || stale < 100 {
		t.Error("the seeds prove nothing")
	}
}

// replayed is a state that follows a machine by its log alone.
type replayed struct{ s *state.State }

func (r *replayed) follow(m *core.Machine, e core.Event, out core.Outcome) {
	if !out.Nothing {
		r.s.Replay(m.Seq(), e, out.Facts, out.Postings)
	}
}
