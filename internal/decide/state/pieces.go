package state

import (
	"math"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Accrued is the time up to which its cost is posted, whether or not the use of that time is known.
func (t *Task) Accrued() time.Time { return later(t.r.Settled, t.r.Accrued) }

// Pieces returns the cost of the instance between two times, split at each price change.
func (i *Instance) Pieces(from, to time.Time) []market.Piece {
	if end := i.r.Until; !end.IsZero() && to.After(end) {
		to = end
	}
	if !to.After(from) {
		return nil
	}
	var room [fewSegments]market.Segment
	return market.Pieces(i.segments(room[:0]), from, to)
}

// Piece is a stretch of a task's time at one price.
type Piece struct {
	market.Piece
	// Part of Whole is the task's share of its machine.
	Part, Whole int64
}

// Of returns the task's part of an hourly price of the machine, rounded to the nearest unit.
func (p *Piece) Of(r money.Rate) money.Rate { return partOfRate(r, p.Part, p.Whole) }

// Pieces returns the cost of the task between two times, split where its price changes because the machine's price
// or the task's part changes. The amounts add up to the difference of Cost.
func (t *Task) Pieces(from, to time.Time) (list []Piece) {
	i := t.instance
	if i == nil {
		return nil
	}
	whole := i.Pieces(from, to)
	if len(i.r.Spans) == 0 {
		list = make([]Piece, 0, len(whole))
		for _, p := range whole {
			list = append(list, Piece{p, 1, 1})
		}
		return list
	}
	for _, p := range whole {
		for n := range i.r.Spans {
			list = append(list, t.ofSpan(n, p)...)
		}
	}
	return list
}

// ofSpan returns the task's part of a piece of its machine's time within one span. The price of a part is rounded,
// so no such piece is longer than an hour.
func (t *Task) ofSpan(n int, p market.Piece) (list []Piece) {
	i := t.instance
	s := &i.r.Spans[n]
	begin, end := later(p.Begin, s.From), p.End
	if n+1 < len(i.r.Spans) && i.r.Spans[n+1].From.Before(end) {
		end = i.r.Spans[n+1].From
	}
	part, all := s.shares(t.attempt.r.ID)
	for part > 0 && begin.Before(end) {
		next := end
		if hour := begin.Add(time.Hour); part < all && hour.Before(end) {
			next = hour
		}
		at := t.attempt.r.ID
		list = append(list, Piece{market.Piece{Begin: begin, End: next, Rate: partOfRate(p.Rate, part, all),
			Amount: i.partOf(at, next).Sub(i.partOf(at, begin))}, part, all})
		begin = next
	}
	return list
}

func partOfRate(r money.Rate, part, all int64) money.Rate {
	if part == all || r > math.MaxInt64/2 {
		return money.Rate(Share(time.Duration(r), part, all))
	}
	return money.Rate((Share(time.Duration(2*r), part, all) + 1) / 2)
}

// shares returns the share of an attempt in the span, and the sum of all shares.
func (p *span) shares(attempt string) (part, all int64) {
	for n := range p.Seats {
		share := p.Seats[n].share()
		if all += share; p.Seats[n].Attempt == attempt {
			part = share
		}
	}
	return part, all
}

// accrued returns the time up to which cost is posted after p. A posting that reverses cost moves it back.
func accrued(until time.Time, p *ledger.Posting) time.Time {
	switch {
	case p.Phase != ledger.Accrued || p.Rule != "" || p.End.IsZero() || isCost(p.From) && isCost(p.To):
		return until
	case isCost(p.From):
		return p.Begin
	}
	return p.End
}
