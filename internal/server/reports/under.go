package reports

import (
	"context"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// Under sums the postings under each limit in its current window, up to the event asOf.
func (b *Books) Under(ctx context.Context, limits []budget.Limit) (base map[string]state.Spent, asOf uint64,
	err error) {
	b.spent.mu.Lock()
	defer b.spent.mu.Unlock()
	if err := b.spentTo(ctx, b.Control.Durable()); err != nil {
		return nil, 0, err
	}
	base = map[string]state.Spent{}
	for _, l := range limits {
		sum := state.Spent{Begin: l.Window.Begin(b.Control.Now())}
		held := map[int]bool{}
		// a window starts on the hour, so no hour is cut
		b.spent.sums.Since(sum.Begin, func(whose int, c ledger.Column, a money.Amount) {
			if c.Use == ledger.Invoiced {
				return // no cost
			}
			in, known := held[whose]
			if !known {
				w := b.spent.sums.Dimensions()[whose]
				in = l.Scope.Holds(w.Owner(), w.User)
				held[whose] = in
			}
			if in {
				sum.Amount = sum.Amount.Add(a)
			}
		})
		base[l.Name()] = sum
	}
	return base, b.spent.upTo, nil
}
