package state

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// The backoff of each offer is the longest of its scopes, whatever backoffs come and go, and whichever offers
// appear or move meanwhile.
func TestSetBackoff_OfferFollowsItsScopes(t *testing.T) {
	lasting, trials := 0, 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 5))
		s, now := New(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		draw := func(id int) market.Offer {
			return market.Offer{
				ID: market.OfferID(fmt.Sprint("o", id)), Provider: fmt.Sprint("p", rng.IntN(2)),
				Zone: fmt.Sprint("z", rng.IntN(2)), Machine: fmt.Sprint("m", rng.IntN(2)), Currency: money.USD,
				Capacity: []market.Capacity{market.Spot, market.OnDemand}[rng.IntN(2)],
			}
		}
		for range 60 {
			now = now.Add(time.Duration(rng.IntN(90)) * time.Second)
			if rng.IntN(4) == 0 {
				e := Event{At: now, Body: MarketSeen{Offers: []market.Offer{draw(rng.IntN(12))}}}
				s.Begin(&e)
				s.Observe(&e)
			} else {
				s.Begin(&Event{At: now, Body: Tick{}})
				o := draw(rng.IntN(12))
				m, b := MachineOf(&o), Backoff{}
				if rng.IntN(3) > 0 {
					b = Backoff{Tries: 1, Until: now.Add(time.Duration(rng.IntN(300)) * time.Second)}
				}
				if rng.IntN(5) == 0 {
					b.Trial = "j.1"
				}
				s.setBackoff(ScopeKey(scopes[rng.IntN(len(scopes))], &m), b)
			}
			for _, l := range s.Sale() {
				until, trial := plainly(s, l)
				at, cools := s.Cooling(l)
				if want := trial || until.After(now); cools != want || l.Plan().Backoff.After(now) != want {
					t.Fatalf("seed %d: %s is left alone: %v, want %v", seed, l.Offer().ID, cools, want)
				}
				switch {
				case trial:
					trials++
					if !l.Plan().Backoff.After(now.Add(1000 * time.Hour)) {
						t.Fatalf("seed %d: %s is asked at %v without an answer", seed, l.Offer().ID, l.Plan().Backoff)
					}
				case cools:
					lasting++
					if !at.Equal(until) {
						t.Fatalf("seed %d: %s is left alone until %v, want %v", seed, l.Offer().ID, at, until)
					}
				}
			}
		}
	}
	if lasting < 1000 || trials < 1000 {
		t.Errorf("%d and %d times an offer was left alone", lasting, trials)
	}
}

// plainly checks every scope.
func plainly(s *State, l *Listing) (until time.Time, trial bool) {
	m := MachineOf(l.Offer())
	for key, b := range s.backoffs {
		for _, scope := range scopes {
			if key != ScopeKey(scope, &m) {
				continue
			}
			trial = trial || b.Trial != ""
			if b.Until.After(until) {
				until = b.Until
			}
		}
	}
	return until, trial
}
