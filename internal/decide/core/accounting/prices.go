package accounting

import (
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Lists has the on-demand offer of each machine type, which states its public price.
type Lists struct {
	offers int // number of offers when the list was built; offers are only added
	of     map[kindOfMachine]*state.Listing
}

type kindOfMachine struct{ provider, region, machine string }

// listPrice returns the current public on-demand price per hour of a machine's type in its region. ok is false if
// nobody sells it on-demand.
func (bk *Books) listPrice(of *state.Machine) (money.Rate, bool) {
	if sale := bk.State.Sale(); bk.lists.of == nil || bk.lists.offers != len(sale) {
		bk.lists = Lists{offers: len(sale), of: map[kindOfMachine]*state.Listing{}}
		for _, l := range sale {
			o := l.Offer()
			k := kindOfMachine{o.Provider, o.Region, o.Machine}
			if o.Capacity == market.OnDemand && bk.lists.of[k] == nil {
				bk.lists.of[k] = l
			}
		}
	}
	l := bk.lists.of[kindOfMachine{of.Provider, of.Region, of.Type}]
	if l == nil || !l.Quote().Priced {
		return 0, false
	}
	return l.Quote().Rate, true
}
