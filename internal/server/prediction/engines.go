package prediction

import (
	"slices"
	"strings"
	"time"

	api "scrimp/client"
	"scrimp/internal/decide/plan"
	"scrimp/internal/job/spec"
	"scrimp/internal/market"
	"scrimp/internal/server/forecast"
	"scrimp/internal/sim"
	"scrimp/internal/view/convert"
)

// Outlook is a job and the market on which to simulate it.
type Outlook struct {
	sim.Scenario
	inUse map[market.OfferID]int // machines in use, by reserved offer
	// closed holds uninterruptible offers that are unavailable for an unknown time.
	closed []sold
	away   []api.AwayEngine
	Spot   bool // some offers may be interrupted
}

// sold is an offer with its quote.
type sold struct {
	offer market.Offer
	quote market.Quote
}

// sells adds the market's offers. A machine that other jobs use becomes available when they are expected to end.
func (q *Outlook) sells(m api.Market) {
	q.Opens, q.inUse = map[market.OfferID]time.Time{}, map[market.OfferID]int{}
	q.away = m.Away
	for _, l := range m.Offers {
		o, quote := convert.To[market.Offer](l.Offer), convert.To[market.Quote](l.Quote)
		open := o.Capacity == market.Spot || quote.Untried || quote.Available
		if r := o.Reserved; r.Count > 0 && !q.Now.Before(r.From) && q.Now.Before(r.Until) {
			q.inUse[o.ID] = l.InUse
			at, known := forecast.Opens(r.Count-l.InUse, q.Terms.Fewest(), q.Now, l.Frees)
			quote.Available = quote.Available && r.Count-l.InUse >= q.Terms.Fewest()
			if open = quote.Available; !open && known && l.InUse > 0 {
				q.Opens[o.ID], open = at, true
			}
			open = open || q.Terms.Fewest() > r.Count // simulated, but never sufficient
		}
		if open {
			q.Offers, q.Quotes = append(q.Offers, o), append(q.Quotes, quote)
		} else {
			q.closed = append(q.closed, sold{o, quote})
		}
	}
}

// sale returns all offers, available now or later.
func (q *Outlook) sale() []sold {
	list := slices.Clone(q.closed)
	for i, o := range q.Offers {
		list = append(list, sold{o, q.Quotes[i]})
	}
	return list
}

// ask simulates the job. If only offers that are unavailable for an unknown time would do, ask simulates the job as if
// it started there now and returns the offer as waits.
func (q *Outlook) ask() (f sim.Forecast, waits market.OfferID, at *time.Duration) {
	f = sim.Ask(q.Scenario)
	if f.First.Take != "" {
		return f, "", nil
	}
	if opens, known := q.Opens[f.On]; known && opens.After(q.Now) {
		return f, f.On, &f.Begin[1]
	}
	if f.First.Why != plan.NoOffer || len(q.closed) == 0 {
		return f, "", nil
	}
	again := q.Scenario
	again.Told = nil
	for _, s := range q.closed {
		s.quote.Available = true
		again.Offers, again.Quotes = append(again.Offers, s.offer), append(again.Quotes, s.quote)
	}
	played := sim.Ask(again)
	if played.First.Take == "" {
		return f, "", nil // it would not do, either
	}
	waits = played.First.Take
	played.First.Take, played.First.Why = "", plan.NoCapacity
	return played, waits, nil
}

// waiting records in p which own machines the job waits for before it starts, and how long.
func (q *Outlook) waiting(p *api.Plan, waits market.OfferID, at *time.Duration) {
	if waits == "" {
		return
	}
	p.WaitsFor, p.InUse = string(waits), q.inUse[waits]
	if at != nil {
		s := at.Seconds()
		p.BeginS = &s
		return
	}
	note := "nobody knows how long the jobs there take: cost and finish are counted from the job's own beginning"
	if p.InUse == 0 {
		note = "no machine of it is for sale now: cost and finish are counted from the job's own beginning"
	}
	p.Reasons = append(p.Reasons, note)
}

// Compare simulates the job on each engine separately, if several would do.
func (q *Outlook) Compare(j spec.Job) (list []api.EnginePlan) {
	places := q.places(j)
	if len(places) < 2 {
		return nil
	}
	for _, place := range places {
		one := *q
		one.Runs, one.Events, one.Offers, one.Quotes = alternatives, events*alternatives/Runs, nil, nil
		for i, o := range q.Offers {
			if plan.Sells(place, &o) {
				one.Offers, one.Quotes = append(one.Offers, o), append(one.Quotes, q.Quotes[i])
			}
		}
		one.closed = slices.DeleteFunc(slices.Clone(q.closed), func(s sold) bool { return !plan.Sells(place, &s.offer) })
		list = append(list, one.on(place))
	}
	return list
}

// on simulates the job on one engine.
func (q *Outlook) on(place string) api.EnginePlan {
	f, waits, at := q.ask()
	v := api.EnginePlan{Engine: place, Why: string(f.First.Why), WaitsFor: string(waits)}
	if f.First.Take == "" && f.First.Why == plan.NoOffer || f.Done < 0.5 {
		name, _, _ := strings.Cut(place, "/")
		for _, e := range q.away {
			if e.Name == name && e.Whole() {
				v.Error = strings.Join(strings.Fields(e.Error), " ")
			}
		}
		return v
	}
	v.CostUSD, v.MarginalUSD, v.FinishS = &f.Cost, &f.Marginal, inSeconds(f.Finish)
	if at != nil {
		v.BeginS = new(at.Seconds())
	}
	if !q.Terms.Deadline.IsZero() {
		v.InTime = &f.InTime
	}
	v.Feasible = q.Terms.Deadline.IsZero() || f.InTime >= 0.5
	return v
}

// places returns the engines or zones that the job names, or else those that sell what it needs.
func (q *Outlook) places(j spec.Job) (list []string) {
	for _, v := range j.AnyOf {
		if v.Engine != "" {
			list = append(list, v.Engine)
		}
	}
	if len(list) == 0 {
		for _, s := range q.sale() {
			l := plan.Listing{Offer: s.offer, Quote: s.quote}
			if _, fits := q.Terms.Need.Fits(&l); fits {
				list = append(list, s.offer.Provider)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func inSeconds(spans [3]time.Duration) *[3]float64 {
	return &[3]float64{spans[0].Seconds(), spans[1].Seconds(), spans[2].Seconds()}
}
