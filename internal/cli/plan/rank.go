package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/command"
	"scrimp/internal/cli/evidence"
	"scrimp/internal/cli/offers"
	"scrimp/internal/cli/pastruns"
	"scrimp/internal/cli/show/planning"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/rank"
	"scrimp/internal/job/check"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/figure"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/market/accelerator"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/egress"
	"scrimp/internal/server/prediction"
	jobterms "scrimp/internal/server/terms"
	"scrimp/internal/sim"
)

// Assumptions of a plan over the catalogue without measurements.
const (
	assumedStart  = 5 * time.Minute
	assumedResume = 5 * time.Minute
	assumedSave   = 30 * time.Second
	assumedGap    = 24 * time.Minute // a tenth of a spot machine's life, as in the simulated runs
	assumedShare  = 0.8              // of the steps, when a plateau ends a run
	statedSpread  = 1.2              // factor to each side of a time stated by the job
	otherSpread   = 1.5              // the same on another accelerator of the same name
)

// sells reports whether a running server's market has the accelerator.
func (a *app) sells(ctx context.Context, wanted string) bool {
	kind, _, _ := strings.Cut(wanted, ":")
	c, err := a.Open(ctx)
	if err != nil {
		return false
	}
	var m api.Market
	if err := c.Do(ctx, http.MethodGet, "/v1/market", nil, &m); err != nil {
		return false
	}
	return slices.ContainsFunc(m.Offers, func(l api.Listing) bool {
		return accelerator.Matches(kind, l.Offer.Accelerator)
	})
}

// rankPlan ranks the catalogue's offers for a job.
func (a *app) rankPlan(ctx context.Context, j spec.Job, folder, svg string, most int) error {
	now := a.Now().UTC()
	c, _, err := offers.LoadCatalog(a.App)
	if err != nil {
		return err
	}
	from := ""
	runs, err := pastruns.Ran(ctx, a.App, j.Name, false)
	if err != nil {
		a.Notef("note: earlier runs are left out: %v\n", err)
	} else {
		j, from = pastruns.Fill(a.App, j, runs)
	}
	q, v, err := a.question(ctx, j, from, folder, c, now)
	if err != nil {
		return err
	}
	q.Most = most
	q.Hazards, v.Here = offers.Seen(ctx, a.App)
	v.Answer = rank.Rank(q)
	if v.Answer.Feasible {
		v.Played = playPlan(j, q, v.Answer.Plans[0])
	}
	v.SpotPoor = a.poorSpot(ctx, j, len(runs) > 0, v.Answer)
	if svg != "" {
		if err := a.drawn(svg, v.SVG()); err != nil {
			return err
		}
	}
	if a.JSON {
		err = a.Print(v)
	} else {
		a.Printf("%s", v.Text(a.Place()))
	}
	if err == nil && !v.Answer.Feasible {
		return command.Infeasible
	}
	return err
}

// poorSpot returns why spot is a poor choice for the job, as scrimp check says it, if a plan is on spot; else "".
func (a *app) poorSpot(ctx context.Context, j spec.Job, ran bool, answer rank.Answer) string {
	plans := slices.Clone(answer.Plans)
	for _, n := range answer.Nearest {
		plans = append(plans, n.Plan)
	}
	if !slices.ContainsFunc(plans, func(p rank.Plan) bool { return p.Offer.Offer.Capacity == market.Spot }) {
		return ""
	}
	c := check.Case{Job: j, Estimate: &check.Estimate{Time: time.Duration(plans[0].Hours.Value * float64(time.Hour))}}
	if ran {
		if cl, err := a.Open(ctx); err == nil {
			c.Runs, _ = evidence.Runs(ctx, cl, j.Name) // without them, the job alone tells
		}
	}
	why, fix, poor := check.PoorSpot(&c)
	if !poor {
		return ""
	}
	return why + "; " + fix
}

// playPlan simulates a plan with the code that would run it: on the plan's offer and its on-demand fallback, at the
// middle of the estimate.
func playPlan(j spec.Job, q rank.Request, p rank.Plan) *planning.Played {
	work := time.Duration(p.WorkHours * float64(time.Hour))
	t := jobterms.Of(j, q.Now, func(d time.Duration) time.Duration { return d }, nil)
	t.Need, t.Work = plan.Need{Critical: t.Need.Critical}, work
	if t.Steps == 0 {
		t.Steps = sim.StepsOf(work)
	}
	x := sim.Scenario{Terms: t, Now: q.Now, Pace: float64(t.Steps) / work.Hours(), Restart: q.Start, Save: q.Save,
		Runs: prediction.Runs, Hazards: q.Hazards}
	for i := range q.Offers {
		if l := &q.Offers[i]; l.Offer.ID == p.ID || l.Offer.ID == p.Fallback {
			quote := l.Quote
			quote.Rate, quote.Available, quote.At = quote.Rate.Times(p.Machines), true, q.Now
			x.Offers, x.Quotes = append(x.Offers, l.Offer), append(x.Quotes, quote)
		}
	}
	f := sim.Ask(x)
	v := planning.Played{Runs: f.Runs, Done: f.Done, Cost: f.Cost, Interruptions: f.Interruptions}
	for _, d := range f.Finish {
		v.Hours = append(v.Hours, d.Hours())
	}
	if q.Deadline > 0 {
		v.InTime = &f.InTime
	}
	return &v
}

