package trueup_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/decide/trueup"
	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
	"scrimp/internal/work/bill"
	"scrimp/internal/work/reconcile"
)

var (
	month = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	next  = month.AddDate(0, 1, 0)
)

func dec(s string) decimal.Decimal {
	d, err := decimal.Parse(s)
	if err != nil {
		panic(err)
	}
	return d
}

// machines returns the charges of a random fleet, each machine shared by up to three jobs with two uses.
func machines(rng *rand.Rand) (list []charge.Charge) {
	for n := range 8 {
		at := month.Add(time.Duration(rng.IntN(20*24)) * time.Hour)
		for j := range 1 + rng.IntN(3) {
			for _, use := range []ledger.Use{ledger.Useful, ledger.Lost} {
				hours := time.Duration(1+rng.IntN(9)) * time.Hour
				list = append(list, charge.Charge{Begin: at, End: at.Add(hours), Amount: money.Picos(rng.Int64N(9e12)), Currency: money.USD,
					Category: ledger.Compute, Use: use, Provider: "aws", Region: "r", SKU: "p5", Timed: true, Time: hours,
					Owner: ledger.Owner{Team: fmt.Sprint("t", j), Job: fmt.Sprint("j", n, j), Attempt: fmt.Sprint("j", n, j, ".1"),
						Task: fmt.Sprint("j", n, j, ".1/0"), Instance: fmt.Sprint("i-", n)}})
				at = at.Add(hours)
			}
		}
	}
	return list
}

// billOf returns a random bill of the machines: some are missing, others have tax, credits and 15 decimals.
func billOf(rng *rand.Rand) (lines []bill.Line) {
	for n := range 8 {
		if rng.IntN(4) == 0 {
			continue
		}
		for _, c := range []bill.Category{bill.Compute, bill.Tax, bill.Credit, bill.Storage, bill.Commitment}[:1+rng.IntN(5)] {
			amount := fmt.Sprintf("%d.%015d", rng.IntN(40), rng.Int64N(1e15))
			if c == bill.Credit {
				amount = "-" + amount
			}
			lines = append(lines, bill.Line{At: len(lines) + 2, Category: c, Resource: fmt.Sprint("i-", n), Currency: money.USD, Start: month.Add(time.Hour),
				End: month.Add(2 * time.Hour), Unit: "Hrs", Quantity: bill.Number{Value: dec(fmt.Sprint(1 + rng.IntN(9))), Known: true}, Billed: dec(amount)})
		}
	}
	return lines
}

// compared compares the ledger with a bill and returns the missing postings and the gaps.
func compared(t *testing.T, own []charge.Charge, lines []bill.Line) ([]state.ReconciledLine, reconcile.Answer) {
	t.Helper()
	m := trueup.New(month, next)
	for i := range own {
		must.Do(t, m.Charge(&own[i]))
	}
	m.Bills.Row(bill.Row{Lines: lines})
	v := m.Bills.Finish()
	missing, waits := m.Lines(v.Gaps)
	if len(waits) > 0 {
		t.Fatal(waits)
	}
	return missing, v
}

// booked returns the ledger with the postings.
func booked(own []charge.Charge, lines []state.ReconciledLine) []charge.Charge {
	own = slices.Clone(own)
	for _, l := range lines {
		own = append(own, charge.Charge{Begin: l.From, End: l.To, Amount: l.Amount, Currency: l.Currency, Category: l.Category, Use: l.Use,
			Phase: ledger.Billed, Rule: l.Rule, Provider: l.Provider, Region: l.Region, SKU: l.SKU, Owner: l.Owner})
	}
	return own
}

// total sums the ledger of each machine, and net its corrections by everything that tells them apart.
func total(own []charge.Charge) (sums, net map[string]money.Amount) {
	sums, net = map[string]money.Amount{}, map[string]money.Amount{}
	for _, c := range own {
		sums[c.Owner.Instance] = sums[c.Owner.Instance].Add(c.Amount)
		if ledger.Reconciles(c.Rule) {
			k := fmt.Sprint(c.Owner, c.Use, c.Category, c.Rule)
			if net[k] = net[k].Add(c.Amount); net[k].IsZero() {
				delete(net, k)
			}
		}
	}
	return sums, net
}

