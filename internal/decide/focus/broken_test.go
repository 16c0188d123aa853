package focus_test

import (
	"bytes"
	"encoding/csv"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/charge"
	"scrimp/internal/decide/focus"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/focustest"
	"scrimp/internal/test/must"
)

// shared is the cost of a task on a machine that it shares.
func shared() charge.Charge {
	hour := begin.Truncate(time.Hour)
	rate := money.Rate(2e12)
	return charge.Charge{Begin: hour, End: hour.Add(90 * time.Second), Timed: true, Time: 90 * time.Second, Amount: rate.Until(90 * time.Second),
		Price: ledger.PriceOf(rate, true), ListPrice: ledger.PriceOf(2e12, true), Currency: "USD", Category: ledger.Compute, Use: ledger.Useful,
		Phase: ledger.Accrued, Provider: "aws", Region: "us-east-1", SKU: "p5.48xlarge",
		Owner:  ledger.Owner{Team: "vision", Project: "p", Job: "lm", Task: "lm.1/0", Instance: "i-1"},
		Source: charge.Source{Capacity: market.Spot, Accelerators: 8, Shared: true, Part: 1, Whole: 3}}
}

// The check of exported files finds each broken rule of the specification: a row that is valid, and then not.
func TestRules_AreFoundWhereBroken(t *testing.T) {
	w := focus.NewWriter(focus.V14)
	read := func(rows ...[]string) string {
		var file bytes.Buffer
		out := csv.NewWriter(&file)
		must.Do(t, out.WriteAll(append([][]string{w.Header()}, rows...)))
		_, broken, err := focustest.Read(&file, "1.4")
		must.Do(t, err)
		return strings.Join(broken, "\n")
	}
	valid := w.Row(nil, shared())
	if text := read(valid, valid); text != "" {
		t.Fatal(text)
	}
	for _, c := range []struct{ column, value, says string }{
		{"BilledCost", "0.06", "EffectiveCost is"}, {"ListCost", "0.06", "ListUnitPrice 2.0"}, {"ContractedUnitPrice", "3.0", "ContractedUnitPrice 3.0"},
		{"PricingQuantity", "1,5", "PricingQuantity is"}, {"ChargePeriodEnd", "2026-10-30 22:01:30", "ChargePeriodEnd is"},
		{"BillingPeriodEnd", "2026-11-02T00:00:00Z", "is no month"}, {"ChargeCategory", "usage", "ChargeCategory is"}, {"ServiceCategory", "", "ServiceCategory is null"},
		{"Tags", `{"a":{"b":1}}`, "Tags is"}, {"Tags", `{"a":"1","a":"2"}`, "Tags is"}, {"Tags", "team", "Tags is no JSON object"}, {"AllocatedTags", `{"team":"vision"}`, "is in Tags and in AllocatedTags"},
		{"AllocatedResourceName", "", "AllocatedResourceName is"}, {"AllocatedMethodDetails", `{"Elements":[]}`, "AllocatedMethodDetails is"},
		{"AllocatedMethodDetails", `{"Elements":[{"AllocatedRatio":1.5}]}`, "AllocatedMethodDetails is"}, {"SkuPriceDetails", `{"GpuCount":"8"}`, "SkuPriceDetails has GpuCount"},
		{"SkuPriceDetails", `{"Capacity":"spot"}`, "SkuPriceDetails has Capacity"}, {"SkuPriceDetails", `{"InstanceType":"m"}`, "details of price"},
		{"SubAccountType", "", "SubAccountType is"}, {"RegionName", "", "RegionName is"}, {"ResourceType", "", "ResourceType is"}, {"SkuMeter", "", "SkuMeter is"},
		{"CommitmentDiscountStatus", "Used", "without CommitmentDiscountId"}, {"CapacityReservationStatus", "Used", "without CapacityReservationId"},
		{"InvoiceIssuerName", "scrimp", "the invoice is"}, {"PricingUnit", "Seconds", "PricingUnit is"}} {
		row := slices.Clone(valid)
		row[slices.Index(w.Header(), c.column)] = c.value
		if text := read(valid, row); !strings.Contains(text, c.says) || strings.Contains(text, "row 1:") {
			t.Errorf("%s = %q: %q, want %q", c.column, c.value, text, c.says)
		}
	}
}

// Tags of a task on a shared machine are in one column: the specification forbids them in two. Rows of one price have
// one description of the machine, which a charge for something else has not.
func TestRow_SharedMachineAndOtherCharges(t *testing.T) {
	got := map[string]string{}
	w, c := focus.NewWriter(focus.V14), shared()
	for i, v := range w.Row(nil, c) {
		got[w.Header()[i]] = v
	}
	if !strings.Contains(got["Tags"], `"team":"vision"`) || got["AllocatedTags"] != "" || got["AllocatedResourceId"] != "lm.1/0" ||
		got["AllocatedResourceName"] != "lm" || !strings.Contains(got["AllocatedMethodDetails"], "0.333333333333") {
		t.Errorf("%v", got)
	}
	c.Category = ledger.Storage
	for i, v := range w.Row(nil, c) {
		got[w.Header()[i]] = v
	}
	if got["SkuPriceDetails"] != "" || got["SkuPriceId"] == "" {
		t.Errorf("the price of a disk is described as a machine: %s", got["SkuPriceDetails"])
	}
}
