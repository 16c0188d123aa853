// Package assign is the second decider: it assigns jobs to prepaid machines, all at once, and proposes groups of
// moves. It is a pure function of the state when it began and knows nothing that has happened since, so whoever
// applies its groups must first check them against the current state.
package assign

import (
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
)

// Inputs is the input of a round, as of the event Base.
type Inputs struct {
	Base  uint64
	Now   time.Time
	Pools []Pool
	Bids  []Bid
}

// Pool is a reserved offer with interchangeable seats.
type Pool struct {
	Offer market.OfferID
	Free  int // seats that no job has, requests or is promised
	Until time.Time
	Most  money.Rate // price per hour that a move must not exceed
}

// Bid is the price that a job would pay for a seat, and its present place.
type Bid struct {
	Job      string
	Epoch    int // of its newest request for machines
	Nodes    int // seats of one pool that it needs at once
	Priority int
	Deadline time.Time // zero: none
	Order    uint64    // of its submission
	// On is the offer of the machine that it runs on; empty: it waits. Seated is set if that offer is a pool.
	On     market.OfferID
	Seated bool
	// Fixed is set if the job must not move now because its program does not run or its deadline leaves no room.
	// Pinned and resting jobs do not move either.
	Fixed  bool
	Pinned bool
	Rests  time.Time
	// Elsewhere is the hourly price per node without a seat; 0 if the job would wait.
	Elsewhere money.Rate
	Restart   time.Duration // time of a move
	Left      time.Duration // remaining work
	Known     bool          // whether Left is known
	Wants     []Want        // suitable pools, including its own
}

// Want is a suitable pool, and the price elsewhere of the work that an hour there does.
type Want struct {
	Offer market.OfferID
	Rate  money.Rate // per node
}

// Move is a job's change of place in a group. Its preconditions are the state when the round began: the epoch, and
// the offer of the machine that the job had.
type Move struct {
	Job   string         `json:"job"`
	Epoch int            `json:"epoch"`
	Nodes int            `json:"nodes"`
	From  market.OfferID `json:"from,omitempty"` // empty: it waits
	To    market.OfferID `json:"to,omitempty"`   // empty: it leaves its seat for whatever it finds
	Most  money.Rate     `json:"most,omitempty"` // maximum price of To
	// Rests is how long after the move no round moves the job again.
	Rests time.Duration `json:"rests_ns,omitempty"`
}

// Group is a set of moves that happen together or not at all. Jobs that leave come before jobs that arrive.
type Group struct {
	Moves []Move `json:"moves"`
}

// Proposal is the result of a round. Again is when the passing of time alone could change it; zero: never.
type Proposal struct {
	Base   uint64
	Groups []Group
	Again  time.Time
}

// mostMoves bounds the moves of a proposal, so that the step that applies them stays short. The others follow in
// the next round.
const mostMoves = 10

// mostTries bounds how often the assignment is repeated because some of its groups do not pay. After that the
// groups that pay are proposed.
const mostTries = 16

// Plan returns the most valuable assignment as groups of moves.
func Plan(s Inputs) Proposal {
	p := Proposal{Base: s.Base}
	held := map[string]bool{} // jobs kept in place because moving them does not pay
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

// Took returns the simulated duration of a round with these bids and seats: 100 ms, and 1 ms per pair. It is longer
// than the real computation, so that simulated runs encounter stale proposals.
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

// rests reports whether an earlier move has not paid back yet. A waiting job may start all the same.
func (b *Bid) rests(now time.Time) bool { return b.On != "" && b.Rests.After(now) }

// span returns how long a seat of the pool would serve the job. ok is false if the remaining work is unknown.
func (b *Bid) span(until, now time.Time) (d time.Duration, ok bool) {
	d = until.Sub(now)
	if b.Known {
		d = min(d, b.Left)
	}
	return max(0, d), b.Known
}

// restart is the hourly cost of a move: the cost of a restart at the given rate, spread over the time in the seat.
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

// ask returns the job's claim on the pool. ok is false if the job does not want it.
func (b *Bid) ask(pool market.OfferID) (rate money.Rate, ok bool) {
	for _, a := range b.Wants {
		if a.Offer == pool {
			return a.Rate, true
		}
	}
	return 0, false
}
