package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

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
)

// simulated is one policy's line of `scrimp simulate`.
type simulated struct {
	Policy        string        `json:"policy"`
	MeanUSD       float64       `json:"mean_usd"`
	OverOptimum   *float64      `json:"over_optimum,omitempty"` // a fraction
	OfOnDemand    *float64      `json:"of_on_demand,omitempty"` // share of what on-demand costs
	Misses        int           `json:"misses"`
	Runs          int           `json:"runs"`
	FinishS       float64       `json:"finish_s"` // mean, market seconds
	Interruptions float64       `json:"interruptions"`
	LostS         float64       `json:"lost_s"` // mean time of work that was paid for and lost
	LostUSD       float64       `json:"lost_usd"`
	Timeline      string        `json:"timeline,omitempty"` // of the first run
	first         []simPiece    // of the first run
	finish        time.Duration // of the first run
}

// simPiece is a time in which a machine was held.
type simPiece struct {
	from, to time.Duration
	spot     bool
	lost     bool
	offer    string
}

type simulateFlags struct {
	job      jobFlags
	policies func() ([]string, error)
	seeds    int
	restart  time.Duration
	save     time.Duration
	svg      string
	history  bool
}

func (a *app) simulateJob(cmd *cobra.Command, args []string, f simulateFlags) error {
	names, err := f.policies()
	if err != nil {
		return err
	}
	trace, err := loadMarket(f.job.market)
	if err != nil {
		return err
	}
	opened := a.now().UTC().Truncate(time.Second)
	j, _, _, err := load(args, cmd.ArgsLenAtDash(), f.job, opened)
	if err != nil {
		return err
	}
	t := terms(j, opened, func(d time.Duration) time.Duration { return d })
	if t.Work <= 0 {
		return fmt.Errorf("%s: work.time: missing: a job is played on a market for as long as it works, so say how long that is on a machine of speed 1, such as time: 6h", args[0])
	}
	if t.Steps == 0 {
		t.Steps = max(1, int64(t.Work/time.Second))
	}
	t.Restart = f.restart
	rows, err := a.playPolicies(cmd, trace, t, opened, names, f)
	if err != nil {
		return err
	}
	if f.svg != "" {
		if err := os.WriteFile(f.svg, []byte(simulatedSVG(rows, opened)), 0o644); err != nil {
			return fmt.Errorf("write --svg: %w", err)
		}
	}
	if a.json {
		return a.print(map[string]any{"job": j.Name, "market": trace.Name, "policies": rows})
	}
	width := a.place().Width
	a.printf("%s: %s of work%s on market %s, %s\n\n%s", j.Name, draw.Span(t.Work), by(t, opened), trace.Name, draw.Count(f.seeds, "run"), simulatedTable(rows, width))
	return nil
}

func by(t core.Terms, opened time.Time) string {
	if t.Deadline.IsZero() {
		return ""
	}
	return " by a deadline in " + draw.Span(t.Deadline.Sub(opened))
}

// starts spreads n submissions over the trace.
func starts(t market.Trace, n int) []time.Duration {
	length := t.Repeat
	if length <= 0 {
		for _, l := range t.Lines {
			for _, s := range l.Available {
				length = max(length, s.To)
			}
		}
	}
	list := make([]time.Duration, n)
	for i := range list {
		list[i] = (length / time.Duration(n) * time.Duration(i)).Truncate(time.Second)
	}
	return list
}

// optimumCells bounds what the search for the optimum may take.
const optimumCells = 40_000_000

