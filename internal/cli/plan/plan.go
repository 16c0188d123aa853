package plan

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/show/planning"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/wait"
	"scrimp/internal/market"
	"scrimp/internal/server/forecast"
	jobterms "scrimp/internal/server/terms"
	"scrimp/internal/sim"
	"scrimp/internal/view/convert"
)

// forecastRuns is the number of simulated runs of a plan; it gives the odds to about 3 %.
const forecastRuns = 200

// Predict requests the server's market and simulates the job on it.
func Predict(ctx context.Context, a *command.App, c *command.Client, j spec.Job, v api.Server) (planning.Plan, error) {
	p, _, err := predict(ctx, a, c, j, v)
	return p, err
}

func predict(ctx context.Context, a *command.App, c *command.Client, j spec.Job, v api.Server) (planning.Plan, *outlook,
	error) {
	var m api.Market
	for begun := a.Now(); ; {
		if err := c.Do(ctx, http.MethodGet, "/v1/market", nil, &m); err != nil {
			return planning.Plan{}, nil, err
		}
		if told(m, v) || a.Now().Sub(begun) >= firstPolls {
			break
		}
		if err := wait.For(ctx, 100*time.Millisecond); err != nil { // the server has just started
			return planning.Plan{}, nil, err
		}
		if err := c.Do(ctx, http.MethodGet, "/v1/server", nil, &v); err != nil {
			return planning.Plan{}, nil, err
		}
	}
	if err := unknown(j, m, v); err != nil {
		return planning.Plan{}, nil, err
	}
	p, q := foresee(ctx, j, m, v, forecastRuns)
	return p, q, ctx.Err()
}

// firstPolls bounds how long a plan waits for engines that a new server has not polled yet.
const firstPolls = 5 * time.Second

// told reports whether each engine has sent its offers or failed to answer.
func told(m api.Market, v api.Server) bool {
	return len(m.Offers)+len(m.Away) > 0 &&
		!slices.ContainsFunc(v.Engines, func(e api.Engine) bool { return e.State == forecast.NotAsked })
}

// unknown returns an error if the job names engines or zones that the server does not have.
func unknown(j spec.Job, m api.Market, v api.Server) error {
	var engines []string
	for _, e := range v.Engines {
		if e.State != forecast.NotConfigured {
			engines = append(engines, e.Name)
		}
	}
	var sold []market.Offer
	for _, l := range m.Offers {
		sold = append(sold, convert.To[market.Offer](l.Offer))
	}
	if list := jobterms.Unknown(j, engines, sold); len(list) > 0 {
		return list
	}
	return nil
}

// shows prints a plan. It returns an error if the plan is infeasible.
func (a *app) shows(ctx context.Context, p planning.Plan) (err error) {
	if err := ctx.Err(); err != nil { // the simulation is incomplete
		return err
	}
	if a.JSON {
		err = a.Print(p)
	} else {
		a.Printf("%s", p.Text(a.Place()))
	}
	if err == nil && !p.Feasible {
		return command.Infeasible
	}
	return err
}

