package plan

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	api "scrimp/client"
	"scrimp/internal/api/convert"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/jobfile"
	"scrimp/internal/cli/learn"
	"scrimp/internal/cli/show"
	"scrimp/internal/draw"
	"scrimp/internal/market"
	"scrimp/internal/policy"
	"scrimp/internal/server/forecast"
	jobterms "scrimp/internal/server/terms"
	"scrimp/internal/sim"
	"scrimp/internal/spec"
	"scrimp/internal/wait"
)

// forecastRuns is how many runs of a job a plan simulates: the odds are then known to about 3 %.
const forecastRuns = 200

// Predict asks the server what is for sale and plays the job forward on it.
func Predict(ctx context.Context, a *command.App, c *command.Client, j spec.Job, v api.Server) (show.Plan, error) {
	var m api.Market
	if err := c.Do(ctx, http.MethodGet, "/v1/market", nil, &m); err != nil {
		return show.Plan{}, err
	}
	for begun := a.Now(); len(m.Offers) == 0 && a.Now().Sub(begun) < 5*time.Second; { // a server that has just begun
		if err := wait.For(ctx, 100*time.Millisecond); err != nil {
			return show.Plan{}, err
		}
		if err := c.Do(ctx, http.MethodGet, "/v1/market", nil, &m); err != nil {
			return show.Plan{}, err
		}
	}
	return foresee(j, m, v), nil
}

func (a *app) planCmd() *cobra.Command {
	var f jobfile.Flags
	var ranked bool
	var svg string
	var most int
	cmd := &cobra.Command{
		Use:   "plan job.yaml | plan -- COMMAND [ARG ...]",
		Short: "Say what a job would cost and when it is done; spends nothing",
		Long: `Plays the job forward 200 times through the code that would run it, on markets drawn from what is known
of the offers, and says the cost (10 %, middle, 90 %), the finish, the odds of the deadline and why each
offer is taken or not. It rents nothing. Spans are market time, amounts are in the offers' currency.

With --catalog, or where the job asks for an accelerator that the market of the data folder does not
sell, it ranks the offers of the catalogue instead, by expected cost, finish and odds, says why each
other one is not taken and what would be cheaper, and plays the first forward (docs/plan.md).

Exit status: 0 feasible, 2 not feasible, 1 error.`,
		Example: "  scrimp plan job.yaml\n  scrimp plan --catalog job.yaml --svg frontier.svg\n" +
			"  scrimp plan --json job.yaml --env STEPS=100",
		Args: command.TakesJob, GroupID: command.GroupRun, ValidArgsFunction: command.CompleteJobFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			j, folder, notes, err := jobfile.Load(args, cmd.ArgsLenAtDash(), f, a.Now()) // before a server is started for it
			if err != nil {
				return err
			}
			if kind := j.Resources.Accelerator; kind != "" && !ranked && f.Market == "" && !a.sells(ctx, kind) {
				a.Notef("note: the market of the data folder sells no %s: the catalogue is ranked instead (--catalog)\n", kind)
				ranked = true
			}
			if ranked {
				jobfile.Note(a.App, unranked(notes))
				return a.rankPlan(ctx, j, folder, svg, most)
			}
			c, err := a.Ensure(ctx, f.Market)
			if err != nil {
				return err
			}
			v, err := c.Server(ctx)
			if err != nil {
				return err
			}
			j, _, notes, err = jobfile.Load(args, cmd.ArgsLenAtDash(), f, v.Market.Now)
			if err != nil {
				return err
			}
			jobfile.Note(a.App, notes)
			j, from := learn.From(ctx, a.App, c, j)
			p, err := Predict(ctx, a.App, c, j, v)
			if err != nil {
				return err
			}
			p.WorkFrom = from
			if a.JSON {
				err = a.Print(p)
			} else {
				a.Printf("%s", p.Text(a.Place()))
			}
			if err == nil && !p.Feasible {
				return command.Infeasible
			}
			return err
		},
	}
	f.Add(cmd)
	cmd.Flags().BoolVar(&ranked, "catalog", false, "rank the catalogue's offers for the job instead, by arithmetic "+
		"(docs/plan.md) (default: play it forward on the server's market)")
	cmd.Flags().StringVar(&svg, "svg", "", "with --catalog: draw cost against time into this `file` (default: no drawing)")
	cmd.Flags().IntVar(&most, "limit", 50, "with --catalog: plans and rejected offers to return; 0 is all")
	return cmd
}

