package accounting

import (
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
)

// Reconcile books the differences between the bills of a month and the ledger, unless others were booked after the
// sender read the ledger.
func (bk *Books) Reconcile(b *state.BillReconciled) {
	if b.After != bk.State.Reconciled() {
		return
	}
	for i := range b.Lines {
		bk.reconcileLine(&b.Lines[i])
	}
	bk.Fact(state.ReconciliationBooked{})
}

// reconcileLine books a line as a cost of its owner, and as billed by the provider.
func (bk *Books) reconcileLine(l *state.ReconciledLine) {
	if l.Currency == "" || l.Provider == "" || l.Category == "" || l.Use == "" || !ledger.Reconciles(l.Rule) {
		return
	}
	p := ledger.Posting{Currency: l.Currency, Category: l.Category, Phase: ledger.Billed, Use: l.Use, Rule: l.Rule,
		Provider: l.Provider, Region: l.Region, SKU: l.SKU, Owner: l.Owner}
	if !l.To.Before(l.From) {
		p.Begin, p.End = l.From, l.To
	}
	p.Owner.Tenant = bk.Event.Tenant
	bk.Enter(p, l.Amount, ledger.Payable(l.Provider), ledger.Cost(l.Category, l.Use))
	p.Use = ledger.Open
	bk.Enter(p, l.Amount, ledger.Invoice(l.Provider), ledger.Payable(l.Provider))
}
