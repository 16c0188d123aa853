package cli

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/core"
	"scrimp/internal/draw"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/plan"
	"scrimp/internal/policy"
	"scrimp/internal/server"
	"scrimp/internal/sim"
	"scrimp/internal/sim/replay"
	"scrimp/internal/sim/tick"
	"scrimp/internal/spec"
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
	begin, err := f.begin(v.Market.Now)
	if err != nil {
		return err
	}
	paid, unknown, earlier := 0.0, 0, 0
	var jobs []api.PastJob
	for _, j := range h.Jobs {
		switch {
		case j.Submitted.Before(begin):
			earlier++
			continue
		case !j.Known:
			unknown++
			continue
		}
		paid += j.Cost.Float()
		jobs = append(jobs, j)
	}
	if len(jobs) == 0 {
		why := ""
		if unknown+earlier+h.Others > 0 {
			why = fmt.Sprintf(" (%d whose work was not, %d that did not succeed, %d from before --since)", unknown, h.Others, earlier)
		}
		return fmt.Errorf("no job has succeeded whose work was measured%s: run some, then ask again", why)
	}
	tell := a.counter()
	mind := plan.NewPlanner()
	var rows []pastPolicy
	notes := []string{}
	past := map[string]bool{}
	for _, name := range names {
		row := pastPolicy{Policy: name}
		for n, j := range jobs {
			if err := ctx.Err(); err != nil {
				return err
			}
			tell(name, n, len(jobs))
			row.Jobs++
			from := j.Submitted.Sub(h.Opened)
			if name == replay.Optimum {
				cost, err := hindsight(h.Trace, j, from)
				if err != nil {
					notes = append(notes, fmt.Sprintf("there is no line of the optimum: %s: %v", j.ID, err))
					row.Jobs = 0
					break
				}
				row.TotalUSD += cost.Float()
				continue
			}
			terms := j.Terms
			if name == string(policy.OnDemand) {
				terms.Need.Ladder = nil // which may begin with spot
			}
			p := sim.Play(sim.Playback{
				Terms: terms, Restart: max(j.Restart, time.Second), Save: max(j.Save, time.Second), Trace: h.Trace, Opened: h.Opened,
				From: from, Policy: policy.Rule(name), Mind: mind, Config: server.Rules(v.Market.Speed),
			})
			if j.Submitted.Add(p.Finish).After(v.Market.Now) {
				past[j.ID] = true
			}
			row.TotalUSD += p.Cost.Float()
			switch {
			case p.State != core.Succeeded:
				row.Unfinished++
			case !p.InTime:
				row.Misses++
			}
		}
		tell(name, len(jobs), len(jobs))
		if row.Jobs == 0 {
			continue
		}
		if saved := paid - row.TotalUSD; row.Unfinished == 0 {
			row.SavedUSD = &saved
		}
		rows = append(rows, row)
	}
	for _, n := range []struct {
		n    int
		what string
	}{{unknown, "whose work was not measured"}, {h.Others, "that did not succeed"}, {earlier, "from before --since"}} {
		if n.n > 0 {
			notes = append(notes, fmt.Sprintf("left out: %s %s", draw.Count(n.n, "job"), n.what))
		}
	}
	if len(past) > 0 {
		notes = append(notes, fmt.Sprintf("under some policy %s would run still; nobody knows the market after now, and it is taken to have no spot", draw.Count(len(past), "job")))
	}
	if a.json {
		return a.print(map[string]any{"paid_usd": paid, "jobs": len(jobs), "jobs_unknown": unknown, "policies": rows, "notes": notes})
	}
	width := a.place().Width
	table := [][]string{}
	for _, r := range rows {
		saved := "-" // what is not done has saved nothing
		if r.SavedUSD != nil {
			saved = signed(*r.SavedUSD)
		}
		line := []string{r.Policy, fmt.Sprintf("$%.4f", r.TotalUSD), saved, fmt.Sprintf("%d of %d", r.Misses, r.Jobs), fmt.Sprint(r.Unfinished)}
		if r.Policy == replay.Optimum {
			line[3], line[4] = "-", "-"
		}
		table = append(table, line)
	}
	a.printf("%s, for which $%.4f was paid, on the market that was seen", draw.Count(len(jobs), "job"), paid)
	a.printf("\n\n%s", draw.Grid([]draw.Column{{Name: "POLICY"}, {Name: "WOULD COST", Right: true}, {Name: "SAVED", Right: true}, {Name: "LATE", Right: true}, {Name: "UNFINISHED", Right: true}}, table, width))
	if r, ok := thriftiest(rows); ok {
		a.printf("\n%s", draw.Wrap("", fmt.Sprintf("Least, with no more late than under any other: %s, %s.", r.Policy, fmt.Sprintf("$%.4f", r.TotalUSD)), width))
	}
	if len(notes) > 0 {
		a.printf("\n")
	}
	for _, n := range notes {
		a.printf("%s", draw.Wrap("note: ", n, width))
	}
	return nil
}

// begin is the market time from which on jobs are played again.
func (f *simulateFlags) begin(now time.Time) (time.Time, error) {
	if f.since == "" {
		return time.Time{}, nil
	}
	d, err := spec.ParseDuration(f.since)
	if err != nil || d <= 0 {
		return time.Time{}, fmt.Errorf("--since %q is no span of market time above zero, such as 30d", f.since)
	}
	return now.Add(-d), nil
}

// hindsight is the least that a past job could have cost.
func hindsight(t market.Trace, j api.PastJob, from time.Duration) (money.Amount, error) {
	if j.Terms.Deadline.IsZero() {
		return money.Amount{}, errNoEnd
	}
	return tick.Hindsight(t, fitsOf(j.Terms.Need, t), from, j.Terms.Work, j.Terms.Deadline.Sub(j.Submitted), max(j.Restart, time.Second))
}

// thriftiest is the policy that would have cost least of those with the fewest late jobs.
func thriftiest(rows []pastPolicy) (best pastPolicy, ok bool) {
	for _, r := range rows {
		if r.Policy == replay.Optimum || r.Unfinished > 0 {
			continue
		}
		if !ok || r.Misses < best.Misses || r.Misses == best.Misses && r.TotalUSD <= best.TotalUSD { // of equals the default, which is the last
			best, ok = r, true
		}
	}
	return best, ok
}
