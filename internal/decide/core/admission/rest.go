package admission

import (
	"time"

	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// ExpectedRest is the newest decision's expectation for what the job has taken, less its cost since then; ok
// is false if it expects nothing for such capacity.
func ExpectedRest(j *state.Job, on market.Capacity, t time.Time) (rest money.Amount, ok bool) {
	e := j.Last().Expect
	if e == nil || j.Decided().IsZero() {
		return rest, false
	}
	usd := e.OnDemand
	if on == market.Spot {
		usd = e.Spot
	}
	if usd == nil {
		return rest, false
	}
	all, ok := money.Estimated(*usd)
	if !ok {
		return rest, false
	}
	a, since := j.Live(), j.Decided()
	if a == nil {
		return all, true
	}
	if since.Before(a.From()) {
		since = a.From()
	}
	return all.Sub(a.Cost(t).Sub(a.Cost(since))), true
}