// question converts a job to a request to rank the catalogue. from is the source of the job's work; empty for its file.
func (a *app) question(ctx context.Context, j spec.Job, from, folder string, c catalog.Catalog,
	now time.Time) (rank.Request, planning.Ranking, error) {
	v := planning.Ranking{Name: j.Name, Assumed: []string{}}
	q := rank.Request{
		Offers: c.Listings, Requirements: asks(j.Resources, j), Machines: []int{j.MostNodes()},
		Promise:     cmp.Or(j.Promise, 0.99),
		Checkpoints: j.Checkpoint.Dir != "",
		Start:       assumedStart, Resume: assumedResume, Save: assumedSave, Gap: assumedGap, Now: now,
	}
	if !j.Deadline.IsZero() {
		q.Deadline = j.Deadline.Resolve(now).Sub(now)
		if q.Deadline <= 0 {
			return q, v, errors.New("the deadline has passed")
		}
	}
	if b := j.Budget.Dollars; b != nil {
		q.Budget = figure.Known(b.Float())
	}
	brings(j, c, &q, &v)
	v.Assumed = append(v.Assumed,
		fmt.Sprintf("%s from a machine to the first step, %s from a checkpoint, %s a save, %s until another spot machine",
			draw.Span(q.Start), draw.Span(q.Resume), draw.Span(q.Save), draw.Span(q.Gap)))
	if !q.Checkpoints {
		v.Assumed = append(v.Assumed, "no checkpoints: an interruption repeats everything")
	}
	var err error
	switch {
	case j.Model.Named():
		err = a.byModel(ctx, j, folder, &q, &v)
	case j.Work.Time > 0:
		byTime(j, from, &q, &v)
	default:
		err = errors.New("the amount of work is unknown: give work.time, or model and work.tokens (or " +
			"work.samples and work.epochs)")
	}
	if j.Metric.Patience == 0 && j.Metric.Target == nil && j.Kind != "inference" && err == nil {
		early := q.Variants[0]
		early.Name, early.Recommendation, early.Work = "early stopping",
			fmt.Sprintf("early stopping, if a plateau ends it after %.0f %%", assumedShare*100), assumedShare
		q.Variants = append(q.Variants, early)
	}
	return q, v, err
}

// brings adds the location of the job's data, and the providers' prices for transferring and storing it.
func brings(j spec.Job, c catalog.Catalog, q *rank.Request, v *planning.Ranking) {
	for _, d := range j.Data {
		if d.Region != "" && (q.Data.Region == "" || q.Data.Region == d.Region) {
			q.Data.Region, q.Data.Size = d.Region, q.Data.Size+d.Size
			q.Data.Provider = cmp.Or(q.Data.Provider, catalog.Store(d.Path))
		}
	}
	in := func(l catalog.Listing) bool { return l.Offer.Region == q.Data.Region }
	if i := slices.IndexFunc(c.Listings, in); q.Data.Provider == "" && q.Data.Region != "" && i >= 0 {
		q.Data.Provider = c.Listings[i].Offer.Provider
	}
	q.Data.Origin = egress.From(c, q.Data.Provider, q.Data.Region)
	usd := func(provider, what string) figure.Figure {
		x, ok := c.TransferRate(provider, what)
		if !ok || x.Currency != money.USD {
			return figure.Figure{}
		}
		return figure.Known(x.Price.Float())
	}
	if q.Data.Out != nil && q.Data.Size > 0 {
		text := fmt.Sprintf("%s of data are brought once: $%g a GB from %s to elsewhere", q.Data.Size, q.Data.Out.Float(),
			q.Data.Provider)
		if q.Data.Near != nil {
			text += fmt.Sprintf(", $%g to its other regions on the continent", q.Data.Near.Float())
		}
		v.Assumed = append(v.Assumed, text)
	}
	q.PerGBMonth = map[string]float64{}
	for _, l := range c.Listings {
		if f := usd(l.Offer.Provider, catalog.StorageMonth); f.OK {
			q.PerGBMonth[l.Offer.Provider] = f.V
		}
	}
}

