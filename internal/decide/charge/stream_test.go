package charge_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	_ "scrimp/internal/test/sameseed"
)

var begin = time.Date(2026, 10, 30, 22, 13, 7, 1234567, time.UTC)

// cell is the key by which charges and postings must agree.
type cell struct {
	job, task string
	currency  money.Currency
	category  ledger.Category
	use       ledger.Use
}

// postings draws a ledger: open hours that move on later in other cuts, credits, corrections without a period, and
// time that spans several months.
func postings(t *rapid.T) (list []ledger.Posting) {
	uses := []ledger.Use{ledger.Open, ledger.Useful, ledger.Lost, ledger.StartUp, ledger.Idle}
	at := begin
	type work struct {
		accrued, settled time.Time
		rate             money.Rate
	}
	tasks := map[string]*work{}
	add := func(task string, a money.Amount, from, to ledger.Account, p ledger.Posting) {
		moved, ok := ledger.Move(a, from, to)
		if !ok {
			return
		}
		p.Amount, p.From, p.To = moved.Amount, moved.From, moved.To
		p.Event, p.At, p.Currency, p.Category = uint64(len(list)+1), at, "USD", ledger.Compute
		p.Owner = ledger.Owner{Tenant: "default", Job: task[:1], Task: task, Instance: "i" + task}
		list = append(list, p)
	}
	timed := func(w *work, from, to time.Time) (ledger.Posting, money.Amount) {
		return ledger.Posting{Begin: from, End: to, Quantity: ledger.Seconds(to.Sub(from)), Unit: ledger.SecondUnit,
				Price: ledger.PriceOf(w.rate, true), Phase: ledger.Accrued},
			w.rate.Until(to.Sub(begin)).Sub(w.rate.Until(from.Sub(begin)))
	}
	open, payable := ledger.Cost(ledger.Compute, ledger.Open), ledger.Payable("local")
	for range rapid.IntRange(1, 80).Draw(t, "postings") {
		at = at.Add(time.Duration(rapid.Int64Range(1, int64(5*time.Hour)).Draw(t, "later")))
		task := fmt.Sprintf("%d/0", rapid.IntRange(0, 2).Draw(t, "task"))
		w := tasks[task]
		if w == nil {
			w = &work{at, at, money.Rate(rapid.Int64Range(1, 1e15).Draw(t, "rate"))}
			tasks[task] = w
			continue
		}
		use := ledger.Cost(ledger.Compute, rapid.SampledFrom(uses[1:]).Draw(t, "use"))
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0, 1:
			if w.accrued.Before(at) {
				p, a := timed(w, w.accrued, at)
				add(task, a, payable, open, p)
				w.accrued = at
			}
		case 2, 3: // a checkpoint in between
			to := w.settled.Add(time.Duration(rapid.Int64Range(0, int64(at.Sub(w.settled))).Draw(t, "kept")))
			known := w.accrued
			if to.Before(known) {
				known = to
			}
			if w.settled.Before(known) {
				p, a := timed(w, w.settled, known)
				add(task, a, open, use, p)
			}
			if w.accrued.Before(to) {
				p, a := timed(w, w.accrued, to)
				add(task, a, payable, use, p)
				w.accrued = to
			}
			w.settled = to
		case 4: // a posting without a period
			a := money.Picos(rapid.Int64Range(-1e15, 1e15).Draw(t, "amount"))
			add(task, a, rapid.SampledFrom([]ledger.Account{payable, open}).Draw(t, "from"), use, ledger.Posting{Rule: "priced_later"})
		case 5:
			add(task, money.Picos(rapid.Int64Range(-1e15, 1e15).Draw(t, "amount")), payable, open, ledger.Posting{Rule: "priced_later"})
		}
	}
	return list
}

func chargesOf(list []ledger.Posting, span charge.Span) (got []charge.Charge) {
	s := charge.NewStream(span, func(c charge.Charge) { got = append(got, c) })
	for i := range list {
		s.Add(&list[i], charge.Source{})
	}
	s.End()
	return got
}

