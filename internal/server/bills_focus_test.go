package server

import (
	"encoding/csv"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/must"
	"scrimp/internal/work/bill"
)

// A FOCUS file of a month with booked bills obeys the rules of the format in each version: a correction has the
// class of its month, tax, credits and commitments their category and no price, and the sums by team and use are the ledger's.
func TestBills_FocusFileOfABookedMonthKeepsTheRules(t *testing.T) {
	t.Parallel()
	w := newBilled(t)
	w.imports(auth.OwnerName, rowsOf(w.line(0, bill.Compute, "12.3456789012345"), w.line(0, bill.Tax, "1.1"), w.line(1, bill.Compute, "0.0000001"),
		w.line(1, bill.Credit, "-0.75"), w.line(2, bill.Storage, "0.000000000001"), w.line(2, bill.Tax, "-0.3"), w.line(3, bill.Commitment, "-0.2"),
		w.line(3, bill.Credit, "0.1"))...)
	w.books()
	totals, err := ledger.Totals(w.store.Postings(t.Context(), "default", ""), ledger.ByTeam)
	must.Do(t, err)
	want, sum := map[string]*big.Rat{}, new(big.Rat)
	for k, a := range totals {
		name := k.Owner + "," + string(k.Use)
		if want[name] == nil {
			want[name] = new(big.Rat)
		}
		want[name].Add(want[name], rat(a))
		sum.Add(sum, rat(a))
	}
	booked := map[string]money.Amount{} // by part, from the ledger
	for p, err := range w.store.Postings(t.Context(), "default", "") {
		must.Do(t, err)
		if ledger.Reconciles(p.Rule) {
			p.Parts(func(_ ledger.Use, a money.Amount) { booked[p.Rule] = booked[p.Rule].Add(a) })
		}
	}
	for _, v := range []string{"1.2", "1.3", "1.4"} {
		f := w.focus(v, "&since="+w.month)
		for name, sum := range want {
			if got := f.By[name]; got == nil && sum.Sign() != 0 || got != nil && got.Cmp(sum) != 0 {
				t.Errorf("%s: %s costs %v, the ledger has %s", v, name, got, sum.FloatString(12))
			}
		}
		if f.Cost.Cmp(sum) != 0 || sum.FloatString(12) != "12.295679001235" { // the bill to the ledger's last digit
			t.Errorf("%s: %s in all, the ledger has %s", v, f.Cost.FloatString(12), sum.FloatString(12))
		}
	}
	rec, _ := w.ask("GET", "/v1/export/focus?version=1.4&since="+w.month, auth.OwnerName, nil)
	rows, err := csv.NewReader(rec.Body).ReadAll()
	must.Do(t, err)
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	category := map[string]string{"bill_tax": "Tax", "bill_credit": "Credit", "bill_commitment": "Adjustment"}
	seen, class := map[string]*big.Rat{}, "" // the month is not over
	if w.control.Now().UTC().Format("2006-01") != w.month {
		class = "Correction"
	}
	for _, row := range rows[1:] {
		rule := row[at["x_Rule"]]
		if !strings.HasPrefix(rule, "bill_") {
			continue
		}
		is := category[rule]
		if is == "" {
			is = "Usage"
		}
		if row[at["ChargeClass"]] != class || row[at["ChargeCategory"]] != is || row[at["x_Confidence"]] != "billed" {
			t.Errorf("%s is a %s %s, %s", rule, row[at["ChargeCategory"]], row[at["ChargeClass"]], row[at["x_Confidence"]])
		}
		if seen[rule] == nil {
			seen[rule] = new(big.Rat)
		}
		cost, _ := new(big.Rat).SetString(row[at["BilledCost"]])
		seen[rule].Add(seen[rule], cost)
	}
	for rule, a := range booked {
		if seen[rule] == nil || seen[rule].Cmp(rat(a)) != 0 {
			t.Errorf("rows of %s cost %v, the ledger has %v", rule, seen[rule], a)
		}
	}
	if got := fmt.Sprint(booked["bill_tax"], booked["bill_credit"], booked["bill_commitment"]); got != "0.8 -0.65 -0.2" {
		t.Errorf("booked are %s", got)
	}
}