// foresee plays the job forward on the market.
func foresee(j spec.Job, m api.Market, v api.Server) show.Plan {
	clock := v.Market
	stretch := func(d time.Duration) time.Duration { return time.Duration(float64(d) * clock.Speed) }
	q := sim.Scenario{Config: forecast.Rules(clock.Speed, v.Engines), Terms: jobterms.Of(j, clock.Now, stretch),
		Now:     clock.Now,
		Restart: stretch(2 * time.Second), Save: stretch(500 * time.Millisecond), Runs: forecastRuns, Hazards: hazards(m),
		Speed: clock.Speed}
	for _, l := range m.Offers {
		q.Offers = append(q.Offers, convert.To[market.Offer](l.Offer))
		q.Quotes = append(q.Quotes, convert.To[market.Quote](l.Quote))
	}
	p := show.Plan{Name: j.Name, Market: m.Clock.Name, Speed: clock.Speed, Feasible: true, Reasons: []string{},
		Rejected: []show.Rejected{}}
	if p.Known = q.Terms.Work > 0; p.Known {
		s := q.Terms.Work.Seconds()
		p.WorkS = &s
	}
	if b := j.Budget.Dollars; b != nil && !q.Terms.DeadlineFirst {
		worst := b.Float()
		p.WorstUSD = &worst
	}
	if q.Terms.Steps == 0 {
		q.Terms.Steps = 1000
	}
	if p.Known {
		q.Pace = float64(q.Terms.Steps) / q.Terms.Work.Hours()
	} else {
		q.Terms.Deadline, q.Runs = time.Time{}, 1
		q.Pace = float64(q.Terms.Steps) // an hour stands in: only the first decision is shown
	}
	f := sim.Ask(q)
	p.Take, p.Why = string(f.First.Take), string(f.First.Why)
	for _, r := range f.First.Rejected {
		p.Rejected = append(p.Rejected, show.Rejected{Offer: string(r.Offer), Why: string(r.Why)})
	}
	if f.First.Take == "" && f.First.Why == "no_offer" {
		p.Feasible = false
		p.Reasons = append(p.Reasons, "nothing on this market fits: scrimp market shows what is for sale")
	}
	if p.Known {
		p.Runs = q.Runs
		expect(&p, q, f)
	}
	return p
}

// expect writes what came of the runs, where it is known how much there is to do.
func expect(p *show.Plan, q sim.Scenario, f sim.Forecast) {
	p.CostUSD, p.Interrupts = &f.Cost, &f.Interruptions
	p.FinishS = &[3]float64{f.Finish[0].Seconds(), f.Finish[1].Seconds(), f.Finish[2].Seconds()}
	if f.OnDemand > 0 {
		p.OnDemandUSD = &f.OnDemand
	}
	if !q.Terms.Deadline.IsZero() {
		p.InTime = &f.InTime
	}
	if f.Done < 0.5 || p.InTime != nil && *p.InTime < 0.5 {
		p.Feasible = false
		share, what := f.Done, "done within budget"
		if f.Done >= 0.5 { // the deadline is what fails
			share, what = *p.InTime, "done in time"
		}
		p.Reasons = append(p.Reasons, fmt.Sprintf("%s in %.0f %% of the runs: the work needs about %s", what, share*100,
			draw.Span(q.Terms.Work)))
	}
	p.Reasons = append(p.Reasons, conflicts(q, f)...)
}

// alternatives is how many runs of each of the two ways out of a conflict are simulated.
const alternatives = 60

// conflicts says, before anything is spent, where deadline, promise and budget
// cannot all hold, and which one gives way.
func conflicts(q sim.Scenario, f sim.Forecast) []string {
	var list []string
	t := q.Terms
	if t.HasBudget && !t.Deadline.IsZero() && (f.InTime < max(t.Promise, 0.9) || f.Done < 1 ||
		t.DeadlineFirst && f.Cost[2] > t.Budget.Float()) {
		return apart(q, f)
	}
	if !t.Deadline.IsZero() && t.Promise > 0 && f.InTime < t.Promise {
		list = append(list, fmt.Sprintf("the deadline is met in %.0f %% of the runs and %.4g %% are promised: give a "+
			"later deadline, more budget, or a lower promise", f.InTime*100, t.Promise*100))
	}
	switch {
	case !t.HasBudget:
	case !t.DeadlineFirst && f.Done < 1:
		list = append(list, fmt.Sprintf("the budget ends before the work in %.0f %% of the runs: the job then stops with "+
			"a checkpoint", (1-f.Done)*100))
	case t.DeadlineFirst && f.Cost[2] > t.Budget.Float():
		list = append(list, fmt.Sprintf("it may cost $%.2f, more than the budget of $%.2f: first is deadline, so it goes on",
			f.Cost[2], t.Budget.Float()))
	}
	return list
}

