package books

import (
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Lists are the on-demand offers of each type of machine: what it costs who rents it at the public price.
type Lists struct {
	offers int // for sale when they were looked through: more come, none goes
	of     map[kindOfMachine]*state.Listing
}

type kindOfMachine struct{ provider, region, machine string }

// listPrice is the public on-demand price of an hour of a machine's type in its region now; false: nobody sells it so.
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
