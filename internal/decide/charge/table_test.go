package charge_test

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
)

// A cell that a spreadsheet would read as a formula starts with a quote; amounts stay numbers.
func TestTable_IsExactAndNoFormula(t *testing.T) {
	var table charge.Table
	c := charge.Charge{Begin: begin, End: begin.Add(90 * time.Minute), Amount: money.Picos(-1_500_000_000_001), Currency: "USD",
		Timed: true, Time: 90 * time.Minute, Price: ledger.PriceOf(1e12, true), Use: ledger.Idle, Corrects: true,
		Owner: ledger.Owner{Team: "=1+1", Project: "-2+3", Job: "@a", Instance: "+i"}}
	got := map[string]string{}
	for i, cell := range table.Row(nil, c) {
		got[table.Header()[i]] = cell
	}
	for name, want := range map[string]string{"team": "'=1+1", "project": "'-2+3", "job": "'@a", "instance": "'+i",
		"cost": "-1.500000000001", "hours": "-1.5", "price_per_hour": "1", "list_price_per_hour": "", "use": "idle"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// Names that a spreadsheet would convert to a number, a date or nothing start with a quote; other names do not
// change.
func TestTable_KeepsNamesAsNames(t *testing.T) {
	var table charge.Table
	for name, misread := range map[string]bool{"1e5": true, "007": true, "2026-01-01": true, "2026-01-01T08:00:00Z": true, "mar-1": true,
		"1 March 2026": true, "3:15 pm": true, "NaN": true, "true": true, "-5": true, " =1": true, "５": true, "50%": true,
		"lm-1": false, "march": false, "mars-1": false, "1e5x": false, "p5.48xlarge": false, "東京": false, "v2": false, "may-day": false} {
		row := table.Row(nil, charge.Charge{Begin: begin, End: begin, Owner: ledger.Owner{Job: name}})
		if got := row[slices.Index(table.Header(), "job")]; got != map[bool]string{true: "'" + name, false: name}[misread] {
			t.Errorf("%q is %q", name, got)
		}
	}
}

// Hours × price is the cost within 1e-9, and hours have no more decimals than needed.
func TestTable_HoursTimesPriceIsTheCost(t *testing.T) {
	var table charge.Table
	row := func(d time.Duration, rate money.Rate) (hours, price, cost *big.Rat, text string) {
		list := table.Row(nil, charge.Charge{Begin: begin, End: begin.Add(d), Timed: true, Time: d, Amount: rate.Until(d), Price: ledger.PriceOf(rate, true)})
		of := func(name string) *big.Rat {
			v, _ := new(big.Rat).SetString(list[slices.Index(table.Header(), name)])
			return v
		}
		return of("hours"), of("price_per_hour"), of("cost"), list[slices.Index(table.Header(), "hours")]
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		d, rate := time.Duration(1+r.Int64N(int64(1000*time.Hour))), money.Rate(r.Int64N(1e18))
		hours, price, cost, _ := row(d, rate)
		off := new(big.Rat).Mul(hours, price)
		if off.Sub(off, cost).Abs(off).Cmp(big.NewRat(1, 1e9)) >= 0 {
			t.Fatalf("%v at %v: off by %s", d, rate, off.FloatString(15))
		}
	}
	if _, _, _, text := row(744_352_516_000, 30e12); text != "0.2067645878" { // 0.20676458777…
		t.Error(text)
	}
	if _, _, _, text := row(90*time.Minute, 3e12); text != "1.5" {
		t.Error(text)
	}
}

func TestParseSpan_NamesTheFieldAndTheFix(t *testing.T) {
	for _, bad := range [][3]string{{"7d", "", "since"}, {"", "2026-10-01T00:30:00Z", "until"}, {"2026-10", "2026-09", "until"},
		{"2026-10", "2026-10-01", "until"}, {"0001-01", "", "since"}} {
		_, err := charge.ParseSpan(bad[0], bad[1])
		if wrong, ok := errors.AsType[*charge.SpanError](err); !ok || wrong.Field != bad[2] || wrong.Fix == "" {
			t.Errorf("%q: %v", bad, err)
		}
	}
	s, err := charge.ParseSpan("2026-10", "2026-10-15T08:00:00+02:00")
	if err != nil || s.Since.Format(time.RFC3339) != "2026-10-01T00:00:00Z" || s.Until.Format(time.RFC3339) != "2026-10-15T06:00:00Z" {
		t.Error(s, err)
	}
}