// alternative returns a variant's requirements on a machine. A variant without resources has the job's.
func alternative(v spec.Variant, j spec.Job) catalog.Filter {
	if reflect.ValueOf(v.Resources).IsZero() {
		return asks(j.Resources, j)
	}
	return asks(v.Resources, j)
}

// asks converts resources to a filter of the catalogue.
func asks(r spec.Resources, j spec.Job) catalog.Filter {
	f := catalog.Filter{CPUs: r.CPUs.Min, MostCPUs: r.CPUs.Max, RAM: r.Memory.Min, MostRAM: r.Memory.Max, Regions: r.Zones,
		MaxRate: j.MaxPrice}
	if r.Accelerator != "" && f.ParseAccelerator(r.Accelerator) != nil {
		f.Accelerator = r.Accelerator
	}
	if f.Accelerator != "" && f.Least == 0 {
		f.Least, f.Most = 1, 1
	}
	for _, k := range r.Capacity {
		if k == "any" {
			f.Capacity = nil
			break
		}
		f.Capacity = append(f.Capacity, market.Capacity(k))
	}
	if j.Priority == "critical" {
		f.Capacity = []market.Capacity{market.OnDemand, market.Reserved}
	}
	return f
}

// variants sets the variants of the question to the job itself and its alternatives, and returns what each needs and
// how fast it is relative to the job.
func variants(j spec.Job, q *rank.Request) (filters []catalog.Filter, speeds []float64) {
	q.Variants = []rank.Variant{{Name: ""}}
	filters, speeds = []catalog.Filter{q.Requirements}, []float64{1}
	for i, alt := range j.AnyOf {
		if alt.Place() {
			continue // the catalogue knows no engines
		}
		f := alternative(alt, j)
		q.Variants = append(q.Variants, rank.Variant{Name: cmp.Or(alt.Name, fmt.Sprintf("any_of[%d]", i)), Requirements: &f})
		filters, speeds = append(filters, f), append(speeds, cmp.Or(alt.Throughput, 1))
	}
	return filters, speeds
}

// byTime uses the stated or measured time, on the smallest machine that the job accepts.
func byTime(j spec.Job, from string, q *rank.Request, v *planning.Ranking) {
	hours := time.Duration(j.Work.Time).Hours()
	q.Work = 3600 // so that a rate is 1/hours
	v.Work = fmt.Sprintf("%s, %s", draw.Span(time.Duration(j.Work.Time)), cmp.Or(from, "as the job states it"))
	filters, speeds := variants(j, q)
	if len(speeds) > 1 {
		v.Work += ", times what any_of states"
	}
	v.Assumed = append(v.Assumed, fmt.Sprintf("these times hold to a factor of %g", statedSpread))
	if j.Resources.Accelerator == "" && j.Resources.CPUs.Min == 0 && j.Resources.Memory.Min == 0 && len(q.Variants) == 1 {
		v.Assumed = append(v.Assumed, "it takes as long on every machine: resources asks for nothing (accelerator, cpus, "+
			"memory)")
	}
	trains := j.Kind != "inference" && j.Kind != "data"
	q.Estimate = func(s rank.Shape, variant int) (rank.Estimate, bool) {
		if trains && accelerator.InferenceOnly(s.Accelerator) {
			return rank.Estimate{Why: rank.InferenceOnly}, true
		}
		if variant >= len(filters) {
			variant = 0 // a recommendation changes the work, not the speed
		}
		rate, spread, source := speeds[variant]/hours, statedSpread, cmp.Or(from, "the time that the job states")
		if f := filters[variant]; f.Accelerator != "" && s.Accelerator != "" {
			scale, how := scaled(f, s)
			rate, source = rate*scale, source+how
			k, ok := accelerator.Share(f.Accelerator, s.Accelerator)
			if !ok {
				return rank.Estimate{}, false
			}
			if k < 1 {
				rate, spread = rate*k, otherSpread
				source += ", and by the dense rate of " + s.Accelerator
			}
		}
		fits := true // the job's request implies it
		return rank.Estimate{Rate: rank.Range{Low: rate / spread, Value: rate, High: rate * spread}, Fits: &fits,
			Source: source}, true
	}
}

// scaled returns how much faster a shape is than the smallest that a filter accepts, by its number of accelerators
// alone, and a text that says so.
func scaled(f catalog.Filter, s rank.Shape) (factor float64, how string) {
	n := float64(s.Each) / float64(max(1, f.Least))
	if n == 1 {
		return 1, ""
	}
	return n * math.Pow(0.985, math.Log2(n)), fmt.Sprintf(", scaled from %d to %d accelerators", f.Least, s.Each)
}
