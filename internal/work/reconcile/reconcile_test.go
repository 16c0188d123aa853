package reconcile_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/lib/decimal"
	"scrimp/internal/lib/money"
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

// machine returns machine n, which had ten hours at $2.
func machine(n int) reconcile.Machine {
	at := month.Add(time.Duration(n) * 24 * time.Hour)
	return reconcile.Machine{Instance: fmt.Sprintf("i-%d", n), Job: fmt.Sprintf("j%d", n), Attempt: fmt.Sprintf("j%d.1", n), Type: "p5.48xlarge",
		Currency: money.USD, Cost: dec("20"), Plain: dec("20"), Hours: dec("10"), Begin: at, End: at.Add(10 * time.Hour)}
}

// line returns a line on the bill for machine n.
func line(at, n int, hours, billed string) bill.Line {
	m := machine(n)
	return bill.Line{At: at, Category: bill.Compute, SKU: "BoxUsage:p5.48xlarge", Resource: "arn:aws:ec2:us-east-1:1:instance/" + m.Instance,
		Currency: money.USD, Start: m.Begin, End: m.End, Unit: "Hrs", Quantity: bill.Number{Value: dec(hours), Known: true}, Billed: dec(billed)}
}

func change(l bill.Line, f func(*bill.Line)) bill.Line {
	f(&l)
	return l
}

// Each planted difference is found under its name, and a machine without one has no gap.
func TestReconcile_NamesEachPlantedDifference(t *testing.T) {
	b := reconcile.New(month, next)
	for n := 1; n <= 12; n++ {
		b.Own(machine(n))
	}
	for _, l := range []bill.Line{
		line(1, 1, "10", "20"), // correct
		line(2, 2, "10", "25"), // price
		line(3, 3, "12", "24"), // time
		line(4, 4, "10", "20"), // taxed
		change(line(5, 4, "0", "1.4"), func(l *bill.Line) { l.Category = bill.Tax }),
		line(6, 5, "10", "20"), // a credit
		change(line(7, 5, "0", "-3"), func(l *bill.Line) { l.Category = bill.Credit }),
		line(8, 6, "10", "20"), line(9, 6, "10", "20"), // duplicated
		line(10, 7, "10", "20.004"), // rounded to cents
		change(line(11, 8, "10", "20"), func(l *bill.Line) { l.Resource, l.Attempt = "", "j8.1" }), // by tag
		change(line(12, 9, "10", "20"), func(l *bill.Line) { l.Resource = "" }),                    // by time and type
		line(13, 10, "10", "20"),
		change(line(14, 10, "10", "7"), func(l *bill.Line) {
			l.Start, l.End, l.Correction = month.AddDate(0, -1, 3), month.AddDate(0, -1, 4), true
		}), // late
		change(line(15, 1, "10", "9"), func(l *bill.Line) { l.Resource, l.Job = "i-999", "j1" }),          // our tag, no machine of ours
		change(line(16, 1, "10", "8"), func(l *bill.Line) { l.Resource, l.Job = "", "j77" }),              // our tag, unknown job
		change(line(17, 1, "10", "6"), func(l *bill.Line) { l.Resource = "i-998" }),                       // our type and time
		change(line(18, 1, "10", "500"), func(l *bill.Line) { l.Resource, l.SKU = "i-997", "m5.large" }),  // not ours
		change(line(19, 12, "10", "20"), func(l *bill.Line) { l.Currency = "EUR" }),                       // no exchange rate
		change(line(20, 1, "1", "4"), func(l *bill.Line) { l.Resource, l.Category = "db", bill.Storage }), // not ours
	} {
		b.Row(bill.Row{Lines: []bill.Line{l}})
	}
	b.Row(bill.Row{Problem: &bill.Problem{Amount: bill.Number{Value: dec("3.5"), Known: true}, Currency: money.USD}})
	b.Row(bill.Row{Problem: &bill.Problem{}})
	v := b.Finish()
	want := map[string]map[reconcile.Part]string{"i-2": {reconcile.Price: "5"}, "i-3": {reconcile.Time: "4"}, "i-4": {reconcile.Tax: "1.4"},
		"i-5": {reconcile.Credit: "-3"}, "i-6": {reconcile.Duplicate: "20"}, "i-7": {reconcile.Price: "0.004"},
		"i-1": {}, "i-8": {}, "i-9": {}, "i-10": {}}
	by := map[string]string{"i-8": "tag", "i-9": "time"}
	if len(v.Gaps) != len(want) {
		t.Errorf("%d machines have a bill, want %d", len(v.Gaps), len(want))
	}
	for _, g := range v.Gaps {
		parts, known := want[g.Instance]
		if !known || len(parts) != len(g.Parts) || by[g.Instance] != "" && g.By != by[g.Instance] {
			t.Errorf("%+v", g)
		}
		for p, a := range parts {
			if g.Parts[p].Cmp(dec(a)) != 0 {
				t.Errorf("%s: %v, want %s %s", g.Instance, g.Parts, p, a)
			}
		}
	}
	usd := v.Totals[1]
	if len(v.NeverOurs) != 4 || usd.NeverOurs.Amount.Cmp(dec("23")) != 0 || usd.NotOurs.Amount.Cmp(dec("504")) != 0 || usd.NotOurs.Count != 2 ||
		len(v.Others) != 1 || usd.OtherMonths.Amount.Cmp(dec("7")) != 0 || v.Unread != 1 || usd.Unread.Amount.Cmp(dec("3.5")) != 0 {
		t.Errorf("%+v", v)
	}
	if len(v.NotBilled) != 2 || v.NotBilled[0].Resource != "i-11" || v.NotBilled[1].Resource != "i-12" ||
		!strings.Contains(v.NotBilled[1].Why, "EUR") {
		t.Errorf("%+v", v.NotBilled)
	}
}

