package control

import (
	"context"
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
)

// paidPlace is a place with one machine that is already paid.
type paidPlace struct{ *place }

func (p paidPlace) Offers(ctx context.Context) ([]market.Offer, []market.Quote, error) {
	offers, quotes, err := p.place.Offers(ctx)
	o := offers[0]
	o.Capacity, o.Zone = market.Reserved, "paid"
	o.Reserved = market.Reservation{Count: 1, From: time.Now().UTC().Add(-time.Hour), Until: time.Now().UTC().Add(time.Hour), Paid: money.Picos(1e12)}
	o.ID = market.ID(o)
	q := quotes[0]
	q.Offer = o.ID
	return append(offers, o), append(quotes, q), err
}

func (p paidPlace) engine() engine.Engine {
	e := p.place.engine()
	e.Driver = p
	return e
}

// A round runs while steps continue: one of two jobs gets the reserved machine, and the other rents. A restarted
// server reads this from the log.
func TestRound_AssignsTheReservedMachine(t *testing.T) {
	t.Parallel()
	p := paidPlace{&place{name: "a", rate: 2e12}}
	folder := t.TempDir()
	s, stop := opened(t, folder, p.engine())
	until(t, "both are for sale", func() bool {
		n := 0
		s.ReadUncommitted(func(m *core.Machine) {
			for range m.Sale() {
				n++
			}
		})
		return n == 2
	})
	must.Do(t, s.Propose(t.Context(), at(s, "one"), at(s, "two")))
	on := func() map[market.Capacity]string {
		has := map[market.Capacity]string{}
		s.ReadUncommitted(func(m *core.Machine) {
			for _, a := range m.Live() {
				has[a.Capacity()] = a.Job()
			}
		})
		return has
	}
	until(t, "one job has the machine that is paid for, the other rents", func() bool { return len(on()) == 2 })
	before := on()
	if before[market.Reserved] != "one" {
		t.Errorf("%v: one came first", before)
	}
	records, err := s.store.Records(t.Context(), 0, 1000)
	must.Do(t, err)
	rounds := 0
	for _, r := range records {
		if r.Kind == (core.RoundProposed{}).Kind() {
			rounds++
		}
	}
	if rounds == 0 {
		t.Error("no round is in the log")
	}
	stop()
	s, stop = opened(t, folder, p.engine())
	defer stop()
	until(t, "the server has started again", func() bool { return len(on()) == 2 })
	if after := on(); after[market.Reserved] != before[market.Reserved] {
		t.Errorf("%v, and after a restart %v", before, after)
	}
}