// Once the missing postings are booked, the ledger of each machine equals its bill, cut at 1e-12, and a second
// comparison finds nothing to book.
func TestLines_MakeTheLedgerEqualToTheBill(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 1))
		own, lines := machines(rng), billOf(rng)
		missing, v := compared(t, own, lines)
		sums, _ := total(booked(own, missing))
		billed := map[string]decimal.Decimal{}
		for _, l := range lines {
			billed[l.Resource] = billed[l.Resource].Add(l.Billed)
		}
		for _, g := range v.Gaps {
			want, _ := g.Gap.Amount()
			before, _ := g.Ours.Amount()
			off := billed[g.Instance].Sub(decimal.OfAmount(sums[g.Instance]))
			if sums[g.Instance] != before.Add(want) || off.Cmp(dec("1e-12")) >= 0 || off.Cmp(dec("-1e-12")) <= 0 {
				t.Fatalf("seed %d: %s has %v in the ledger and %v on the bill", seed, g.Instance, sums[g.Instance], billed[g.Instance])
			}
		}
		if again, _ := compared(t, booked(own, missing), lines); len(again) > 0 {
			t.Fatalf("seed %d: a second time books %+v", seed, again)
		}
	}
}

// After any number of revised bills, some of them booked in part, the corrections are those of the last bill alone.
func TestLines_RevisedBillLeavesWhatTheLastBillAloneGives(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 2))
		own := machines(rng)
		all := own
		for range 1 + rng.IntN(4) {
			missing, _ := compared(t, all, billOf(rng))
			if len(missing) > 0 && rng.IntN(3) == 0 { // the server was killed after some events
				missing = missing[:rng.IntN(len(missing))]
			}
			all = booked(all, missing)
		}
		last := billOf(rng)
		missing, _ := compared(t, all, last)
		_, got := total(booked(all, missing))
		alone, _ := compared(t, own, last)
		if _, want := total(booked(own, alone)); !maps.Equal(got, want) {
			t.Fatalf("seed %d: %v\nwant %v", seed, got, want)
		}
	}
}

// A machine that runs and has settled no time yet waits. Its other use does not.
func TestLines_WaitForTimeThatIsStillOpen(t *testing.T) {
	open := machines(rand.New(rand.NewPCG(1, 1)))[0]
	open.Use = ledger.Open
	m := trueup.New(month, next)
	must.Do(t, m.Charge(&open))
	l := bill.Line{Category: bill.Tax, Resource: "i-0", Currency: money.USD, Start: month, End: next, Billed: dec("1e3")}
	m.Bills.Row(bill.Row{Lines: []bill.Line{l}})
	lines, waits := m.Lines(m.Bills.Finish().Gaps)
	if len(lines) != 0 || !reflect.DeepEqual(waits, []trueup.Wait{{Instance: "i-0", Why: waits[0].Why}}) {
		t.Errorf("%+v %+v", lines, waits)
	}
	useful := open
	useful.Use = ledger.Useful
	lines, _ = compared(t, []charge.Charge{open, useful}, []bill.Line{l})
	if slices.ContainsFunc(lines, func(l state.ReconciledLine) bool { return l.Use == ledger.Open }) || len(lines) == 0 {
		t.Errorf("%+v", lines)
	}
}