// A machine of 6 minutes at $2 an hour is charged for a whole hour, by us and on the bill. If the bill says so, there
// is no gap; if the bill is higher, only the price explains the gap.
func TestReconcile_CountsAMinimumChargeAsHours(t *testing.T) {
	for billed, want := range map[string]string{"2": "", "2.5": "0.5"} {
		b := reconcile.New(month, next)
		m := machine(1)
		m.Cost, m.Plain, m.Hours = dec("0.2"), dec("0.2"), dec("0.1")
		b.Own(m)
		m.Cost, m.Plain, m.Hours = dec("1.8"), dec("0"), dec("0") // the minimum
		b.Own(m)
		b.Row(bill.Row{Lines: []bill.Line{line(1, 1, "1", billed)}})
		g := b.Finish().Gaps[0]
		if price := g.Parts[reconcile.Price]; want == "" && len(g.Parts) > 0 || want != "" && (len(g.Parts) != 1 || price.Cmp(dec(want)) != 0) {
			t.Errorf("billed %s: %v, want price %s", billed, g.Parts, want)
		}
	}
}

// A difference below half of the bill's last decimal is rounding, for each line of a machine.
func TestReconcile_CentsAreRounding(t *testing.T) {
	b := reconcile.New(time.Time{}, time.Time{})
	m := machine(1)
	m.Cost = dec("20.004999")
	b.Own(m)
	b.Row(bill.Row{Lines: []bill.Line{line(1, 1, "10", "20")}})
	g := b.Finish().Gaps[0]
	if len(g.Parts) != 1 || g.Parts[reconcile.Rounding].Cmp(dec("-0.004999")) != 0 {
		t.Errorf("%+v", g)
	}
}

// Whatever both sides contain, the parts of each gap add up to the gap, and the parts of the bill to its total.
func TestReconcile_AddsUpExactly(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		b, file, ours := reconcile.New(month, next), dec("0"), dec("0")
		for range rng.IntN(8) {
			m := machine(rng.IntN(5))
			m.Cost, m.OtherCost = dec(fmt.Sprintf("%de-12", rng.Int64N(1e14))), dec(fmt.Sprintf("%de-12", rng.Int64N(1e10)))
			m.Hours = dec(fmt.Sprintf("%de-9", rng.Int64N(1e11)))
			ours = ours.Add(m.Cost).Add(m.OtherCost)
			b.Own(m)
		}
		for i := range rng.IntN(20) {
			l := line(i+1, rng.IntN(6), fmt.Sprintf("%de-10", rng.Int64N(1e12)), fmt.Sprintf("%de-15", rng.Int64N(2e17)-5e16))
			l.Category = bill.Categories[rng.IntN(len(bill.Categories))]
			switch rng.IntN(6) {
			case 0:
				l.Resource = ""
			case 1:
				l.Resource, l.Attempt = "", "j2.1"
			case 2:
				l.Start = month.AddDate(0, -2, 0)
			case 3:
				l.Quantity.Known = false
			}
			for range 1 + rng.IntN(2) { // some lines come twice
				file = file.Add(l.Billed)
				b.Row(bill.Row{Lines: []bill.Line{l}})
			}
		}
		v := b.Finish()
		matched, gap, owned := dec("0"), dec("0"), dec("0")
		for _, g := range v.Gaps {
			parts := dec("0")
			for _, a := range g.Parts {
				parts = parts.Add(a)
			}
			if parts.Cmp(g.Gap) != 0 || g.Gap.Cmp(g.Billed.Sub(g.Ours)) != 0 {
				t.Fatalf("seed %d: %+v adds up to %s", seed, g, parts)
			}
			matched, gap, owned = matched.Add(g.Billed), gap.Add(g.Gap), owned.Add(g.Ours)
		}
		for _, s := range v.Totals {
			all := s.Matched.Amount.Add(s.NeverOurs.Amount).Add(s.NotOurs.Amount).Add(s.OtherMonths.Amount).Add(s.Unread.Amount).
				Add(s.Repeated.Amount)
			if all.Cmp(s.File) != 0 || s.File.Cmp(file) != 0 || s.Matched.Amount.Cmp(matched) != 0 || s.Gap.Cmp(gap) != 0 ||
				s.Ours.Cmp(ours) != 0 || owned.Add(s.NotBilled.Amount).Cmp(ours) != 0 {
				t.Fatalf("seed %d: %+v, the file has %s, scrimp %s", seed, s, file, ours)
			}
		}
	}
}

