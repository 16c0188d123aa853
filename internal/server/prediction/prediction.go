// Package prediction simulates a job that is not submitted yet on the server's market: its cost, its finish, and the
// reasons. The command line, the API and the dashboard show the same plan.
package prediction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/job/check"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/accelerator"
	"scrimp/internal/market/catalog"
	"scrimp/internal/server/forecast"
	"scrimp/internal/server/terms"
	"scrimp/internal/sim"
	"scrimp/internal/view/convert"
)

// Runs is the number of simulated runs of a plan; it gives the odds to about 3 %.
const Runs = 200

// events bounds the simulated events of all runs of a plan, which take a processor about a second. Work of months gets
// fewer runs.
const events = 300_000

// Simulation says how often a job is simulated, and who hears of it.
type Simulation struct {
	Runs   int
	Events int            // of all runs together, for a quick answer; 0 is the bound of a plan
	Save   time.Duration  // of a checkpoint, in market time; 0 is half a second of the server's clock
	Halt   func() bool    // true ends the simulation, with the runs that are complete; nil never does
	Told   func(runs int) // called after each run with the number of complete ones; may be nil
}

// Polled reports whether each engine has sent its offers or failed to answer.
func Polled(m api.Market, v api.Server) bool {
	return len(m.Offers)+len(m.Away) > 0 &&
		!slices.ContainsFunc(v.Engines, func(e api.Engine) bool { return e.State == forecast.NotAsked })
}

// Unknown returns an error if the job names engines or zones that the server does not have.
func Unknown(j spec.Job, m api.Market, v api.Server) error {
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
	if list := terms.Unknown(j, engines, sold); len(list) > 0 {
		return list
	}
	return nil
}

// Of simulates the job on the market the given number of times, or until halt reports true.
func Of(j spec.Job, m api.Market, v api.Server, runs int, halt func() bool) (api.Plan, *Outlook) {
	return With(j, m, v, Simulation{Runs: runs, Halt: halt})
}

// With simulates the job on the market. The plan of a simulation that was halted has the runs that were complete; its
// Runs is 0 if none was.
func With(j spec.Job, m api.Market, v api.Server, by Simulation) (api.Plan, *Outlook) {
	q := outlookOf(j, m, v, by)
	p := q.planOf(j, m)
	if p.Known {
		q.Pace = float64(q.Terms.Steps) / q.Terms.Work.Hours()
	} else {
		q.decidesOnce()
	}
	sale := q.sale()
	p.Unsold = len(sale) > 0 &&
		!slices.ContainsFunc(sale, func(s sold) bool { return q.Terms.Need.Accelerated(&s.offer) })
	f, waits, at := q.ask()
	q.waiting(&p, waits, at)
	q.takes(&p, m, f)
	q.noOffer(&p, j, m, f, sale)
	if p.Known {
		p.Runs = f.Runs
		q.Told = nil // what follows is short
		expect(&p, q.Scenario, f)
	}
	q.windowed(&p, j)
	q.onSpot(&p, j, m) // the last: run gives the first as why a plan is not feasible
	return p, q
}

// onSpot adds why spot is a poor choice for the job, if it begins there, or what an interruption would lose later.
func (q *Outlook) onSpot(p *api.Plan, j spec.Job, m api.Market) {
	begins := slices.ContainsFunc(m.Offers, func(l api.Listing) bool {
		return l.Offer.ID == p.Take && l.Offer.Capacity == api.Spot
	})
	if why, fix, poor := check.PoorSpot(&check.Case{Job: j}); begins && poor {
		p.Reasons = append(p.Reasons, "spot is a poor choice for this job: "+why+"; "+fix)
		return
	}
	if p.Take != "" && q.Spot && !q.Terms.Saves {
		p.Reasons = append(p.Reasons, "the job saves nothing, so that an interruption loses all that it has done: name the "+
			"folder that it saves to under checkpoint.dir")
	}
}

