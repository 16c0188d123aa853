package receipts

import (
	"math/big"
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/sample"
)

// addSpending adds the cumulative cost over time: posted costs, and for running machines their prices.
func addSpending(v *receipt.Receipt, j *core.Job, postings []ledger.Posting) {
	times := []time.Time{j.Submitted()}
	ends := map[string]time.Time{} // of attempts that have ended
	for _, a := range j.Attempts() {
		times = append(times, a.From())
		if !a.Until().IsZero() {
			times = append(times, a.Until())
		}
		if !a.Live() {
			ends[a.ID()] = a.Until()
		}
	}
	for _, l := range sample.Evenly(v.Loss, 100) {
		times = append(times, l.At)
	}
	slices.SortFunc(times, time.Time.Compare)
	for _, t := range times {
		at := receipt.Spent{At: t}
		for _, a := range j.Attempts() {
			if a.Live() {
				at.Amount = at.Amount.Add(a.Cost(t)).Add(a.Rules())
			}
		}
		for _, a := range j.Wanted() {
			if len(a.Granted()) > 0 && t.After(a.Since()) {
				at.Amount = at.Amount.Add(a.Cost(t))
			}
		}
		for i := range postings {
			if end, over := ends[postings[i].Owner.Attempt]; over {
				at.Amount = at.Amount.Add(spentBy(&postings[i], end, t))
			}
		}
		v.Spend = append(v.Spend, at)
	}
}

// spentBy returns the part of a posting's cost that was spent by t, spread evenly over its period. A posting without
// a period, such as one for a billing rule, counts from the end of its attempt.
func spentBy(p *ledger.Posting, end, t time.Time) money.Amount {
	cost := core.Cost(*p)
	switch {
	case p.Begin.IsZero() || !p.End.After(p.Begin):
		if t.Before(end) {
			return money.Amount{}
		}
		return cost
	case !t.After(p.Begin):
		return money.Amount{}
	case t.Before(p.End):
		n := cost.Big()
		n.Mul(n, big.NewInt(int64(t.Sub(p.Begin))))
		part, _ := money.FromBig(n.Quo(n, big.NewInt(int64(p.End.Sub(p.Begin))))) // at most the cost, so it is in range
		return part
	}
	return cost
}