// A bill with a row that could not be read books nothing for the machine that the row may be of: it would book the rest
// of the bill as if the row were zero, or take earlier corrections back. The other machines are booked.
func TestLines_MachineOfAnUnreadRowWaits(t *testing.T) {
	row := func(a *bill.About, repeats int) bill.Row {
		return bill.Row{Problem: &bill.Problem{Line: 3, Reason: "the row is in EUR", Currency: "EUR", About: a, Repeats: repeats,
			Amount: bill.Number{Value: dec("1"), Known: true}}}
	}
	for name, c := range map[string]struct {
		row   bill.Row
		other bool // the row is in another file
		waits []string
	}{
		"its id names one":          {row(&bill.About{Resource: "arn:aws:ec2:r:1:instance/i-1"}, 0), false, []string{"i-1"}},
		"its tag names one":         {row(&bill.About{Attempt: "j2.1"}, 0), false, []string{"i-2"}},
		"its type is that of all":   {row(&bill.About{SKU: "BoxUsage:p5"}, 0), false, []string{"i-1", "i-2", "i-3"}},
		"its tags are unreadable":   {row(&bill.About{TagsUnread: true}, 0), false, []string{"i-1", "i-2", "i-3"}},
		"it is torn":                {row(nil, 0), false, []string{"i-1", "i-2", "i-3"}},
		"it is torn, elsewhere":     {row(nil, 0), true, []string{"i-3"}}, // i-3 has no line, and the row may be its
		"its id is of no machine":   {row(&bill.About{Resource: "i-99", SKU: "BoxUsage:p5"}, 0), false, nil},
		"its type is another":       {row(&bill.About{SKU: "BoxUsage:p5.48xlarge"}, 0), false, nil},
		"it repeats an earlier one": {row(&bill.About{Resource: "i-1"}, 2), false, nil},
	} {
		m := trueup.New(month, next)
		for n := 1; n <= 3; n++ {
			own := charge.Charge{Begin: month, End: month.Add(time.Hour), Amount: money.Picos(2e12), Currency: money.USD, Category: ledger.Compute,
				Use: ledger.Useful, Provider: "aws", SKU: "p5", Timed: true, Time: time.Hour, Owner: ledger.Owner{Team: "t",
					Job: fmt.Sprint("j", n), Attempt: fmt.Sprintf("j%d.1", n), Instance: fmt.Sprint("i-", n)}}
			earlier := own
			earlier.Rule, earlier.Timed, earlier.Amount = ledger.ReconciledRule("price"), false, money.Picos(1e12)
			for _, ch := range []charge.Charge{own, earlier} {
				must.Do(t, m.Charge(&ch))
			}
		}
		for n := 1; n <= 2; n++ {
			m.Bills.Row(bill.Row{Lines: []bill.Line{{At: n, Category: bill.Compute, Resource: fmt.Sprint("i-", n), Currency: money.USD, Start: month,
				End: month.Add(time.Hour), Billed: dec("2.5")}}})
		}
		if c.other {
			m.Bills.File()
		}
		m.Bills.Row(c.row)
		v, lines := m.Finish()
		var waits, booked []string
		for _, w := range v.Waits {
			waits = append(waits, w.Instance)
		}
		for _, l := range lines {
			booked = append(booked, l.Owner.Instance)
		}
		var rest []string
		for _, id := range []string{"i-1", "i-2", "i-3"} {
			if !slices.Contains(c.waits, id) {
				rest = append(rest, id)
			}
		}
		if !slices.Equal(waits, c.waits) || !slices.Equal(booked, rest) || v.AllUnread != 1 {
			t.Errorf("%s: %v wait, %v are booked, %d rows are unread; want %v and %v", name, waits, booked, v.AllUnread, c.waits, rest)
		}
	}
}

// A bill in another currency than the ledger's does not take the corrections of an earlier bill back.
func TestLines_MachineWithLinesInAnotherCurrencyWaits(t *testing.T) {
	m := trueup.New(month, next)
	own := charge.Charge{Begin: month, End: month.Add(time.Hour), Amount: money.Picos(2e12), Currency: money.USD, Category: ledger.Compute,
		Use: ledger.Useful, Provider: "aws", SKU: "p5", Owner: ledger.Owner{Job: "j", Instance: "i-1"}}
	earlier := own
	earlier.Rule = ledger.ReconciledRule("price")
	for _, c := range []charge.Charge{own, earlier} {
		must.Do(t, m.Charge(&c))
	}
	m.Bills.Row(bill.Row{Lines: []bill.Line{{At: 1, Category: bill.Compute, Resource: "i-1", Currency: "EUR", Start: month,
		End: month.Add(time.Hour), Billed: dec("2.5")}}})
	if v, lines := m.Finish(); len(lines) > 0 || len(v.Waits) != 1 {
		t.Errorf("%+v is booked, and %+v wait", lines, v.Waits)
	}
}
