package server

import (
	"testing"

	"scrimp/client"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/work/bill"
)

// savedOf returns what the costs by job say was saved by a job, and against which on-demand cost.
func (w *billed) savedOf(job string) (saved, onDemand, actual money.Amount) {
	w.t.Helper()
	var costs client.Costs
	w.must("GET", "/v1/costs?by=job", nil, &costs)
	for _, l := range costs.Lines {
		if l.Name == job && l.Saved != nil {
			return *l.Saved, *l.OnDemand, orNone(l.Actual)
		}
	}
	w.t.Fatalf("%s has no comparison: %+v", job, costs.Lines)
	return saved, onDemand, actual
}

func orNone(a *money.Amount) money.Amount {
	if a == nil {
		return money.Amount{}
	}
	return *a
}

// Tax, credits and commitments of a bill change what a job costs and not what it saved: its on-demand cost has no tax
// either. A price that the bill corrects changes both.
func TestBills_TaxAndCreditsChangeTheCostAndNotTheSavings(t *testing.T) {
	t.Parallel()
	w := newBilled(t)
	own := w.ledger()
	rows := rowsOf(w.line(0, bill.Compute, own[w.instances[0]]), w.line(0, bill.Tax, "1.5"), w.line(0, bill.Credit, "-0.25"),
		w.line(1, bill.Compute, "0.5"), w.line(1, bill.Tax, "0.25"), w.line(2, bill.Compute, own[w.instances[2]]))
	receipt := func(job string) (r client.Receipt) {
		t.Helper()
		w.must("GET", "/v1/jobs/"+job+"/receipt", nil, &r)
		return r
	}
	before := receipt("j0")
	if before.Saved == nil || before.BillExtras != nil {
		t.Fatalf("before the bill: %v saved, with %v", before.Saved, before.BillExtras)
	}
	was, _, _ := w.savedOf("j0")
	if code, _, p := w.imports(auth.OwnerName, rows...); code != 200 {
		t.Fatal(p)
	}
	w.books()
	after := receipt("j0")
	if got := after.Cost.Sub(before.Cost); got.String() != "1.25" || *after.Saved != *before.Saved {
		t.Errorf("tax and a credit: the cost changes by %v, saved were %v and are %v", got, *before.Saved, *after.Saved)
	}
	if after.BillExtras["tax"].String() != "1.5" || after.BillExtras["credit"].String() != "-0.25" || len(after.BillExtras) != 2 {
		t.Errorf("the receipt shows %v apart", after.BillExtras)
	}
	if is, onDemand, actual := w.savedOf("j0"); is != was || is != *after.Saved || actual != (money.Amount{}) && onDemand.Sub(actual) != is {
		t.Errorf("the costs say that %v are saved, before the bill %v, the receipt %v", is, was, *after.Saved)
	}
	after = receipt("j1")
	want := after.OnDemandCost.Sub(after.Cost).Add(after.BillExtras["tax"]) // the second way: the cost less the tax
	if is, _, _ := w.savedOf("j1"); *after.Saved != want || is != want || after.Cost.String() != "0.75" {
		t.Errorf("a job of %v with a tax saved %v, by its costs %v, want %v", after.Cost, *after.Saved, is, want)
	}
	w.imports(auth.OwnerName, rowsOf(w.line(0, bill.Compute, own[w.instances[0]]), w.line(1, bill.Compute, "0.5"), w.line(2, bill.Compute, own[w.instances[2]]))...)
	w.books()
	after = receipt("j0")
	if is, _, _ := w.savedOf("j0"); after.Cost != before.Cost || after.BillExtras != nil || is != was {
		t.Errorf("a bill without tax: the job costs %v, before %v, with %v; saved %v", after.Cost, before.Cost, after.BillExtras, is)
	}
}