// foresee simulates the job on the market the given number of times. Its result is meaningless once ctx is done.
func foresee(ctx context.Context, j spec.Job, m api.Market, v api.Server, runs int) (planning.Plan, *outlook) {
	clock := v.Market
	stretch := func(d time.Duration) time.Duration { return time.Duration(float64(d) * clock.Speed) }
	q := &outlook{Scenario: sim.Scenario{Config: forecast.Rules(clock.Speed, v.Engines),
		Terms: jobterms.Of(j, clock.Now, stretch), Now: clock.Now,
		Restart: stretch(2 * time.Second), Save: stretch(500 * time.Millisecond), Runs: runs, Hazards: hazards(m),
		Speed: clock.Speed, Halt: func() bool { return ctx.Err() != nil }}}
	q.sells(m)
	p := planning.Plan{Name: j.Name, Market: m.Clock.Name, Speed: clock.Speed, Feasible: true, Reasons: []string{},
		Rejected: []planning.Rejected{}}
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
		q.Runs = runsOf(q.Terms.Work, runs)
	} else {
		q.decidesOnce()
	}
	has := func(s sold) bool { return q.Terms.Need.Accelerated(&s.offer) }
	sale := q.sale()
	p.Unsold = len(sale) > 0 && !slices.ContainsFunc(sale, has)
	f, waits, at := q.ask()
	q.waiting(&p, waits, at)
	p.Take, p.Why, p.Nodes = string(f.First.Take), string(f.First.Why), max(1, f.First.Nodes)
	priced(&p, m)
	for _, r := range f.First.Rejected {
		p.Rejected = append(p.Rejected, planning.Rejected{Offer: string(r.Offer), Why: string(r.Why)})
	}
	if f.First.Take == "" && f.First.Why == plan.NoOffer {
		p.Feasible = false
		p.Reasons = append(p.Reasons, cmp.Or(shortLived(f), noImages(f, j), tooSmall(sale, &q.Terms.Need),
			tooLarge(sale, f, &q.Terms.Need), noneOf(j.Resources.Accelerator, p.Unsold)))
		for _, e := range m.Away { // what it sells would do, perhaps
			p.Reasons = append(p.Reasons, e.What()+" does not answer: "+strings.Join(strings.Fields(e.Error), " "))
		}
	}
	if p.Take != "" && p.Spot && !q.Terms.Saves {
		p.Reasons = append(p.Reasons, "the job saves nothing, so that an interruption loses all that it has done: name the "+
			"folder that it saves to under checkpoint.dir")
	}
	if p.Known {
		p.Runs = q.Runs
		expect(&p, q.Scenario, f)
	}
	return p, q
}

// noneOf says that no offer of the market will do, and that none has the accelerator where it is unsold.
func noneOf(accelerator string, unsold bool) string {
	lacks := "fits"
	if unsold {
		lacks = "has the accelerator " + accelerator
	}
	return "no offer of this market " + lacks + ": scrimp market shows what is for sale"
}

// decidesOnce prepares the question for work that nobody knows: it plays the first decision only, as if the work took
// an hour. No deadline counts, and no offer is too short-lived.
func (q *outlook) decidesOnce() {
	q.Terms.Deadline, q.Runs = time.Time{}, 1
	q.Pace = float64(q.Terms.Steps)
	for i := range q.Offers {
		q.Offers[i].MaxLifetime = 0
	}
}

// runsOf returns how many runs to simulate: fewer for work of more than three months, which takes long, but at least
// 20.
func runsOf(work time.Duration, runs int) int {
	return min(runs, max(20, int(float64(runs)*(2000/work.Hours()))))
}

// priced adds the hourly price of the chosen offer, and whether spot is for sale.
func priced(p *planning.Plan, m api.Market) {
	for _, l := range m.Offers {
		p.Spot = p.Spot || l.Offer.Capacity == api.Spot
		if l.Offer.ID == p.Take && l.Quote.Priced && l.Offer.Currency == "USD" {
			rate := l.Quote.Rate.Float()
			p.RateUSD = &rate
		}
	}
}

// expect adds the results of the runs, if the amount of work is known.
func expect(p *planning.Plan, q sim.Scenario, f sim.Forecast) {
	if f.Endless < 0.1 { // otherwise their cost until the cut-off is not the cost of the work
		p.CostUSD, p.MarginalUSD, p.Interrupts = &f.Cost, &f.Marginal, &f.Interruptions
		p.FinishS = inSeconds(f.Finish)
	}
	if f.OnDemand != nil {
		p.OnDemandUSD, p.OnDemandOffer = new(f.OnDemand.Cost.Float()), string(f.OnDemand.Offer)
	}
	if !q.Terms.Deadline.IsZero() {
		p.InTime = &f.InTime
	}
	if f.First.Take == "" && f.First.Why == plan.NoOffer {
		return // already reported: neither a later deadline nor more money changes it
	}
	if f.Done < 0.5 || p.InTime != nil && *p.InTime < 0.5 {
		p.Feasible = false
		p.Reasons = append(p.Reasons, tooLate(q, f))
	}
	p.Reasons = append(p.Reasons, conflicts(q, f)...)
}

// alternatives is the number of simulated runs for each way out of a conflict.
const alternatives = 60

