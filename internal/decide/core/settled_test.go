package core

import (
	"fmt"
	"testing"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

// Jobs of one seat for which there is no room arrive and end. After each step, and after a restart, the free seats are
// counted: several readers may ask for them at once, and the next decision need not count the jobs that came meanwhile.
func TestReserved_SeatsAreCountedAfterEachStep(t *testing.T) {
	w := &warmRig{Machine: New(), t: t, cost: map[string]money.Amount{}}
	settled := func(when string) {
		t.Helper()
		if !w.market.Settled() {
			t.Fatalf("%s: jobs are left to count", when)
		}
	}
	o := market.Offer{ID: "p/z/m/reserved", Provider: "p", Zone: "z", Machine: "m", Capacity: market.Reserved, CPUs: 1,
		Speed: 1, Currency: money.USD, Reserved: market.Reservation{Count: 1, From: agentsStart,
			Until: agentsStart.Add(1000 * time.Hour), Paid: money.Picos(1e15)}}
	w.step(0, MarketSeen{Offers: []market.Offer{o}, Quotes: []market.Quote{{Offer: o.ID, Rate: 1e12, Priced: true,
		Available: true, At: agentsStart}}})
	settled("an offer")
	for n := range 20 {
		w.step(0, JobSubmitted{Job: fmt.Sprint("j", n), Terms: w.terms(fmt.Sprint("j", n), 1)})
		settled("a submission")
	}
	for n := range 10 {
		w.step(time.Minute, JobEnded{Job: fmt.Sprint("j", n)})
		settled("an end")
	}
	b, err := w.Snapshot()
	must.Do(t, err)
	w.Machine, err = Restore(b)
	must.Do(t, err)
	settled("a restart")
	for x, l := range w.Sale() {
		if free := 1 - len(w.State().Running()); l.Quote.Available != (free > 0) {
			t.Errorf("%s is available: %t, and %d jobs run or ask", x.ID, l.Quote.Available, len(w.State().Running()))
		}
	}
}