// A bill that is read twice bills what has no machine once: the repeated lines are apart, and so are late ones. Lines
// that differ in anything are no repetition.
func TestReconcile_CountsALineWithoutAMachineOnce(t *testing.T) {
	strange := change(line(2, 1, "10", "6"), func(l *bill.Line) { l.Resource = "i-998" })
	tagged := change(line(3, 1, "10", "8"), func(l *bill.Line) { l.Resource, l.Job = "", "j77" })
	late := change(line(4, 1, "10", "7"), func(l *bill.Line) { l.Start, l.End = month.AddDate(0, -1, 3), month.AddDate(0, -1, 4) })
	other := change(line(5, 1, "10", "6"), func(l *bill.Line) { l.Resource = "i-999" })
	later := change(strange, func(l *bill.Line) { l.At, l.Start = 7, l.Start.Add(time.Hour) })
	elsewhere := change(line(6, 1, "10", "8"), func(l *bill.Line) { l.Resource, l.Job = "", "j78" })
	ours := line(1, 1, "10", "20")
	all := []bill.Line{ours, strange, tagged, late, other, elsewhere, later}
	for name, bills := range map[string][][]bill.Line{"the same bill twice": {all, all}, "bills that share lines": {all[:4], all},
		"lines of one bill": {slices.Concat(all, all)}} {
		b := reconcile.New(month, next)
		b.Own(machine(1))
		for _, lines := range bills {
			b.Row(bill.Row{Lines: lines})
		}
		v := b.Finish()
		usd := v.Totals[0]
		if usd.NeverOurs.Count != 5 || usd.NeverOurs.Amount.Cmp(dec("34")) != 0 || len(v.NeverOurs) != 5 || usd.OtherMonths.Amount.Cmp(dec("7")) != 0 ||
			len(v.Others) != 1 || v.Gaps[0].Parts[reconcile.Duplicate].Cmp(dec("20")) != 0 {
			t.Errorf("%s: %+v", name, v)
		}
		rest := usd.File.Sub(usd.Matched.Amount).Sub(usd.NeverOurs.Amount).Sub(usd.OtherMonths.Amount)
		if usd.Repeated.Amount.Cmp(rest) != 0 || rest.Sign() <= 0 {
			t.Errorf("%s: %+v, repeated is not %s", name, usd, rest)
		}
	}
}

// A line is of a machine type only if it has the whole name of the type.
func TestReconcile_TypeIsAWholeName(t *testing.T) {
	for _, c := range []struct {
		name, sku string
		is        bool
	}{{"p5.48xlarge", "USE2-BoxUsage:p5.48xlarge", true}, {"n1-standard-1", "n1-standard-16", false}, {"n1-standard-16", "N1-Standard-16 VM.", true},
		{"m", "BoxUsage:m5.large", false}, {"m5", "m5.large", false}, {"m5", "m5.large m5", true}, {"xlarge", "m5.xlarge", false}, {"large", "m5.2xlarge", false},
		{"a100", "gpu_1x_a100", false}, {"m5.large", "$0.096 per m5.large, an hour", true}} {
		b := reconcile.New(month, next)
		m := machine(1)
		m.Type = c.name
		b.Own(m)
		l := line(1, 1, "10", "20")
		l.Resource, l.SKU = "", c.sku
		b.Row(bill.Row{Lines: []bill.Line{l}})
		if v := b.Finish(); (len(v.Gaps) == 1) != c.is {
			t.Errorf("%s in %q: %+v", c.name, c.sku, v)
		}
	}
}