// conflicts reports, before anything is spent, whether deadline, promise and budget conflict, and which one gives way.
func conflicts(q sim.Scenario, f sim.Forecast) []string {
	var list []string
	t := q.Terms
	if t.HasBudget && !t.Deadline.IsZero() && (f.InTime < max(t.Promise, 0.9) || f.Done < 1 ||
		t.DeadlineFirst && f.Cost[2] > t.Budget.Float()) {
		return apart(q, f)
	}
	if !t.Deadline.IsZero() && t.Promise > 0 && f.InTime < t.Promise {
		list = append(list, fmt.Sprintf("%.0f %% of the simulated runs meet the deadline, the promise is %.4g %%: give a "+
			"later deadline, more budget, or a lower promise", f.InTime*100, t.Promise*100))
	}
	switch {
	case !t.HasBudget:
	case !t.DeadlineFirst && f.Done < 1:
		list = append(list, fmt.Sprintf("the budget ends before the work in %.0f %% of the runs: the job then stops with "+
			"a checkpoint", (1-f.Done)*100))
	case t.DeadlineFirst && f.Cost[2] > t.Budget.Float():
		list = append(list, fmt.Sprintf("it may cost %s, more than the budget of %s: the deadline comes first, so it goes on",
			money.ShortFloat(f.Cost[2], money.USD), money.Short(t.Budget, money.USD)))
	}
	return list
}

// apart simulates a job with conflicting deadline and budget once without each of them. It reports when each variant
// ends and its cost, which of the two gives way, and the nearest deadline and budget that would do.
func apart(q sim.Scenario, f sim.Forecast) []string {
	t := q.Terms
	q.Runs = alternatives
	timely, thrifty := q, q
	timely.Terms.HasBudget = false
	thrifty.Terms.Deadline, thrifty.Terms.DeadlineFirst = time.Time{}, false
	a, b := sim.Ask(timely), sim.Ask(thrifty)
	first := "the budget comes first, so the job is late rather than dearer: it waits for an offer that finishes within " +
		"the budget, and where there is none it stops early, with a checkpoint"
	if t.DeadlineFirst {
		first = "the deadline comes first, so the job may pass its budget"
	}
	list := []string{fmt.Sprintf("deadline and budget both hold in %.0f %% of the runs; %s", f.InTime*100, first)}
	if t.DeadlineFirst {
		list[0] = fmt.Sprintf("it may cost %s, more than the budget of %s; %s", roundedUp(f.Cost[2]),
			money.Short(t.Budget, money.USD), first)
	}
	if a.InTime < 0.1 && b.Done >= 0.9 && !t.DeadlineFirst { // money is not the problem
		list[0] = "the deadline is too soon for any budget: the job finishes as early as its budget allows, and late"
	}
	allowed := t.Deadline.Sub(q.Now)
	switch {
	case a.InTime >= 0.9 && t.Budget.Float() >= a.Cost[2]*1.02:
		list = append(list, fmt.Sprintf("in time it costs %s to %s in four of five runs, within the budget of %s: a larger "+
			"budget is for the dearest runs only", roundedUp(a.Cost[0]), roundedUp(a.Cost[2]), money.Short(t.Budget, money.USD)))
	case a.InTime >= 0.9:
		list = append(list, fmt.Sprintf("in time it costs %s to %s: a budget of %s would do", roundedUp(a.Cost[0]),
			roundedUp(a.Cost[2]), roundedUp(a.Cost[2]*1.02)))
	default:
		list = append(list, fmt.Sprintf("no budget meets the deadline in more than %.0f %% of the runs: the job takes "+
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
		list = append(list, fmt.Sprintf("the budget is too small in %.0f %% of the runs, however late: the cheapest way "+
			"costs %s to %s", 100*(1-b.Done), roundedUp(c.Cost[0]), roundedUp(c.Cost[2])))
	}
	return list
}

// roundedUp formats dollars rounded up, so that the printed budget suffices.
func roundedUp(usd float64) string {
	if usd < 1 {
		return fmt.Sprintf("$%.4f", math.Ceil(usd*1e4)/1e4)
	}
	return fmt.Sprintf("$%.2f", math.Ceil(usd*100)/100)
}

// drawn writes a drawing of the frontier to a file.
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
