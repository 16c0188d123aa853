package market_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

// trace returns a valid market: one spot offer with two prices and two periods separated by a gap, and an on-demand
// offer.
func trace() market.Trace {
	offer := market.Offer{
		Provider: "local", Region: "us", Zone: "us-a", Machine: "c2", Capacity: market.Spot, CPUs: 2, Memory: 8 * size.GiB,
		Accelerator: "L4", Accelerators: 1, Speed: 1.5, Notice: time.Minute, Currency: money.USD, Billing: market.Billing{Minimum: time.Minute, FreeIfInterruptedWithin: 2 * time.Minute},
	}
	offer.ID = market.ID(offer)
	firm := offer
	firm.Capacity = market.OnDemand
	firm.ID = market.ID(firm)
	return market.Trace{
		Name: "test", Currency: money.USD, Speed: 60, Repeat: 24 * time.Hour,
		Lines: []market.TraceLine{
			{
				Offer: offer, Price: []market.Price{{At: 0, Rate: 300}, {At: time.Hour, Rate: 400}},
				Available: []market.Span{{From: 0, To: 2 * time.Hour, Notice: time.Minute}, {From: 3 * time.Hour, To: 24 * time.Hour}},
			},
			{Offer: firm, Price: []market.Price{{Rate: 1000}}},
		},
	}
}