func (a *app) playPolicies(cmd *cobra.Command, trace market.Trace, t core.Terms, opened time.Time, names []string, f simulateFlags) ([]simulated, error) {
	tell := a.counter()
	mind := plan.NewMind()
	var rows []simulated
	span := t.Deadline.Sub(opened)
	for _, name := range names {
		row := simulated{Policy: name}
		for n, from := range starts(trace, f.seeds) {
			if err := cmd.Context().Err(); err != nil {
				return nil, err
			}
			tell(name, n, f.seeds)
			if name == replay.Optimum {
				cost, ok := traceOptimum(trace, from, t, span, f.restart)
				if !ok {
					row.Runs = 0
					break
				}
				row.Runs++
				row.MeanUSD += cost.Float()
				continue
			}
			terms := t
			if !t.Deadline.IsZero() {
				terms.Deadline = opened.Add(from + span)
			}
			p := sim.Play(sim.Playback{Terms: terms, Restart: f.restart, Save: f.save, Trace: trace, Opened: opened, From: from, Policy: policy.Rule(name), Mind: mind})
			row.Runs++
			row.MeanUSD += p.Cost.Float()
			row.FinishS += p.Finish.Seconds()
			row.Interruptions += float64(p.Interruptions)
			row.LostS += p.LostTime.Seconds()
			row.LostUSD += p.Lost.Float()
			if !p.InTime {
				row.Misses++
			}
			if n == 0 {
				row.first, row.finish = pieces(p), p.Finish
			}
		}
		tell(name, f.seeds, f.seeds)
		if row.Runs == 0 {
			continue
		}
		runs := float64(row.Runs)
		for _, v := range []*float64{&row.MeanUSD, &row.FinishS, &row.Interruptions, &row.LostS, &row.LostUSD} {
			*v /= runs
		}
		rows = append(rows, row)
	}
	compare(rows)
	return rows, nil
}

// compare sets the rows beside the optimum and on-demand, and draws them on one axis.
func compare(rows []simulated) {
	longest := time.Duration(0)
	for _, r := range rows {
		longest = max(longest, r.finish)
	}
	for i := range rows {
		for _, o := range rows {
			share := rows[i].MeanUSD / o.MeanUSD
			switch {
			case o.MeanUSD <= 0:
			case o.Policy == replay.Optimum:
				over := share - 1
				rows[i].OverOptimum = &over
			case o.Policy == string(policy.OnDemand):
				rows[i].OfOnDemand = &share
			}
		}
		if rows[i].Policy != replay.Optimum {
			rows[i].Timeline = timeline(rows[i].first, longest, 48)
		}
	}
}

// traceOptimum is what the job would cost with the trace known in advance, on a
// grid that keeps the search in bounds.
func traceOptimum(trace market.Trace, from time.Duration, t core.Terms, span, restart time.Duration) (money.Amount, bool) {
	if t.Deadline.IsZero() || span <= t.Work {
		return money.Amount{}, false
	}
	for grid := time.Minute; grid <= time.Hour; grid *= 2 {
		r, ok := tick.FromTrace(trace, from, t.Work, span, restart, grid)
		if !ok {
			return money.Amount{}, false
		}
		cells := int64(r.Job.Ticks()) * int64((span-t.Work)/(grid/2)) * int64(len(r.Job.Zones)+2)
		if cells <= optimumCells {
			return r.ZoneOptimum()
		}
	}
	return money.Amount{}, false
}

// errNoMarket says which file is missing.
var errNoMarket = errors.New("--market: missing: name a market file, or calm or stormy; docs/market-file.md describes the form")

func (f *simulateFlags) check(args []string) error {
	switch {
	case f.history && (len(args) > 0 || f.job.market != "" || f.seeds != 1):
		return errors.New("--history plays the server's own jobs on its own market: leave out the job file, --market and --seeds")
	case f.history:
		return nil
	case len(args) == 0:
		return errors.New("name a job file, as in scrimp simulate job.yaml --market stormy, or one of the benchmarks: deadline, zones")
	case f.job.market == "":
		return errNoMarket
	case f.seeds < 1 || f.seeds > 10_000:
		return fmt.Errorf("--seeds %d: give 1 to 10,000 runs", f.seeds)
	case f.restart <= 0 || f.save <= 0:
		return fmt.Errorf("--restart %v and --save %v: give times above zero", f.restart, f.save)
	}
	return nil
}

func (a *app) simulateFlags(cmd *cobra.Command, f *simulateFlags) {
	f.job.add(cmd)
	cmd.Flags().Lookup("market").Usage = "market `file`, or calm or stormy (default none: a job file needs one)"
	f.policies = policyFlag(cmd)
	cmd.Flags().IntVar(&f.seeds, "seeds", 1, "how many submissions, `N`, spread over the market")
	cmd.Flags().DurationVar(&f.restart, "restart", 3*time.Minute, "from launch to a program that works")
	cmd.Flags().DurationVar(&f.save, "save", 10*time.Second, "what a checkpoint takes")
	cmd.Flags().BoolVar(&f.history, "history", false, "play the server's own past jobs on the market that it saw (default: a job file)")
	cmd.Flags().StringVar(&f.svg, "svg", "", "draw the first run of every policy into this `file` (default: only in the terminal)")
}

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
