package simulate

import (
	"context"
	"fmt"
	"net/http"
	"time"

	api "scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/server/forecast"
	"scrimp/internal/sim"
	"scrimp/internal/sim/replay"
	"scrimp/internal/sim/tick"
	"scrimp/internal/view/convert"
)

// pastPolicy is a row: what a policy would have made of the past jobs.
type pastPolicy struct {
	Policy     string   `json:"policy"`
	TotalUSD   float64  `json:"total_usd"`
	SavedUSD   *float64 `json:"saved_usd"` // relative to the actual cost
	Misses     int      `json:"misses"`
	Jobs       int      `json:"jobs"`
	Unfinished int      `json:"unfinished"` // within their budget, on the recorded market
}

// pastRun holds the server's past jobs and how to play them.
type pastRun struct {
	api.History
	trace  market.Trace // the recorded market
	now    time.Time    // market time
	config core.Config
	jobs   []api.PastJob // jobs to play
	paid   float64       // their actual cost in dollars
	// Omitted jobs: without measured work, and submitted before --since.
	unknown, earlier int
	mind             *plan.Planner
	notes            []string
	unended          map[string]bool // jobs that would still run now under some policy
	least            leasts
}

// simulateHistory plays the server's past jobs under each policy.
func (a *app) simulateHistory(ctx context.Context, f simulateFlags) error {
	names, err := f.policies()
	if err != nil {
		return err
	}
	p, err := a.pastJobs(ctx, f)
	if err != nil {
		return err
	}
	tell := a.Counter()
	var rows []pastPolicy
	for _, name := range names {
		row, ok, err := p.play(ctx, name, tell)
		switch {
		case err != nil:
			return err
		case ok:
			rows = append(rows, row)
		}
	}
	for i := range rows {
		if rows[i].Policy == replay.Optimum {
			rows[i].TotalUSD = p.least.sum()
			saved := p.paid - rows[i].TotalUSD
			rows[i].SavedUSD = &saved
		}
	}
	p.noteLeftOut()
	if a.JSON {
		return a.Print(map[string]any{"paid_usd": p.paid, "jobs": len(p.jobs), "jobs_unknown": p.unknown, "policies": rows,
			"notes": p.notes})
	}
	a.printPast(p, rows)
	return nil
}

// pastJobs requests the server's history and selects the jobs that can be played.
func (a *app) pastJobs(ctx context.Context, f simulateFlags) (*pastRun, error) {
	c, v, err := a.Connect(ctx, "")
	if err != nil {
		return nil, err
	}
	p := &pastRun{now: v.Market.Now, config: forecast.Rules(v.Market.Speed, v.Engines), mind: plan.NewPlanner(),
		notes: []string{}, unended: map[string]bool{}, least: leasts{}}
	if err := c.Do(ctx, http.MethodGet, "/v1/history", nil, &p.History); err != nil {
		return nil, err
	}
	p.trace = convert.To[market.Trace](p.Trace)
	begin, err := f.begin(p.now)
	if err != nil {
		return nil, err
	}
	for _, j := range p.Jobs {
		switch {
		case j.Submitted.Before(begin):
			p.earlier++
		case !j.Known:
			p.unknown++
		default:
			p.paid += j.Cost.Float()
			p.jobs = append(p.jobs, j)
		}
	}
	if len(p.jobs) > 0 {
		return p, nil
	}
	why := ""
	if p.unknown+p.earlier+p.Others > 0 {
		why = fmt.Sprintf(" (%d whose work was not, %d that did not succeed, %d from before --since)", p.unknown,
			p.Others, p.earlier)
	}
	return nil, fmt.Errorf("no job has succeeded whose work was measured%s: run some, then ask again", why)
}

// play plays all jobs under a policy. It returns false if the policy has no row: the optimum of a job without a
// deadline.
func (p *pastRun) play(ctx context.Context, name string, tell func(string, int, int)) (pastPolicy, bool, error) {
	row := pastPolicy{Policy: name}
	for n, j := range p.jobs {
		if err := ctx.Err(); err != nil {
			return row, false, err
		}
		tell(name, n, len(p.jobs))
		row.Jobs++
		if name != replay.Optimum {
			p.playJob(n, j, name, &row)
			continue
		}
		cost, err := hindsight(p.trace, j, j.Submitted.Sub(p.Opened), p.config)
		if err != nil {
			p.notes = append(p.notes, fmt.Sprintf("there is no row of the optimum: %s: %v", j.ID, err))
			tell(name, len(p.jobs), len(p.jobs))
			return row, false, nil
		}
		p.least.found(n, cost.Float())
	}
	tell(name, len(p.jobs), len(p.jobs))
	if saved := p.paid - row.TotalUSD; row.Unfinished == 0 {
		row.SavedUSD = &saved
	}
	return row, true, nil
}

