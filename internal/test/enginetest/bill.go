package enginetest

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"slices"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

func bills(r *rig) {
	r.launch("a.1")
	if r.Tells > 0 {
		begun := r.list()["a.1"].Launched
		r.until("so long a life that it is billed", func() bool { return time.Since(begun) > r.Tells })
	}
	i := r.giveBack("a.1")
	sale, _, err := r.Driver.Offers(r.Context())
	must.Do(r, err)
	var offer market.Offer
	for _, o := range sale {
		if o.ID == i.Offer {
			offer = o
		}
	}
	problems(r, i, offer.Currency)
	timed, off := new(big.Int), int64(0) // picos billed by time, and the largest rounding error
	whole := i.Ended.Sub(i.Launched)
	for _, l := range i.Bill {
		amount := l.Amount.Big()
		switch {
		case l.Rule == "":
		case slices.Contains(r.Beside, l.Rule) && l.To.After(l.From): // covers a part of the machine's span
			amount.Mul(amount, big.NewInt(int64(whole)))
			amount.Quo(amount, big.NewInt(int64(l.To.Sub(l.From))))
			off += 2
		default:
			continue
		}
		timed.Add(timed, amount)
	}
	want := i.Rate.Until(whole)
	if d := timed.Sub(timed, want.Big()); d.CmpAbs(big.NewInt(off)) > 0 || whole < r.Tells.Truncate(time.Second) {
		r.Errorf("%v at %v an hour is billed with %v picos more than %v", whole, i.Rate, d, want)
	}
	// Split at random times: the pieces, each the difference of two cumulative amounts, sum up to the bill.
	chance := rand.New(rand.NewPCG(1, 1))
	segments := []market.Segment{{From: i.Launched, Rate: i.Rate}}
	for range 100 {
		var sum, before money.Amount
		for at := i.Launched; at.Before(i.Ended); {
			at = at.Add(time.Duration(1 + chance.Int64N(int64(whole/3)+1)))
			if at.After(i.Ended) {
				at = i.Ended
			}
			reached := market.Cost(segments, at)
			sum, before = sum.Add(reached.Sub(before)), reached
		}
		if sum != want {
			r.Fatalf("pieces sum up to %v, the bill to %v", sum, want)
		}
	}
}

// problems reports errors in the form of a bill: its plain lines must cover the span from launch to end, without
// gaps or overlaps.
func problems(r *rig, i engine.Instance, currency money.Currency) {
	r.Helper()
	at := i.Launched
	for _, l := range i.Bill {
		if l.Currency != currency || l.To.Before(l.From) {
			r.Errorf("line %+v", l)
		}
		if l.Rule == "" {
			if !l.From.Equal(at) || l.Amount.Sign() < 0 {
				r.Errorf("line %+v does not begin at %v", l, at)
			}
			at = l.To
		}
	}
	if !at.Equal(i.Ended) || i.Ended.Before(i.Launched) {
		r.Errorf("the plain lines end at %v, the instance at %v, launched at %v", at, i.Ended, i.Launched)
	}
}

// same reports whether two bills are exactly equal.
func same(a, b []engine.Line) bool {
	return slices.EqualFunc(a, b, func(x, y engine.Line) bool {
		return x.Rule == y.Rule && x.From.Equal(y.From) && x.To.Equal(y.To) && x.Amount == y.Amount &&
			x.Currency == y.Currency
	})
}

func interrupted(r *rig) {
	q := r.request("a.1")
	q.Offer = r.Fails
	list, err := r.Driver.Launch(r.Context(), q)
	must.Do(r, err)
	i := list[0]
	var end engine.Instance
	r.until("the interruption", func() bool { end = r.list()["a.1"]; return end.State == engine.Ended })
	if end.ID != i.ID || end.Cause != engine.Interrupted || (len(end.Bill) == 0) != (r.Later != nil) {
		r.Errorf("ended as %+v", end)
	}
	if r.Later == nil {
		problems(r, end, end.Bill[0].Currency)
	}
	if err := r.Driver.Terminate(r.Context(), i.ID); err != nil && !errors.Is(err, engine.ErrNotFound) {
		r.Error(err)
	}
	if again := r.list()["a.1"]; again.Cause != engine.Interrupted || !same(again.Bill, end.Bill) {
		r.Errorf("ended as %+v, and later as %+v", end, again)
	}
}
