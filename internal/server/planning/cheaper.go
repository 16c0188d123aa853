package planning

import (
	"net/http"
	"time"

	"scrimp/client"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/isolate"
	"scrimp/internal/server/prediction"
	"scrimp/internal/wire/api"
)

// cheaperEvents bounds the simulated events of one job, so that many fit into the time of a plan.
const cheaperEvents = 20_000

// Cheaper simulates both jobs of each pair on the market as it is, and returns which share of the median cost of the
// first one the second one saves; nil: unknown. saves has how long a checkpoint of each pair takes; 0: unknown. Both
// jobs meet the same random events. All pairs together take at most as long as one plan: those beyond are unknown, and
// all are if the server makes the plans of others.
func (d *Service) Cheaper(r *http.Request, pairs [][2]spec.Job, saves []time.Duration) []*float64 {
	shares := make([]*float64, len(pairs))
	var market api.Market
	var about api.Server
	if len(pairs) == 0 || answered(r, d.Server, "/v1/server", &about) != nil ||
		answered(r, d.Market, "/v1/market", &market) != nil {
		return shares
	}
	release, ok := d.planTurn(r.Context())
	if !ok {
		return shares
	}
	defer release()
	until := time.Now().Add(d.Limit)
	halt := func() bool { return r.Context().Err() != nil || time.Now().After(until) }
	for i, pair := range pairs {
		var medians [2]float64
		err := isolate.Call(func() {
			for k, j := range pair {
				if prediction.Unknown(j, market, about) != nil {
					return
				}
				var p client.Plan
				by := prediction.Simulation{Runs: FewestRuns, Events: cheaperEvents, Save: saves[i], Halt: halt}
				if p, _ = prediction.With(j, market, about, by); !halt() && p.CostUSD != nil {
					medians[k] = p.CostUSD[1]
				}
			}
		})
		if err != nil {
			d.Log.Error("cannot simulate a job of the past", "job", pair[0].Name, "error", err, isolate.Stack(err))
		}
		if medians[0] > 0 && medians[1] > 0 {
			shares[i] = new(1 - medians[1]/medians[0])
		}
	}
	return shares
}
