package market_test

import (
	"strings"
	"testing"
	"time"

	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
)

// An offer, a price or a market with numbers out of bounds is refused with the field, whoever sells it.
func TestValidate_NumbersHaveBounds(t *testing.T) {
	t.Parallel()
	good := market.Offer{ID: "p/z/m/spot", Provider: "p", Zone: "z", Machine: "m", Capacity: market.Spot, CPUs: 1, Memory: 1 << 30,
		Currency: "USD", Speed: 1}
	long := quantity.Decade + time.Hour
	for field, change := range map[string]func(*market.Offer){
		"cpus": func(o *market.Offer) { o.CPUs = 2_000_000_000 }, "machines": func(o *market.Offer) { o.Machines = 2_000_000_000 },
		"accelerators": func(o *market.Offer) { o.Accelerator, o.Accelerators = "H100", 2_000_000_000 },
		"boot":         func(o *market.Offer) { o.Boot = long }, "billing.minimum": func(o *market.Offer) { o.Billing.Minimum = long },
	} {
		o := good
		change(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := (market.Quote{Offer: good.ID, Priced: true, Rate: 2e18}).Validate(); err == nil || !strings.Contains(err.Error(), "1000000") {
		t.Errorf("a price of two million: %v", err)
	}
	if err := (market.Quote{Offer: good.ID, Priced: true, Rate: 1e18}).Validate(); err != nil {
		t.Error(err)
	}
	for field, change := range map[string]func(*market.Trace){
		"repeat": func(t *market.Trace) { t.Repeat = long }, "price": func(t *market.Trace) { t.Lines[0].Price[0].Rate = 2e18 },
		"available": func(t *market.Trace) { t.Lines[0].Available = []market.Span{{From: 0, To: long}} },
	} {
		trace := market.Trace{Name: "m", Currency: "USD", Speed: 1, Lines: []market.TraceLine{{Offer: good, Price: []market.Price{{Rate: 1e12}}}}}
		if err := trace.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&trace)
		if err := trace.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
