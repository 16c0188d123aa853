package server

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/work/bill"
)

// Removing a bill and booking its month again restores the sums of the ledger to the last unit: each correction has a
// posting that reverses it. The other bill of the same file keeps its rows. A late line of the removed bill is reversed
// in its own month.
func TestBills_RemovingOneAndBookingAgainRestoresTheLedger(t *testing.T) {
	t.Parallel()
	w := newBilled(t)
	own := w.ledger()
	other := w.line(1, bill.Compute, "0.500000000001")
	other.Account = "2/profile"
	late := w.line(2, bill.Compute, "7.7")
	late.PeriodStart, late.Account = w.begin.AddDate(0, 1, 1-w.begin.Day()), "3"
	lines := []bill.Line{w.line(0, bill.Compute, "12.3456789012345"), w.line(0, bill.Tax, "1.1"), w.line(3, bill.Credit, "-0.75"), other, late}
	if code, list, p := w.imports(auth.OwnerName, rowsOf(lines...)...); code != 200 || len(list) != 3 {
		t.Fatalf("%d %+v %+v", code, list, p)
	}
	w.books()
	booked := w.ledger()
	remove := client.RemoveBill{Provider: "cloud", Account: "1", Month: w.month, DryRun: true}
	var dry, done client.RemovedBill
	w.must("POST", "/v1/bills/remove", remove, &dry)
	var list client.Bills
	if w.must("GET", "/v1/bills", nil, &list); dry.Removed || dry.Lines != 3 || dry.Totals[0].Amount != "12.6956789012345" || len(list.Bills) != 3 {
		t.Fatalf("a dry run: %+v, leaves %+v", dry, list.Bills)
	}
	remove.DryRun = false
	w.must("POST", "/v1/bills/remove", remove, &done)
	if w.must("GET", "/v1/bills", nil, &list); !done.Removed || done.Digest != dry.Digest || len(list.Bills) != 2 || !maps.Equal(w.ledger(), booked) {
		t.Fatalf("%+v leaves %+v, and the ledger %v, want %v", done, list.Bills, w.ledger(), booked)
	}
	w.books()
	want := maps.Clone(own)
	want[w.instances[1]], want[w.instances[2]] = "0.500000000001", "7.700000000000"
	if got := w.ledger(); !maps.Equal(got, want) {
		t.Errorf("the ledger has %v\nwant %v", got, want)
	}
	for _, b := range list.Bills {
		w.must("POST", "/v1/bills/remove", client.RemoveBill{Provider: b.Provider, Account: b.Account, Month: b.Month}, nil)
	}
	if v := w.books(); len(v.Bills) != 0 || v.Booking[0].Count == 0 { // no bill is left, and what is booked goes all the same
		t.Errorf("%+v", v.Booking)
	}
	if got := w.ledger(); !maps.Equal(got, own) {
		t.Errorf("the ledger has %v\nwant %v", got, own)
	}
	w.must("GET", "/v1/ledger/verify", nil, nil)
	if files, err := os.ReadDir(filepath.Join(w.opts.Dir, "bills")); err != nil || len(files) != 0 {
		t.Errorf("%v: %d files are kept", err, len(files))
	}
	if rec, p := w.ask("POST", "/v1/bills/reconcile", auth.OwnerName, client.BookBills{Month: w.month}); rec.Code != 404 {
		t.Errorf("with nothing left to reverse: %d %+v", rec.Code, p)
	}
	var phases client.Costs
	w.must("GET", "/v1/costs?by=job", nil, &phases)
	sum := money.Amount{}
	for _, l := range phases.Lines {
		sum = sum.Add(*l.Billed)
	}
	if !sum.IsZero() {
		t.Errorf("%v are billed without a bill", sum)
	}
	if code, list, p := w.imports(auth.OwnerName, rowsOf(lines...)...); code != 200 || list[0].Result != "new" {
		t.Fatalf("the removed bill again: %d %+v %+v", code, list, p)
	}
	w.books()
	if got := w.ledger(); !maps.Equal(got, booked) {
		t.Errorf("imported again, the ledger has %v\nwant %v", got, booked)
	}
}

// A bill of a closed month, one that does not exist, and one that only a viewer asks for stays. The audit trail names
// the bill with its total.
func TestBills_RemoveRefusesAndIsAudited(t *testing.T) {
	t.Parallel()
	w := newBilled(t)
	line := w.line(0, bill.Compute, "1.5")
	line.Start = w.begin.AddDate(0, -1, 10-w.begin.Day())
	line.End = line.Start
	last := line.Start.Format("2006-01")
	if code, _, p := w.imports(auth.OwnerName, rowsOf(line)...); code != 200 {
		t.Fatal(p)
	}
	remove := client.RemoveBill{Provider: "cloud", Account: "1", Month: last}
	w.must("PUT", "/v1/bills/months", client.SetBillMonth{Month: last, Closed: true}, nil)
	vi := w.user("vi", identity.Grant{Team: identity.Everywhere, Role: identity.Viewer})
	for name, c := range map[string]struct {
		token string
		b     client.RemoveBill
		code  int
		fix   string
	}{
		"closed": {auth.OwnerName, remove, 409, "scrimp bill reopen " + last}, "a viewer": {vi, remove, 403, "admin"},
		"another account": {auth.OwnerName, client.RemoveBill{Provider: "cloud", Account: "9", Month: last}, 404, "scrimp bill list"},
		"no name":         {auth.OwnerName, client.RemoveBill{}, 404, "scrimp bill list"},
	} {
		if rec, p := w.ask("POST", "/v1/bills/remove", c.token, c.b); rec.Code != c.code || !strings.Contains(p.Fix, c.fix) {
			t.Errorf("%s: %d %+v", name, rec.Code, p)
		}
	}
	w.must("PUT", "/v1/bills/months", client.SetBillMonth{Month: last}, nil)
	w.must("POST", "/v1/bills/remove", remove, nil)
	rec, _ := w.ask("GET", "/v1/audit?limit=1000", auth.OwnerName, nil)
	if text := rec.Body.String(); !strings.Contains(text, "remove the bill of cloud 1: 1.5 USD") {
		t.Errorf("the audit trail has %s", text)
	}
}

// The rows of a bill in another order and on other lines are the same bill. One row more or less, or twice, is another.
func TestBills_OrderOfRowsDoesNotMatter(t *testing.T) {
	t.Parallel()
	w := newBilled(t)
	a, b, c := w.line(0, bill.Compute, "1"), w.line(1, bill.Tax, "2"), w.line(2, bill.Credit, "-3")
	moved := a
	moved.At = 99
	for _, try := range []struct {
		lines  []bill.Line
		result string
	}{{[]bill.Line{a, b, c}, "new"}, {[]bill.Line{c, b, moved}, "same"}, {[]bill.Line{a, b}, "replaced"}, {[]bill.Line{b, a, a}, "replaced"}, {[]bill.Line{a, b, a}, "same"}} {
		if _, list, p := w.imports(auth.OwnerName, rowsOf(try.lines...)...); len(list) != 1 || list[0].Result != try.result {
			t.Errorf("%d lines: %+v %+v, want %s", len(try.lines), list, p, try.result)
		}
	}
}