func sumsOf(charges []charge.Charge) map[cell]money.Amount {
	sums := map[cell]money.Amount{}
	for _, c := range charges {
		k := cell{c.Owner.Job, c.Owner.Task, c.Currency, c.Category, c.Use}
		if sums[k] = sums[k].Add(c.Amount); sums[k].IsZero() {
			delete(sums, k)
		}
	}
	return sums
}

// Charges add up to the postings exactly by owner, category and use, as a plain walk computes. Each lies within one
// month, and has a price only with its time.
func TestCharges_AddUpToTheLedgerExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := postings(t)
		want := map[cell]money.Amount{}
		for _, p := range list {
			for _, side := range []struct {
				account ledger.Account
				amount  money.Amount
			}{{p.To, p.Amount}, {p.From, p.Amount.Neg()}} {
				if category, use, ok := side.account.IsCost(); ok {
					k := cell{p.Owner.Job, p.Owner.Task, p.Currency, category, use}
					if want[k] = want[k].Add(side.amount); want[k].IsZero() {
						delete(want, k)
					}
				}
			}
		}
		charges := chargesOf(list, charge.Span{})
		if got := sumsOf(charges); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("charges add up to %v, the ledger has %v", got, want)
		}
		for _, c := range charges {
			if !c.Begin.Before(c.End) || c.End.After(charge.NextMonth(c.Begin)) || c.Begin.Location() != time.UTC {
				t.Fatalf("the period %v to %v is none of one month", c.Begin, c.End)
			}
			if c.Timed != (c.Time > 0) || c.Price.Known && !c.Timed || c.Amount.IsZero() || c.Amount.Sign() < 0 && !c.Corrects {
				t.Fatalf("charge %+v", c)
			}
			if off := c.Amount.Sub(c.Price.Rate.Until(c.Time)); c.Timed && off.Cmp(money.Picos(1100)) > 0 {
				t.Fatalf("%v at %v is %v", c.Time, c.Price.Rate, c.Amount)
			}
		}
	})
}

// The charges of two adjacent spans add up to those of the joined span.
func TestCharges_OfAdjacentSpansAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := postings(t)
		hour := begin.Truncate(time.Hour).Add(time.Duration(rapid.IntRange(0, 100).Draw(t, "hour")) * time.Hour)
		before, after := chargesOf(list, charge.Span{Until: hour}), chargesOf(list, charge.Span{Since: hour})
		got, want := sumsOf(append(before, after...)), sumsOf(chargesOf(list, charge.Span{}))
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("the parts are %v, the whole %v", got, want)
		}
		for _, c := range before {
			if c.End.After(hour) {
				t.Fatalf("until %v: %v to %v", hour, c.Begin, c.End)
			}
		}
		for _, c := range after {
			if c.Begin.Before(hour) {
				t.Fatalf("since %v: %v to %v", hour, c.Begin, c.End)
			}
		}
	})
}

// Time that becomes useful is one charge at its price, and no open cost remains.
func TestCharges_UsefulHoursAreNotAlsoOpen(t *testing.T) {
	hour := begin.Truncate(time.Hour)
	rate := money.Rate(1_000_000_000_001)
	posting := func(from, to ledger.Account, begin, end time.Time) ledger.Posting {
		return ledger.Posting{At: end, Amount: rate.Until(end.Sub(begin)), Currency: "USD", From: from, To: to, Begin: begin, End: end,
			Quantity: ledger.Seconds(end.Sub(begin)), Unit: ledger.SecondUnit, Price: ledger.PriceOf(rate, true), Owner: ledger.Owner{Task: "j.1/0"}}
	}
	open, useful := ledger.Cost(ledger.Compute, ledger.Open), ledger.Cost(ledger.Compute, ledger.Useful)
	list := chargesOf([]ledger.Posting{
		posting(ledger.Payable("p"), open, hour, hour.Add(time.Hour)),
		posting(ledger.Payable("p"), open, hour.Add(time.Hour), hour.Add(2*time.Hour)), // into November
		posting(open, useful, hour, hour.Add(90*time.Minute)),
	}, charge.Span{})
	var uses []string
	for _, c := range list {
		uses = append(uses, fmt.Sprint(c.Use, " ", c.Time, " ", c.Provider))
	}
	if got := fmt.Sprint(uses); got != "[useful 1h30m0s  open 30m0s p]" {
		t.Fatal(got)
	}
}