// outlookOf returns the simulation of the job on the market, before its first run.
func outlookOf(j spec.Job, m api.Market, v api.Server, by Simulation) *Outlook {
	clock := v.Market
	stretch := func(d time.Duration) time.Duration { return time.Duration(float64(d) * clock.Speed) }
	starts, kinds := map[string]time.Duration{}, map[string]string{}
	for _, e := range v.Engines {
		if e.State != forecast.NotConfigured {
			kinds[e.Name] = e.Kind
			starts[e.Name] = time.Duration(e.Timing.Start * float64(time.Second))
		}
	}
	q := &Outlook{Scenario: sim.Scenario{Config: forecast.Rules(clock.Speed, v.Engines),
		Terms: terms.Of(j, clock.Now, stretch, starts), Now: clock.Now,
		Starts: map[string]time.Duration{}, Save: cmp.Or(by.Save, stretch(500*time.Millisecond)), Runs: by.Runs,
		Events:  cmp.Or(by.Events, events),
		Hazards: hazards(m),
		Speed:   clock.Speed, Halt: by.Halt, Told: by.Told}}
	q.Terms.Need.Reads = terms.Reads(j, charges(v), kinds)
	for name, start := range starts {
		q.Starts[name] = stretch(start)
	}
	q.Restart = q.Terms.Restart
	q.sells(m)
	return q
}

// charges returns the server's own prices of transferring data.
func charges(v api.Server) (c catalog.Catalog) {
	for _, x := range v.Charges {
		c.Own = append(c.Own, catalog.TransferRate{Provider: x.Provider, What: x.What, Price: x.Price,
			Currency: money.Currency(x.Currency)})
	}
	return c
}

// planOf returns the plan with what the job file says: its work, its budget and its limits. It also gives the
// simulated job steps if the job file has none.
func (q *Outlook) planOf(j spec.Job, m api.Market) api.Plan {
	p := api.Plan{Name: j.Name, Market: m.Clock.Name, Speed: q.Speed, Feasible: true, Reasons: []string{},
		Rejected: []api.PlanRefusal{}}
	if p.Known = q.Terms.Work > 0; p.Known {
		p.WorkS = new(q.Terms.Work.Seconds())
	}
	if b := j.Budget.Dollars; b != nil && !q.Terms.DeadlineFirst {
		p.WorstUSD = new(b.Float())
	}
	q.limits(&p, j)
	if q.Terms.Steps == 0 {
		q.Terms.Steps = sim.StepsOf(q.Terms.Work)
	}
	return p
}

// takes adds the first decision: the offer that the job takes, why, its price, and why the job rejects the others.
func (q *Outlook) takes(p *api.Plan, m api.Market, f sim.Forecast) {
	p.Take, p.Why, p.Nodes = string(f.First.Take), string(f.First.Why), max(1, f.First.Nodes)
	if g := f.First.Gets; g.Units > 0 {
		p.Gets = new(convert.To[api.Gets](g))
	}
	if f.First.Take == "" && f.First.Why == plan.Closed {
		p.BeginS = new(q.Terms.Window.Opens(q.Now).Sub(q.Now).Seconds())
	}
	q.priced(p, m)
	byID := map[string]*api.Listing{}
	for i := range m.Offers {
		byID[m.Offers[i].Offer.ID] = &m.Offers[i]
	}
	for _, r := range f.First.Rejected {
		p.Rejected = append(p.Rejected, q.refusal(r, byID[string(r.Offer)]))
	}
}

// refusal returns an offer that the job does not take, with what its work takes and costs there uninterrupted. l is nil
// for an offer that the market does not list.
func (q *Outlook) refusal(r plan.Rejection, l *api.Listing) api.PlanRefusal {
	v := api.PlanRefusal{Offer: string(r.Offer), Why: string(r.Why)}
	if l == nil {
		return v
	}
	if l.Quote.Priced && l.Offer.Currency == "USD" {
		v.RateUSD = new(l.Quote.Rate.Float())
	}
	if q.Terms.Work > 0 {
		o := convert.To[market.Offer](l.Offer)
		takes := q.Terms.Work.Seconds() / q.Terms.Need.SpeedOn(&o, "", 0)
		v.WorkS = &takes
		if reads, ok := q.readsOn(l); ok && !reads.IsZero() {
			v.ReadsUSD = new(reads.Float())
		}
		if v.RateUSD != nil {
			v.WorkUSD = new(*v.RateUSD * float64(q.Terms.Most()) * *v.WorkS / 3600)
		}
	}
	return v
}

// readsOn returns what the job's machines of an offer pay for reading its inputs, once. It is false if that is unknown.
func (q *Outlook) readsOn(l *api.Listing) (sum money.Amount, ok bool) {
	return q.Terms.Need.ReadCosts(&market.Offer{Provider: l.Offer.Provider, Region: l.Offer.Region}, q.Terms.Most())
}