// playJob adds the result of one job to a policy's row.
func (p *pastRun) playJob(n int, j api.PastJob, name string, row *pastPolicy) {
	terms := convert.To[core.Terms](j.Terms)
	if name == string(policy.OnDemand) {
		terms.Need.Ladder = nil // it may start with spot
	}
	played := sim.Play(sim.Playback{
		Terms: terms, Restart: max(j.Restart, time.Second), Save: max(j.Save, time.Second), Trace: p.trace,
		Opened: p.Opened, From: j.Submitted.Sub(p.Opened), Policy: policy.Rule(name), Planner: p.mind, Config: p.config,
	})
	if j.Submitted.Add(played.Finish).After(p.now) {
		p.unended[j.ID] = true
	}
	row.TotalUSD += played.Cost.Float()
	p.least.played(n, played)
	switch {
	case played.State != core.Succeeded:
		row.Unfinished++
	case !played.InTime:
		row.Misses++
	}
}

// noteLeftOut notes which jobs were not played, or not to their end.
func (p *pastRun) noteLeftOut() {
	for _, n := range []struct {
		n    int
		what string
	}{
		{p.unknown, "whose work was not measured"}, {p.Others, "that did not succeed"}, {p.earlier, "from before --since"},
	} {
		if n.n > 0 {
			p.notes = append(p.notes, fmt.Sprintf("left out: %s %s", draw.Count(n.n, "job"), n.what))
		}
	}
	if len(p.unended) > 0 {
		p.notes = append(p.notes, fmt.Sprintf("under some policy %s would still be running; the future market is unknown "+
			"and is assumed to have no spot", draw.Count(len(p.unended), "job")))
	}
}

// printPast prints a row for each policy, the best policy, and the notes.
func (a *app) printPast(p *pastRun, rows []pastPolicy) {
	width := a.Place().Width
	table := [][]string{}
	for _, r := range rows {
		saved := "-" // unfinished work has saved nothing
		if r.SavedUSD != nil {
			saved = signed(*r.SavedUSD)
		}
		line := []string{r.Policy, fmt.Sprintf("$%.4f", r.TotalUSD), saved, fmt.Sprintf("%d of %d", r.Misses, r.Jobs),
			fmt.Sprint(r.Unfinished)}
		if r.Policy == replay.Optimum {
			line[3], line[4] = "-", "-"
		}
		table = append(table, line)
	}
	a.Printf("%s, for which $%.4f was paid, on the market that was seen", draw.Count(len(p.jobs), "job"), p.paid)
	a.Printf("\n\n%s", draw.Grid([]draw.Column{{Name: "POLICY"}, {Name: "WOULD COST", Right: true},
		{Name: "SAVED", Right: true}, {Name: "LATE", Right: true}, {Name: "UNFINISHED", Right: true}}, table, width))
	if r, ok := thriftiest(rows); ok {
		a.Printf("\n%s", draw.Wrap("", fmt.Sprintf("Least, with no more late than under any other: %s, %s.", r.Policy,
			fmt.Sprintf("$%.4f", r.TotalUSD)), width))
	}
	if len(p.notes) > 0 {
		a.Printf("\n")
	}
	for _, n := range p.notes {
		a.Printf("%s", draw.Wrap("note: ", n, width))
	}
}

// begin returns the market time from which jobs are played.
func (f *simulateFlags) begin(now time.Time) (time.Time, error) {
	if f.since == "" {
		return time.Time{}, nil
	}
	d, err := spec.ParseDuration(f.since)
	if err != nil || d <= 0 {
		return time.Time{}, fmt.Errorf("--since %q is not a span above zero, such as 30d", f.since)
	}
	return now.Add(-d), nil
}

// hindsight returns the least possible cost of a past job.
func hindsight(t market.Trace, j api.PastJob, from time.Duration, c core.Config) (money.Amount, error) {
	if j.Terms.Deadline.IsZero() {
		return money.Amount{}, errNoEnd
	}
	terms := convert.To[core.Terms](j.Terms)
	return tick.Hindsight(t, fitsOf(terms.Need, c), tick.Nodes{Least: terms.Fewest(), Most: terms.Most()}, from,
		j.Terms.Work, j.Terms.Deadline.Sub(j.Submitted), max(j.Restart, time.Second))
}

// thriftiest returns the cheapest policy among those with the fewest late jobs.
func thriftiest(rows []pastPolicy) (best pastPolicy, ok bool) {
	for _, r := range rows {
		if r.Policy == replay.Optimum || r.Unfinished > 0 {
			continue
		}
		// Among equals it prefers the default, which comes last.
		if !ok || r.Misses < best.Misses || r.Misses == best.Misses && r.TotalUSD <= best.TotalUSD {
			best, ok = r, true
		}
	}
	return best, ok
}
