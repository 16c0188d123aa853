package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan/assign"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// paid reports whether some machines of the life are prepaid: every fourth life.
func (w *World) paid() bool { return w.seed%4 == 3 && !w.calm5() }

// drawReserved draws reservations from its own random source: machines of one or two speeds for a part of the life,
// and the duration of their rounds.
func (w *World) drawReserved() {
	if !w.paid() {
		return
	}
	rng := rand.New(rand.NewPCG(w.seed, 0x9e5e))
	minutes := func(least, spread int) time.Duration { return time.Duration(least+rng.IntN(spread)) * time.Minute }
	w.slowRounds = []int{1, 30, 400}[rng.IntN(3)]
	for n := range 1 + rng.IntN(2) {
		o := w.zones[0].firmOffer
		o.Provider, o.Zone, o.Capacity, o.Speed, o.Billing = "sim", fmt.Sprintf("paid%d", n), market.Reserved, float64(1+n), market.Billing{}
		o.ID = market.ID(o)
		z := &zone{name: o.Zone, firm: o.ID, firmOffer: o, onDemandRate: money.Rate(1+rng.Int64N(3)) * 1e12}
		from := w.now.Add(minutes(0, 200))
		r := market.Reservation{Count: 1 + rng.IntN(2), From: from, Until: from.Add(minutes(60, 2400))}
		if w.seed%3 == uint64(n) { // an owned machine whose terms have changed once
			r.Marginal, r.Before = z.onDemandRate/8, money.Picos(int64(w.seed%1000)*1e9)
			w.saw("a marginal rate")
		}
		r.Paid = (z.onDemandRate - r.Marginal).Times(r.Count).Until(r.Until.Sub(r.From))
		z.firmOffer.Reserved, z.offer = r, o
		w.zones = append(w.zones, z)
		w.reserves(z)
	}
}

// roundTwin compares what rounds do with the jobs' states before each step.
type roundTwin struct {
	w      *World
	moves  map[string]stood // by job: of the proposed round
	pinned map[string]int   // by job: the epoch pinned by the guard
}

// stood is a job's state before a round was applied.
type stood struct {
	epoch  int
	on     market.OfferID
	pinned bool
	rests  bool
	over   bool
}

func (r *roundTwin) before(e core.Event) {
	r.moves = nil
	b, ok := e.Body.(core.RoundProposed)
	if !ok {
		return
	}
	r.moves = map[string]stood{}
	for _, g := range b.Groups {
		for _, m := range g.Moves {
			j, known := r.w.known(m.Job)
			if !known {
				continue
			}
			s := stood{epoch: j.Epoch(), rests: j.Rests().After(e.At), over: j.State().Over()}
			if a := j.Live(); a != nil && a.Task() == core.TaskRunning {
				s.on = a.Offer()
				s.pinned = r.pinned[m.Job] == a.Epoch() && !a.LastSave().After(a.Requested())
			}
			r.moves[m.Job] = s
		}
	}
}

func (r *roundTwin) watch(e core.Event, out core.Outcome) {
	if !r.w.paid() {
		return
	}
	placed := map[string]market.OfferID{}
	for _, f := range out.Facts {
		switch f := f.(type) {
		case state.JobPinned:
			r.w.saw("a job is pinned")
			j, _ := r.w.known(f.Job)
			r.pinned[f.Job] = j.Epoch()
		case state.JobPlaced:
			placed[f.Job] = f.Offer
		case state.AllocationRequested:
			r.requested(e, f)
		}
	}
	if b, ok := e.Body.(core.RoundProposed); ok {
		if out.Stale > 0 {
			r.w.saw("a group is stale")
		}
		for n := range b.Groups {
			r.happened(b.Groups[n].Moves, placed)
		}
	}
	r.seats()
}

// happened verifies that a group was applied whole or not at all, and only if its jobs were unchanged since the round
// began, unpinned, and not resting.
func (r *roundTwin) happened(moves []assign.Move, placed map[string]market.OfferID) {
	w, n := r.w, 0
	for _, m := range moves {
		if to, ok := placed[m.Job]; !ok || to != m.To {
			continue
		}
		n++
		s := r.moves[m.Job]
		w.saw("a round moves a job")
		if m.To == "" {
			w.saw("a seat is left for another job")
		}
		switch {
		case s.over || s.epoch != m.Epoch || m.From != "" && s.on != m.From:
			w.breaks("round: %s is moved from %q as of epoch %d, and is on %q with epoch %d", m.Job, m.From, m.Epoch, s.on, s.epoch)
		case m.From != "" && s.pinned:
			w.breaks("pin: a round moves %s from %s, where its guard has pinned it", m.Job, m.From)
		case m.From != "" && s.rests:
			w.breaks("round: %s is moved from %s, and rests", m.Job, m.From)
		}
	}
	if n > 0 && n < len(moves) {
		w.breaks("round: %d of the %d moves of a group happened: %+v", n, len(moves), moves)
	}
}

// requested verifies that no job requests a machine that is kept for another.
func (r *roundTwin) requested(e core.Event, f state.AllocationRequested) {
	o := f.Machine.Offer
	l := r.w.m.State().Listing(o)
	if l == nil || l.Offer().Reserved.Count == 0 || f.Instance != "" { // a part of a used machine takes no further machine
		return
	}
	has, leave := r.count(o)
	kept := 0
	for _, j := range r.w.allJobs() {
		if offer, nodes := j.Kept(e.At); j.ID() != f.Job && offer == o {
			kept += nodes
		}
	}
	if count := l.Offer().Reserved.Count; has+kept-leave > count {
		r.w.breaks("round: %s asks for %s: %d of %d machines are in use, %d of them are being left, and %d are kept for others",
			f.Job, o, has, count, leave, kept)
	}
}

// count returns how many machines of an offer tasks have or request, and how many of them all of their tasks are
// leaving.
func (r *roundTwin) count(o market.OfferID) (has, leave int) {
	stays := map[string]bool{}
	for a := range r.w.m.State().Attempts() {
		if a.Offer() == o && a.Live() {
			leaves := a.Draining() || a.Releasing() || a.Task() == core.Ended
			if n := a.Nodes(); n > 1 { // a gang has its machines to itself
				if has += n; leaves {
					leave += n
				}
				continue
			}
			stays[a.Instance()] = stays[a.Instance()] || !leaves
		}
	}
	for _, stay := range stays {
		has++
		if !stay {
			leave++
		}
	}
	for a := range r.w.m.State().Allocations() {
		if a.Offer() == o {
			has += a.Nodes()
		}
	}
	return has, leave
}

// seats verifies that no offer has more tasks than machines, and that the core's own count agrees.
func (r *roundTwin) seats() {
	for _, z := range r.w.zones {
		if n := z.firmOffer.Reserved.Count; n > 0 {
			has, _ := r.count(z.firm)
			if has > n {
				r.w.breaks("reserved: %d machines are had or asked for of the %d of %s", has, n, z.firm)
			}
			if counted, _ := r.w.m.Frees(&z.firmOffer, r.w.m.State().Now()); counted != has {
				r.w.breaks("reserved: the core counts %d machines of %s, and %d are had or asked for", counted, z.firm, has)
			}
		}
	}
}
