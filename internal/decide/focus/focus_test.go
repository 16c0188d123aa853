package focus_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/focus"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/focustest"
	_ "scrimp/internal/test/sameseed"
)

var begin = time.Date(2026, 10, 30, 22, 13, 7, 1234567, time.UTC)

// odd lists names that a loader or a spreadsheet misreads.
var odd = []string{"", "a", "2026", "1e5", "NaN", "null", "true", "-", "=1+1", "0", "2026-10-01", "東京", "<b>\"x\",\n"}

// drawn draws a charge that the ledger can produce: its amount is time × price up to the last digits.
func drawn(t *rapid.T) charge.Charge {
	at := begin.Add(time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "begin")))
	c := charge.Charge{Begin: at, End: at.Add(time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "span"))), Currency: "USD",
		Category: rapid.SampledFrom([]ledger.Category{ledger.Compute, ledger.Storage, ledger.Transfer, ledger.Image, ledger.Address,
			ledger.Overhead, ledger.Fixed, "new"}).Draw(t, "category"),
		Use: ledger.Useful, Phase: ledger.Accrued, Provider: rapid.SampledFrom(odd).Draw(t, "provider"),
		Region: rapid.SampledFrom(odd).Draw(t, "region"), SKU: rapid.SampledFrom(odd).Draw(t, "sku"),
		Owner: ledger.Owner{Tenant: "default", Team: rapid.SampledFrom(odd).Draw(t, "team"), Project: rapid.SampledFrom(odd).Draw(t, "project"),
			Job: rapid.SampledFrom(odd).Draw(t, "job"), Part: rapid.SampledFrom(odd).Draw(t, "part"), Task: "t.1/0",
			Instance: rapid.SampledFrom(odd).Draw(t, "instance")},
		Source: charge.Source{Capacity: rapid.SampledFrom([]market.Capacity{"", market.Spot, market.OnDemand, market.Reserved}).Draw(t, "capacity"),
			Shared: rapid.Bool().Draw(t, "shared"), Part: 1, Whole: 3},
	}
	if end := charge.NextMonth(c.Begin); c.End.After(end) {
		c.End = end
	}
	if c.Timed = rapid.Bool().Draw(t, "timed"); c.Timed {
		c.Time = c.End.Sub(c.Begin)
		c.Price = ledger.PriceOf(money.Rate(rapid.Int64Range(0, 1e15).Draw(t, "rate")), true)
		c.ListPrice = ledger.PriceOf(money.Rate(rapid.Int64Range(0, 1e15).Draw(t, "list")), rapid.Bool().Draw(t, "known"))
		c.Amount = c.Price.Rate.Until(c.Time)
	}
	c.Amount = c.Amount.Add(money.Picos(rapid.Int64Range(0, 1).Draw(t, "digit")))
	if c.Corrects = rapid.Bool().Draw(t, "corrects"); c.Corrects {
		c.Amount = c.Amount.Neg()
		c.Booked = c.End.Add(time.Duration(rapid.Int64Range(0, int64(40*24*time.Hour)).Draw(t, "booked")))
		part := rapid.SampledFrom([]string{"", "price", "time", "rounding", "tax", "credit", "commitment", "other", "duplicate"}).Draw(t, "part")
		if part != "" { // a correction to a bill, of either sign
			c.Rule, c.Timed, c.Phase = ledger.ReconciledRule(part), false, ledger.Billed
			if rapid.Bool().Draw(t, "more") {
				c.Amount = c.Amount.Neg()
			}
		}
	}
	return c
}

// Every row of every charge follows the rules of the format in each version, and the costs add up exactly.
func TestRows_KeepTheRulesOfTheFormat(t *testing.T) {
	for _, v := range []focus.Version{focus.V12, focus.V13, focus.V14} {
		t.Run(v.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				var file bytes.Buffer
				w, out := focus.NewWriter(v), csv.NewWriter(&file)
				_ = out.Write(w.Header())
				var want money.Amount
				for range rapid.IntRange(1, 5).Draw(t, "rows") {
					c := drawn(t)
					want = want.Add(c.Amount)
					_ = out.Write(w.Row(nil, c))
				}
				out.Flush()
				got, broken, err := focustest.Read(&file, v.String())
				if err != nil || len(broken) > 0 {
					t.Fatal(err, broken)
				}
				if got.Cost.Cmp(new(big.Rat).SetFrac(want.Big(), big.NewInt(1e12))) != 0 {
					t.Fatalf("the rows add up to %s, the charges to %v", got.Cost.FloatString(12), want)
				}
			})
		})
	}
}

// The columns are those of the specification, 57, 65 and 65, by name, followed by scrimp's own.
func TestColumns_MatchTheSpecification(t *testing.T) {
	for v, n := range map[focus.Version]int{focus.V12: 57, focus.V13: 65, focus.V14: 65} {
		var names []string
		for _, c := range focus.Columns(v) {
			if c.Level != focus.Custom {
				names = append(names, c.Name)
			}
		}
		if len(names) != n || !slices.Equal(names, focustest.Columns(v.String())) {
			t.Errorf("%v has %d columns: %v", v, len(names), names)
		}
	}
}

