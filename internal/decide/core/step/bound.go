package step

import (
	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// Bound is the budget that a job without one gets: budget.Bound of its work, but at least the grace and the minimum
// charge of each machine for sale that it may rent, because no machine starts for less. known is false if its work is
// unknown.
func (c *Context) Bound(t *state.Terms) (most money.Amount, known bool) {
	rate := c.HighestRate(t)
	if most, known = budget.Bound(t.Work, rate*money.Rate(t.Most())); !known {
		return most, false
	}
	for _, l := range c.State.Sale() {
		if q := l.Quote(); q.Priced && q.Rate <= rate {
			if least := q.Rate.Times(t.Most()).Until(t.Grace + l.Offer().Billing.Minimum); most.Cmp(least) < 0 {
				most = least
			}
		}
	}
	return most, true
}

// HighestRate is the highest known price at which a machine may be rented for a job.
func (c *Context) HighestRate(t *state.Terms) money.Rate {
	if t.Need.MaxRate > 0 {
		return t.Need.MaxRate
	}
	most := money.Rate(0)
	for _, l := range c.State.Sale() {
		if q := l.Quote(); q.Priced {
			most = max(most, q.Rate)
		}
	}
	return most
}
