package accounting

import (
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market/egress"
)

// PostReads posts the cost of reading a task's inputs: bytes times the published price. The provider of the data
// charges it, apart from the machine's bill, so the posting names no machine. It posts nothing if the price is unknown,
// or in another currency than the machine: unknown is not zero.
func (bk *Books) PostReads(j *state.Job, k *state.Task, reads []state.DataRead) {
	if k.Currency() != money.USD { // the published prices are in dollars
		return
	}
	need := &j.Terms().Need
	for _, d := range reads {
		r := need.Named(d.Name)
		if r == nil || d.Fetched <= 0 || k.Machine().Region == "" {
			continue
		}
		fare, ok := r.Fare(k.Machine().Provider, k.Machine().Region)
		if !ok {
			continue
		}
		p := bk.Entry(j, k, ledger.Accrued, ledger.StartUp, ledger.DataRule)
		p.Owner.Instance, p.Zone = "", ""
		p.Category, p.Provider, p.Region, p.SKU = ledger.Transfer, r.Provider, r.Region, "data transfer out"
		p.Begin, p.End = bk.Now(), bk.Now()
		p.Quantity, p.Unit, p.Price = ledger.Bytes(d.Fetched), ledger.ByteUnit, ledger.PriceOf(fare, true)
		bk.Enter(p, egress.Cost(d.Fetched, fare), ledger.Payable(r.Provider), ledger.Cost(ledger.Transfer, ledger.StartUp))
	}
}