// 90 s at $0.9731 per hour are 0.025 hours and $0.0243275, with a list price of $2.
func TestRow_MatchesTheExample(t *testing.T) {
	hour := begin.Truncate(time.Hour)
	rate, _ := money.ParseRate("0.9731")
	c := charge.Charge{Begin: hour, End: hour.Add(90 * time.Second), Timed: true, Time: 90 * time.Second, Amount: rate.Until(90 * time.Second),
		Price: ledger.PriceOf(rate, true), ListPrice: ledger.PriceOf(2e12, true), Currency: "USD", Category: ledger.Compute, Use: ledger.Lost,
		Phase: ledger.Accrued, Provider: "aws", Region: "us-east-1", SKU: "p5.48xlarge", Owner: ledger.Owner{Job: "lm-1", Project: "2026"},
		Source: charge.Source{Capacity: market.Spot, Accelerators: 8}}
	w := focus.NewWriter(focus.V14)
	got := map[string]string{}
	for i, v := range w.Row(nil, c) {
		got[w.Header()[i]] = v
	}
	for name, want := range map[string]string{"BilledCost": "0.0243275", "PricingQuantity": "0.025", "ContractedUnitPrice": "0.9731",
		"ListCost": "0.05", "ListUnitPrice": "2.0", "SubAccountId": "project-2026", "PricingCategory": "Dynamic", "x_Outcome": "lost",
		"SkuPriceDetails": `{"InstanceType":"p5.48xlarge","GpuCount":8,"x_Capacity":"spot"}`, "SkuPriceId": "aws/us-east-1/p5.48xlarge/spot",
		"ChargePeriodStart": "2026-10-30T22:00:00Z", "ChargePeriodEnd": "2026-10-30T22:01:30Z", "BillingPeriodEnd": "2026-11-01T00:00:00Z",
		"ChargeDescription": "p5.48xlarge spot in us-east-1 for job lm-1: lost", "ServiceProviderName": "aws", "InvoiceId": ""} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// A correction has the class Correction once its month is over: the month before is invoiced, the current one is not.
func TestRow_CorrectionWithinItsMonthHasNoClass(t *testing.T) {
	start := time.Date(2026, 10, 5, 8, 0, 0, 0, time.UTC)
	november := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	hourly := ledger.Posting{Amount: money.Picos(4e12), Currency: "USD", To: ledger.Cost(ledger.Compute, ledger.Useful), Begin: start,
		End: start.Add(time.Hour), Unit: ledger.SecondUnit, Price: ledger.PriceOf(4e12, true), At: start.Add(time.Hour)}
	for _, c := range []struct {
		booked time.Time
		class  string
	}{{start.Add(2 * time.Hour), ""}, {november.Add(-time.Second), ""}, {november, "Correction"}, {november.AddDate(0, 3, 0), "Correction"}} {
		late := hourly
		late.At, late.Amount, late.Rule, late.Unit = c.booked, money.Picos(1e12), "priced_later", ""
		back := late
		back.From, back.To = late.To, ledger.Account("")
		w, got := focus.NewWriter(focus.V12), []string{}
		at := slices.Index(w.Header(), "ChargeClass")
		s := charge.NewStream(charge.Span{}, func(c charge.Charge) { got = append(got, w.Row(nil, c)[at]) })
		for _, p := range []ledger.Posting{hourly, late, back} {
			s.Add(&p, charge.Source{})
		}
		s.End()
		if want := []string{"", c.class, c.class}; !slices.Equal(got, want) {
			t.Errorf("booked at %v: the classes are %q, want %q", c.booked, got, want)
		}
	}
}

// No text starts like a formula, and a charge by a rule has the price of its machine, as in the price sheet.
func TestRow_PrefixesOddNames(t *testing.T) {
	c := charge.Charge{Begin: begin, End: begin.Add(time.Hour), Amount: money.Picos(5), Currency: "USD", Category: ledger.Compute, Use: ledger.Idle,
		Rule: market.RuleMinimum, Provider: "-p", Region: "007", SKU: "=cmd()", Source: charge.Source{Capacity: market.Spot}}
	w := focus.NewWriter(focus.V14)
	got := map[string]string{}
	for i, v := range w.Row(nil, c) {
		got[w.Header()[i]] = v
	}
	for name, want := range map[string]string{"ChargeDescription": "sku-=cmd() spot in 007: idle (minimum)", "RegionId": "region-007",
		"SkuId": "sku-=cmd()", "ServiceProviderName": "provider--p", "SkuPriceId": "provider--p/region-007/sku-=cmd()/spot"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for _, k := range focus.Columns(focus.V14) {
		if v := got[k.Name]; k.Kind == focus.Text && v != "" && strings.ContainsAny(v[:1], "=+-@") {
			t.Errorf("%s is %q", k.Name, v)
		}
	}
}

func TestParseVersion_ErrorListsTheVersions(t *testing.T) {
	if _, err := focus.ParseVersion("1.1"); err == nil || fmt.Sprint(err) != `FOCUS "1.1" is not known: write 1.2, 1.3 or 1.4` {
		t.Error(err)
	}
}
