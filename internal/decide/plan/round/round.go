// Package round is the second decider: it assigns jobs to machines that are paid for, all of them
// at once, and proposes groups of moves. It is a pure function of what stood when it began, and
// knows nothing of what has happened since: whoever takes its groups holds them against the
// newest state first.
package round

import (
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
)

// Inputs is what a round decides about, as it was after the event Base.
type Inputs struct {
	Base  uint64
	Now   time.Time
	Pools []Pool
	Bids  []Bid
}

// Pool is a reserved offer: seats that do alike.
type Pool struct {
	Offer market.OfferID
	Free  int // seats that nobody has, asks for or is kept
	Until time.Time
	Most  money.Rate // price of an hour, which a move must not pass
}

// Bid is what a job would give for a seat, and where it is now.
type Bid struct {
	Job      string
	Epoch    int // of its newest request for machines
	Nodes    int // seats of one pool that it needs at once
	Priority int
	Deadline time.Time // zero: none
	Order    uint64    // of its submission
	// On is the offer of the machine that it runs on; "": it waits. Seated says that it is a pool.
	On     market.OfferID
	Seated bool
	// Fixed says that it is not to be moved now: its program does not run, or its deadline leaves
	// no room. A pinned job is not moved either, nor one that rests.
	Fixed  bool
	Pinned bool
	Rests  time.Time
	// Elsewhere is what an hour costs it, for each node, where it has no seat; 0 where it would wait.
	Elsewhere money.Rate
	Restart   time.Duration // what a move takes
	Left      time.Duration // of its work
	Known     bool          // whether anybody can say that
	Wants     []Want        // the pools that would do for it, its own with them
}

// Want is a pool that does for a job, and what the work of an hour there costs elsewhere.
type Want struct {
	Offer market.OfferID
	Rate  money.Rate // for each node
}

// Move is a job's change of place in a group. What it was when the round began is its
// precondition: the epoch, and the offer whose machine the job had.
type Move struct {
	Job   string         `json:"job"`
	Epoch int            `json:"epoch"`
	Nodes int            `json:"nodes"`
	From  market.OfferID `json:"from,omitempty"` // "": it waits
	To    market.OfferID `json:"to,omitempty"`   // "": it leaves its seat, for what it finds
	Most  money.Rate     `json:"most,omitempty"` // price of To, which must not have risen
	// Rests is for how long no round moves it again, from the move on.
	Rests time.Duration `json:"rests_ns,omitempty"`
}

// Group is moves that happen together or not at all: who leaves stands before who comes.
type Group struct {
	Moves []Move `json:"moves"`
}

// Proposal is what a round found. Again is when time alone could change it; zero: never.
type Proposal struct {
	Base   uint64
	Groups []Group
	Again  time.Time
}

// mostMoves is how many moves a round proposes, so that the step that takes them stays short.
// The others follow in the next.
const mostMoves = 10

// mostTries is how often the assignment is made again because some of it does not pay. Then the
// rest of it is proposed.
const mostTries = 16

// Plan is the round: the assignment that is worth the most, as groups of moves.
func Plan(s Inputs) Proposal {
	p := Proposal{Base: s.Base}
	held := map[string]bool{} // jobs that are not moved, because that does not pay
	var groups []group
	for range mostTries {
		t := newTable(&s, held)
		all := t.groups(t.solve())
		groups = groups[:0]
		for i := range all {
			if all[i].pays(&s) {
				groups = append(groups, all[i])
			} else {
				all[i].hold(held)
			}
		}
		if len(groups) == len(all) {
			break
		}
	}
	moves := 0
	for i := range groups {
		if moves += len(groups[i].moves); moves > mostMoves && i > 0 {
			p.Again = s.Now
			break
		}
		p.Groups = append(p.Groups, groups[i].public(&s))
	}
	for i := range s.Bids {
		if b := &s.Bids[i]; b.rests(s.Now) && (p.Again.IsZero() || b.Rests.Before(p.Again)) {
			p.Again = b.Rests
		}
	}
	return p
}

// Took is how long a round of so many bids and seats takes in simulation: 100 ms, and 1 ms for
// each pair. It is longer than a processor needs, so that simulated runs meet what is stale.
//
// Example: 20 bids for 4 seats take 180 ms.
func Took(s *Inputs) time.Duration {
	seats := 0
	for _, p := range s.Pools {
		seats += p.Free
	}
	for i := range s.Bids {
		if s.Bids[i].Seated {
			seats += s.Bids[i].Nodes
		}
	}
	return 100*time.Millisecond + time.Duration(len(s.Bids)*seats)*time.Millisecond
}

// fixed reports whether a round leaves the job where it is.
func (b *Bid) fixed(now time.Time) bool { return b.Fixed || b.Pinned || b.rests(now) }

// rests reports whether an earlier move has not paid back yet. Who waits may begin all the same.
func (b *Bid) rests(now time.Time) bool { return b.On != "" && b.Rests.After(now) }

// span is for how long a seat of the pool would serve the job; ok is false where nobody can say.
func (b *Bid) span(until, now time.Time) (d time.Duration, ok bool) {
	d = until.Sub(now)
	if b.Known {
		d = min(d, b.Left)
	}
	return max(0, d), b.Known
}

// restart is what a move costs the job, spread over the hours of the seat: its restart at that
// price, over the span.
func (b *Bid) restart(rate money.Rate, until, now time.Time) money.Rate {
	span, ok := b.span(until, now)
	switch {
	case !ok || b.Restart <= 0:
		return 0
	case span <= b.Restart:
		return rate
	}
	return money.Rate(quantity.Int(float64(rate) * (float64(b.Restart) / float64(span))))
}

// ask is that of the pool; ok is false where the job does not ask for it.
func (b *Bid) ask(pool market.OfferID) (rate money.Rate, ok bool) {
	for _, a := range b.Wants {
		if a.Offer == pool {
			return a.Rate, true
		}
	}
	return 0, false
}
