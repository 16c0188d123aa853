package cli

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/core"
	"scrimp/internal/draw"
	"scrimp/internal/plan"
	"scrimp/internal/policy"
	"scrimp/internal/server"
	"scrimp/internal/sim"
	"scrimp/internal/sim/replay"
)

// pastPolicy is a line of what another policy would have made of the jobs so far.
type pastPolicy struct {
	Policy     string   `json:"policy"`
	TotalUSD   float64  `json:"total_usd"`
	SavedUSD   *float64 `json:"saved_usd"` // against what was paid
	Misses     int      `json:"misses"`
	Jobs       int      `json:"jobs"`
	Unfinished int      `json:"unfinished"` // within their budget, on the market as it was seen
}

// simulateHistory plays the server's jobs again under each policy.
func (a *app) simulateHistory(ctx context.Context, f simulateFlags) error {
	names, err := f.policies()
	if err != nil {
		return err
	}
	c, err := a.ensure(ctx, "")
	if err != nil {
		return err
	}
	v, err := c.server(ctx)
	if err != nil {
		return err
	}
	var h api.History
	if err := c.do(ctx, http.MethodGet, "/v1/history", nil, &h); err != nil {
		return err
	}
	paid, unknown := 0.0, 0
	var jobs []api.PastJob
	for _, j := range h.Jobs {
		if !j.Known {
			unknown++
			continue
		}
		paid += j.Cost.Float()
		jobs = append(jobs, j)
	}
	if len(jobs) == 0 {
		return fmt.Errorf("no job has succeeded yet whose work was measured (%d without): run some, then ask again", unknown)
	}
	tell := a.counter()
	mind := plan.NewMind()
	var rows []pastPolicy
	for _, name := range names {
		if name == replay.Optimum {
			continue
		}
		row := pastPolicy{Policy: name}
		for n, j := range jobs {
			if err := ctx.Err(); err != nil {
				return err
			}
			tell(name, n, len(jobs))
			p := sim.Play(sim.Playback{
				Terms: j.Terms, Restart: max(j.Restart, time.Second), Save: max(j.Save, time.Second), Trace: h.Trace, Opened: h.Opened,
				From: j.Submitted.Sub(h.Opened), Policy: policy.Rule(name), Mind: mind, Config: server.Rules(v.Market.Speed),
			})
			row.Jobs++
			row.TotalUSD += p.Cost.Float()
			switch {
			case p.State != core.Succeeded:
				row.Unfinished++
			case !p.InTime:
				row.Misses++
			}
		}
		tell(name, len(jobs), len(jobs))
		if saved := paid - row.TotalUSD; row.Unfinished == 0 {
			row.SavedUSD = &saved
		}
		rows = append(rows, row)
	}
	if a.json {
		return a.print(map[string]any{"paid_usd": paid, "jobs": len(jobs), "jobs_unknown": unknown, "policies": rows})
	}
	width := a.place().Width
	table := [][]string{}
	for _, r := range rows {
		saved := "-" // what is not done has saved nothing
		if r.SavedUSD != nil {
			saved = signed(*r.SavedUSD)
		}
		table = append(table, []string{r.Policy, fmt.Sprintf("$%.4f", r.TotalUSD), saved, fmt.Sprintf("%d of %d", r.Misses, r.Jobs), fmt.Sprint(r.Unfinished)})
	}
	a.printf("%s, for which $%.4f was paid, on the market that was seen", draw.Count(len(jobs), "job"), paid)
	if unknown > 0 {
		a.printf("; %d more whose work was not measured are left out", unknown)
	}
	a.printf("\n\n%s", draw.Grid([]draw.Column{{Name: "POLICY"}, {Name: "WOULD COST", Right: true}, {Name: "SAVED", Right: true}, {Name: "LATE", Right: true}, {Name: "UNFINISHED", Right: true}}, table, width))
	return nil
}