// Each bad trace is refused in words that name the offer, the field and what is wrong.
func TestValidate_NamesProblem(t *testing.T) {
	if err := trace().Validate(); err != nil {
		t.Fatalf("a good trace: %v", err)
	}
	const offer = "offer local/us-a/c2/spot: "
	span := func(from, to time.Duration) market.Span { return market.Span{From: from, To: to} }
	// reach into the first offer
	line := func(f func(l *market.TraceLine)) func(*market.Trace) {
		return func(tr *market.Trace) { f(&tr.Lines[0]) }
	}
	for _, c := range []struct {
		want   string
		change func(*market.Trace)
	}{
		{"speed: 0 is not between 0.001 and 1,000,000: write 1 for real time", func(tr *market.Trace) { tr.Speed = 0 }},
		{"speed: 1e-12 is not between 0.001 and 1,000,000: write 1 for real time", func(tr *market.Trace) { tr.Speed = 1e-12 }},
		{"speed: -1 is not", func(tr *market.Trace) { tr.Speed = -1 }},
		{"speed: NaN is not", func(tr *market.Trace) { tr.Speed = math.NaN() }},
		{"speed: +Inf is not", func(tr *market.Trace) { tr.Speed = math.Inf(1) }},
		{"repeat: -1s is negative", func(tr *market.Trace) { tr.Repeat = -time.Second }},
		{"currency: missing", func(tr *market.Trace) { tr.Currency = "" }},
		{"offers: none", func(tr *market.Trace) { tr.Lines = nil }},
		{"offers: local/us-a/c2/spot stands twice", func(tr *market.Trace) { tr.Lines[1] = tr.Lines[0] }},
		{offer + `currency: "EUR" in a market of USD`, line(func(l *market.TraceLine) { l.Offer.Currency = "EUR" })},
		{offer + `currency: "" in a market of USD`, line(func(l *market.TraceLine) { l.Offer.Currency = "" })},
		{offer + "zone: missing", line(func(l *market.TraceLine) { l.Offer.Zone = "" })},
		{offer + `zone: "us/a"`, line(func(l *market.TraceLine) { l.Offer.Zone = "us/a" })},
		{offer + `zone: "us a"`, line(func(l *market.TraceLine) { l.Offer.Zone = "us a" })},
		{offer + "id: the zone, machine and capacity make it local/us-z/c2/spot", line(func(l *market.TraceLine) { l.Offer.Zone = "us-z" })},
		{offer + "machine: missing", line(func(l *market.TraceLine) { l.Offer.Machine = "" })},
		{offer + `capacity: "on demand" is none of spot, on-demand, reserved`, line(func(l *market.TraceLine) { l.Offer.Capacity = "on demand" })},
		{offer + "cpus: 0 is not positive", line(func(l *market.TraceLine) { l.Offer.CPUs = 0 })},
		{offer + "memory: missing", line(func(l *market.TraceLine) { l.Offer.Memory = 0 })},
		{offer + `accelerator: 0 of "L4"`, line(func(l *market.TraceLine) { l.Offer.Accelerators = 0 })},
		{offer + `accelerator: 1 of ""`, line(func(l *market.TraceLine) { l.Offer.Accelerator = "" })},
		{offer + `accelerator: -1 of "L4"`, line(func(l *market.TraceLine) { l.Offer.Accelerators = -1 })},
		{offer + "speed: NaN", line(func(l *market.TraceLine) { l.Offer.Speed = math.NaN() })},
		{offer + "speed: -0.5", line(func(l *market.TraceLine) { l.Offer.Speed = -0.5 })},
		{offer + "speed: 1e-09 is not between 0.000001 and 1,000,000", line(func(l *market.TraceLine) { l.Offer.Speed = 1e-9 })},
		{offer + "notice: -1s is negative", line(func(l *market.TraceLine) { l.Offer.Notice = -time.Second })},
		{offer + "boot: -1s", line(func(l *market.TraceLine) { l.Offer.Boot = -time.Second })},
		{offer + "max_lifetime: -1s", line(func(l *market.TraceLine) { l.Offer.MaxLifetime = -time.Second })},
		{offer + "billing.minimum: -1s", line(func(l *market.TraceLine) { l.Offer.Billing.Minimum = -time.Second })},
		{offer + "billing.free_if_interrupted_within: -1s", line(func(l *market.TraceLine) { l.Offer.Billing.FreeIfInterruptedWithin = -time.Second })},
		{offer + "price: missing: an unknown price is not zero", line(func(l *market.TraceLine) { l.Price = nil })},
		{offer + "price: the first is at 1s: begin at 0s", line(func(l *market.TraceLine) { l.Price[0].At = time.Second })}, // a hole at the start
		{offer + "price: 0 at 1h0m0s is not above zero", line(func(l *market.TraceLine) { l.Price[1].Rate = 0 })},
		{offer + "price: -0.000000000005 at 0s is not above zero", line(func(l *market.TraceLine) { l.Price[0].Rate = -5 })},
		{offer + "price: 0s does not come after 0s", line(func(l *market.TraceLine) { l.Price[1].At = 0 })},
		{offer + "price: -1s does not come after 0s", line(func(l *market.TraceLine) { l.Price[1].At = -time.Second })},
		{offer + "price: the one at 24h0m0s is never reached: the market repeats after 24h0m0s", line(func(l *market.TraceLine) { l.Price[1].At = 24 * time.Hour })},
		{offer + "available: the span from -1s begins before the market", line(func(l *market.TraceLine) { l.Available[0].From = -time.Second })},
		{offer + "available: the span from 2h0m0s to 1h0m0s ends before it begins", line(func(l *market.TraceLine) { l.Available[0] = span(2*time.Hour, time.Hour) })},
		{offer + "available: the span from 1h0m0s to 1h0m0s ends before it begins", line(func(l *market.TraceLine) { l.Available[0] = span(time.Hour, time.Hour) })},
		{offer + "available: the span from 1h0m0s overlaps the one before it, to 2h0m0s: join them", line(func(l *market.TraceLine) { l.Available[1].From = time.Hour })},
		{offer + "available: the span from 1h0m0s comes after the one from 3h0m0s: sort them", line(func(l *market.TraceLine) {
			l.Available = []market.Span{span(3*time.Hour, 4*time.Hour), span(time.Hour, 2*time.Hour)}
		})},
		{offer + "available: the span to 25h0m0s goes past the repetition after 24h0m0s", line(func(l *market.TraceLine) { l.Available[1].To = 25 * time.Hour })},
		{offer + "available: the notice of -1s is negative", line(func(l *market.TraceLine) { l.Available[0].Notice = -time.Second })},
		{"offer local/us-a/c2/on-demand: available: only spot comes and goes", func(tr *market.Trace) { tr.Lines[1].Available = []market.Span{span(0, time.Hour)} }},
	} {
		tr := trace()
		c.change(&tr)
		if err := tr.Validate(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v\nwant it to begin %q", err, c.want)
		}
	}
}

// Adjacent spans do not overlap: the provider still interrupts the machines of the first at its end.
func TestValidate_SpansMayTouch(t *testing.T) {
	tr := trace()
	tr.Lines[0].Available = []market.Span{{From: 0, To: time.Hour}, {From: time.Hour, To: 2 * time.Hour}}
	must.Do(t, tr.Validate())
	if lost, _, ok := tr.Loss(tr.Lines[0], 30*time.Minute); !ok || lost != time.Hour {
		t.Errorf("rented at 30m: lost %v, at %v; want 1h", ok, lost)
	}
}
