package core

import (
	"testing"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// A bill's lines other than machine time are booked under their own category, with item, time and price. The
// machine time is corrected separately.
func TestBill_BooksEachLineUnderItsCategory(t *testing.T) {
	w := newWarmWith(t, 0, func(c *Config) { c.Idle = 0 })
	end := agentsStart.Add(w.at).Add(10 * time.Second)
	w.step(10*time.Second, InstanceEnded{Instance: "i1", Until: end, Cause: "terminated"})
	span := end.Sub(agentsStart)
	disk := money.Rate(5e9)
	out := w.step(time.Minute, BillReceived{Instance: "i1", Launch: "j.1", Lines: []BillLine{
		{Amount: hour(span).Sub(disk.Until(span)), Currency: money.USD, From: agentsStart, To: end},
		{Rule: "disk", Category: ledger.Storage, SKU: "gp3 40 GiB", Rate: disk, Amount: disk.Until(span), Currency: money.USD, From: agentsStart, To: end},
		{Rule: "tax", Amount: money.Picos(100), Currency: money.USD}}})
	sums := map[ledger.Category]money.Amount{}
	for _, p := range out.Postings {
		if _, _, cost := p.To.IsCost(); !cost {
			if _, _, cost = p.From.IsCost(); !cost {
				continue
			}
		}
		sums[p.Category] = sums[p.Category].Add(Cost(p))
		if p.Category == ledger.Storage && (p.SKU != "gp3 40 GiB" || p.Quantity != ledger.Seconds(span) || p.Price != ledger.PriceOf(disk, true) ||
			!p.Begin.Equal(agentsStart) || !p.End.Equal(end)) {
			t.Errorf("the disk is posted as %+v", p)
		}
		if p.Category == ledger.Compute && (p.SKU != "m" || p.Zone != "z" || p.Provider != "p") {
			t.Errorf("the machine is posted as %+v", p)
		}
	}
	if want := disk.Until(span); sums[ledger.Storage] != want || sums[ledger.Compute] != want.Neg().Add(money.Picos(100)) {
		t.Errorf("the bill added %v, want %v of storage and as much less of compute, but for the tax", sums, want)
	}
	w.is("j", hour(span).Add(money.Picos(100)))
}

// Time posted before an older price arrives keeps the price known then. The rest is a line of its own, and the sum
// is exactly what the prices give.
func TestBill_BooksALatePriceAsItsOwnLine(t *testing.T) {
	for name, later := range map[string]money.Rate{"dearer": 2e12, "cheaper": 5e11} {
		t.Run(name, func(t *testing.T) {
			h := &hall{Machine: New(), t: t, at: dawn}
			offer := market.Offer{ID: "p/z/m/spot", Provider: "p", Region: "r", Zone: "z", Machine: "m", Capacity: market.Spot, CPUs: 1, Speed: 1, Currency: money.USD}
			firm := offer
			firm.ID, firm.Capacity = "p/z/m/on-demand", market.OnDemand
			h.tell(Configured{Config: DefaultConfig()})
			h.tell(MarketSeen{Offers: []market.Offer{offer, firm}, Quotes: []market.Quote{
				{Offer: offer.ID, Rate: 1e12, Priced: true, Available: true, At: dawn}, {Offer: firm.ID, Rate: 3e12, Priced: true, Available: true, At: dawn}}})
			h.tell(JobSubmitted{Job: "j", Terms: Terms{Name: "j", Currency: money.USD, Steps: 100, Priority: 1, Nodes: 1, Saves: true}})
			h.tell(LaunchDone{Launch: "j.1", Instance: "i", Offer: offer.ID, Rate: 1e12, From: dawn})
			var list []ledger.Posting
			say := func(after time.Duration, b Body) {
				h.at = h.at.Add(after)
				list = append(list, h.Step(Event{At: h.at, Schema: Schema, Tenant: "default", Body: b}).Postings...)
			}
			say(time.Minute, AgentClaimed{Attempt: "j.1"})
			say(0, AttemptStarted{Attempt: "j.1"})
			say(2*time.Hour, Tick{}) // posts the first hours
			at := h.at.Add(-30 * time.Minute)
			say(time.Minute, MarketSeen{Quotes: []market.Quote{{Offer: offer.ID, Rate: later, Priced: true, Available: true, At: at}}})
			say(time.Hour, AttemptEnded{Attempt: "j.1", Reason: "completed", Step: 100})
			say(0, InstanceEnded{Instance: "i", Until: h.at, Cause: "terminated"})
			total, late := money.Amount{}, 0
			for _, p := range list {
				total = total.Add(Cost(p))
				if p.Rule == PricedLater {
					late++
				}
				if !p.Quantity.IsZero() && p.ListPrice != ledger.PriceOf(3e12, true) {
					t.Errorf("the list price of %+v is %v", p, p.ListPrice)
				}
			}
			want := money.Rate(1e12).Until(at.Sub(dawn)).Add(later.Until(h.at.Sub(at)))
			if total != want || late == 0 {
				t.Errorf("in all %v is posted, %d of it later; the prices say %v", total, late, want)
			}
		})
	}
}