// noOffer adds why no offer of the market fits the job, and which engines do not answer; nothing if an offer fits.
func (q *Outlook) noOffer(p *api.Plan, j spec.Job, m api.Market, f sim.Forecast, sale []sold) {
	if f.First.Take != "" || f.First.Why != plan.NoOffer {
		return
	}
	p.Feasible = false
	p.Reasons = append(p.Reasons, cmp.Or(shortLived(f), noImages(f, j), unknownFare(f, j), tooSmall(sale, &q.Terms.Need),
		tooLarge(sale, f, &q.Terms.Need), noneOf(j.Resources.Accelerator, p.Unsold, sale)))
	for _, e := range m.Away { // an engine that does not answer may sell an offer that fits
		p.Reasons = append(p.Reasons, e.What()+" does not answer: "+strings.Join(strings.Fields(e.Error), " "))
	}
}

// windowed adds how much time the window of the job leaves until its deadline; nothing if the job has only one of them.
func (q *Outlook) windowed(p *api.Plan, j spec.Job) {
	t := &q.Terms
	if t.Window.Always() || t.Deadline.IsZero() {
		return
	}
	open, _ := t.Window.Between(q.Now, t.Deadline)
	p.Reasons = append(p.Reasons, fmt.Sprintf("it may run at %s only, which leaves %s until the deadline", j.Window,
		draw.Span(open)))
}

// limits adds when the job must be done, what stops it besides dollars, and when it may run.
func (q *Outlook) limits(p *api.Plan, j spec.Job) {
	p.Window, p.Session = j.Window, j.Session
	if t := q.Terms.Deadline; !t.IsZero() {
		p.DeadlineS = new(t.Sub(q.Now).Seconds())
	}
	if limit := time.Duration(j.Budget.WallClock); limit > 0 {
		p.WallClockS = new(limit.Seconds())
	}
	if j.Budget.GPUHours > 0 {
		p.GPUHours = new(j.Budget.GPUHours)
	}
}

// noneOf says that no offer of the market will do. Where none has the accelerator, it names the nearest.
func noneOf(wanted string, unsold bool, sale []sold) string {
	const fix = ": scrimp market shows what is for sale"
	if !unsold {
		return "no offer of this market fits" + fix
	}
	return "no offer of this market has the accelerator " + wanted +
		accelerator.Nearest(wanted, sale, func(s sold) string { return s.offer.Accelerator }) + fix
}

// decidesOnce prepares the question for work that nobody knows: it plays the first decision only, as if the work took
// an hour. No deadline counts, and no offer is too short-lived.
func (q *Outlook) decidesOnce() {
	q.Terms.Deadline, q.Runs = time.Time{}, 1
	q.Pace = float64(q.Terms.Steps)
	for i := range q.Offers {
		q.Offers[i].MaxLifetime = 0
	}
}

// priced adds the hourly price of the chosen offer, and whether spot is for sale.
func (q *Outlook) priced(p *api.Plan, m api.Market) {
	for _, l := range m.Offers {
		q.Spot = q.Spot || l.Offer.Capacity == api.Spot
		if l.Offer.ID == p.Take && l.Quote.Priced && l.Offer.Currency == "USD" {
			rate := l.Quote.Rate.Float()
			p.RateUSD = &rate
		}
	}
}

// expect adds the results of the runs, if the amount of work is known.
func expect(p *api.Plan, q sim.Scenario, f sim.Forecast) {
	if f.Runs == 0 {
		return
	}
	if f.Endless < 0.1 { // otherwise their cost until the cut-off is not the cost of the work
		p.CostUSD, p.MarginalUSD, p.Interrupts = &f.Cost, &f.Marginal, &f.Interruptions
		p.FinishS = inSeconds(f.Finish)
		if f.Reads[2] > 0 {
			p.ReadsUSD = &f.Reads
		}
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
	if f.Halted {
		p.Reasons = append(p.Reasons, fmt.Sprintf("interrupted: these are the first %d of %d runs", f.Runs, q.Runs))
		return
	}
	p.Reasons = append(p.Reasons, conflicts(q, f)...)
}

func hazards(m api.Market) map[market.OfferID]policy.Hazard {
	h := map[market.OfferID]policy.Hazard{}
	for _, l := range m.Offers {
		h[market.OfferID(l.Offer.ID)] = convert.To[policy.Hazard](l.Hazard)
	}
	return h
}