// apart plays a job whose deadline and budget may not both hold once without each
// of them, and says what finishes when for how much, which of the two gives way, and
// the nearest deadline and budget that would do.
func apart(q sim.Scenario, f sim.Forecast) []string {
	t := q.Terms
	q.Runs = alternatives
	timely, thrifty := q, q
	timely.Terms.HasBudget = false
	thrifty.Terms.Deadline, thrifty.Terms.DeadlineFirst = time.Time{}, false
	a, b := sim.Ask(timely), sim.Ask(thrifty)
	first := "first is budget, so the job is late rather than dearer: it waits for what finishes within the budget, " +
		"and where nothing does it ends early, with its checkpoint"
	if t.DeadlineFirst {
		first = "first is deadline, so the budget gives way"
	}
	list := []string{fmt.Sprintf("deadline and budget both hold in %.0f %% of the runs; %s", f.InTime*100, first)}
	if t.DeadlineFirst {
		list[0] = fmt.Sprintf("it may cost %s, more than the budget of $%.2f; %s", roundedUp(f.Cost[2]),
			t.Budget.Float(), first)
	}
	if a.InTime < 0.1 && b.Done >= 0.9 && !t.DeadlineFirst { // money is not what it lacks
		list[0] = "the deadline comes too soon, whatever is spent: the job is late, as little as can be within its budget"
	}
	allowed := t.Deadline.Sub(q.Now)
	switch {
	case a.InTime >= 0.9:
		list = append(list, fmt.Sprintf("in time it costs %s to %s: a budget of %s would do", roundedUp(a.Cost[0]),
			roundedUp(a.Cost[2]), roundedUp(a.Cost[2]*1.02)))
	default:
		list = append(list, fmt.Sprintf("no budget makes it be in time in more than %.0f %% of the runs: it is done in "+
			"%s to %s", a.InTime*100, draw.Span(a.Finish[0]), draw.Span(a.Finish[2])))
	}
	switch {
	case b.Done >= 0.9 && b.Finish[2] > allowed:
		list = append(list, fmt.Sprintf("within the budget it is done in %s to %s: a deadline in %s would do",
			draw.Span(b.Finish[0]), draw.Span(b.Finish[2]), draw.Span(b.Finish[2]+b.Finish[2]/50)))
	case b.Done >= 0.9:
		list = append(list, fmt.Sprintf("within the budget it is done in %s to %s", draw.Span(b.Finish[0]),
			draw.Span(b.Finish[2])))
	default:
		thrifty.Terms.HasBudget = false
		c := sim.Ask(thrifty)
		list = append(list, fmt.Sprintf("the budget does not do in %.0f %% of the runs, however late: the cheapest way "+
			"costs %s to %s", 100*(1-b.Done), roundedUp(c.Cost[0]), roundedUp(c.Cost[2])))
	}
	return list
}

// roundedUp writes dollars rounded up, so that a budget of what is written does.
func roundedUp(usd float64) string {
	if usd < 1 {
		return fmt.Sprintf("$%.4f", math.Ceil(usd*1e4)/1e4)
	}
	return fmt.Sprintf("$%.2f", math.Ceil(usd*100)/100)
}

// drawn writes a drawing of the frontier into a file.
func (a *app) drawn(file, svg string) error {
	if svg == "" {
		a.Notef("note: no plan has a cost and a time to draw: %s is not written\n", file)
		return nil
	}
	if err := os.WriteFile(file, []byte(svg), 0o644); err != nil {
		return fmt.Errorf("write the drawing: %w", err)
	}
	a.Notef("The frontier is in %s\n", file)
	return nil
}

func hazards(m api.Market) map[market.OfferID]policy.Hazard {
	h := map[market.OfferID]policy.Hazard{}
	for _, l := range m.Offers {
		h[market.OfferID(l.Offer.ID)] = convert.To[policy.Hazard](l.Hazard)
	}
	return h
}
