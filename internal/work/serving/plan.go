package serving

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"scrimp/internal/estimate/shape"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market/accelerator"
	"scrimp/internal/market/catalog"
	"scrimp/internal/work/serving/load"
)

// Why an offer is not planned with.
const (
	NoPrice  = "no price is known"
	NoSpeed  = "nobody measured it, and its rate or bandwidth is unknown"
	NoMemory = "its memory is unknown"
	TooSmall = "the model is larger than its memory"
)

// A Skip is an offer that is not planned with.
type Skip struct {
	Listing catalog.Listing
	Why     string
}

// An Ask is what is to be served, and how.
type Ask struct {
	Trace     load.Trace
	Model     *shape.Model // nil: all times are measured
	Formats   []load.Format
	Measured  map[string]load.Measured
	Functions []Function
	Options   Options
}

// A Plan is the engines that a trace is played on, and what came of it.
type Plan struct {
	Ask     Ask
	Skipped []Skip
	runs    []*run
	catalog catalog.Catalog
	ranges  map[played]Range
}

// run is one engine and the offers that have it.
type run struct {
	engine   Engine
	key      string
	offers   []catalog.Listing
	function *Function
	outcomes []Outcome
	met      bool
}

// NewPlan sorts offers by the engine that they make. Offers of the same accelerators share their simulations.
func NewPlan(c catalog.Catalog, offers []catalog.Listing, ask Ask) (*Plan, error) {
	p := &Plan{Ask: ask, catalog: c}
	var model *load.Model
	if ask.Model != nil {
		m, err := load.ModelOf(*ask.Model, ask.Trace)
		switch {
		case err != nil && ask.Measured != nil:
			return nil, fmt.Errorf("%w: with measurements of all offers, leave --model out", err)
		case err != nil:
			return nil, err
		}
		model = m
	}
	used := map[string]bool{}
	for i := range ask.Functions {
		f := &ask.Functions[i]
		name := strings.ToLower(f.Name)
		m, ok := ask.Measured[name]
		if !ok {
			return nil, fmt.Errorf("function %s: its time is unknown: add a row %s,1,SECONDS to the file of --measured", f.Name,
				f.Name)
		}
		used[name] = true
		p.runs = append(p.runs, &run{key: "function " + name, function: f, engine: Engine{Service: m, Slots: 1, Batch: 1}})
	}
	at := map[string]*run{}
	for _, l := range offers {
		key, e, why := engineOf(l, model, ask, used)
		if why == "" && !l.Quote.Priced {
			why = NoPrice
		}
		if why != "" {
			p.Skipped = append(p.Skipped, Skip{l, why})
			continue
		}
		if at[key] == nil {
			at[key] = &run{key: key, engine: e}
			p.runs = append(p.runs, at[key])
		}
		at[key].offers = append(at[key].offers, l)
	}
	var unused []string
	for name := range ask.Measured {
		if !used[name] {
			unused = append(unused, name)
		}
	}
	if slices.Sort(unused); len(unused) > 0 {
		return nil, fmt.Errorf("--measured names %q, which is no accelerator or machine of the offers and no function: "+
			"correct the name, or widen the selection of offers", unused[0])
	}
	if len(p.runs) == 0 {
		return nil, p.nothing(model)
	}
	return p, nil
}

// NothingError is the error of a plan without any machine that can serve the model.
type NothingError struct{ Text string }

func (e *NothingError) Error() string { return e.Text }

// nothing says why no offer can serve the model.
func (p *Plan) nothing(m *load.Model) error {
	var largest size.Bytes
	by := map[string]int{}
	for _, s := range p.Skipped {
		by[s.Why]++
		if spec, ok := s.Listing.Spec(); ok && s.Why == TooSmall {
			largest = max(largest, spec.Usable()*size.Bytes(s.Listing.Offer.Accelerators))
		}
	}
	if m != nil && by[TooSmall] > 0 {
		formats := p.Ask.Formats
		return &NothingError{fmt.Sprintf("the model needs %s in %s, with the cache of the longest request, and the largest "+
			"machine of the offers has %s: allow a narrower --format, or choose other offers", Gigabytes(m.Needs(formats)),
			formats[len(formats)-1].Name, Gigabytes(largest))}
	}
	var parts []string
	for _, why := range []string{NoSpeed, NoMemory, NoPrice} {
		if by[why] > 0 {
			parts = append(parts, fmt.Sprintf("%d: %s", by[why], why))
		}
	}
	return &NothingError{fmt.Sprintf("no offer can be planned with (%s): measure one (--measured), or choose others",
		cmp.Or(strings.Join(parts, "; "), "none is selected"))}
}

// Gigabytes writes a size in GB of 1e9 bytes, as memory of accelerators is sold.
func Gigabytes(b size.Bytes) string { return fmt.Sprintf("%.1f GB", float64(b)/1e9) }

// engineOf returns what answers requests on a machine, or why nothing does. used notes measurements that were taken.
func engineOf(l catalog.Listing, m *load.Model, ask Ask, used map[string]bool) (key string, e Engine, why string) {
	o := l.Offer
	spec, known := l.Spec()
	if times, ok := ask.Measured[strings.ToLower(o.Machine)]; ok {
		used[strings.ToLower(o.Machine)] = true
		return "machine " + o.Machine, Engine{Service: times, Slots: 1, Batch: min(load.MaxBatch, times.Largest())}, ""
	}
	key = fmt.Sprintf("%s:%d %v", o.Accelerator, o.Accelerators, l.Link)
	if name, ok := measuredName(o.Accelerator, ask.Measured); ok && o.Accelerators > 0 {
		used[name] = true
		times := ask.Measured[name]
		// Who measured it knows that it fits, and in which format.
		return key, Engine{Service: times, Slots: o.Accelerators, Batch: min(load.MaxBatch, times.Largest())}, ""
	}
	switch {
	case m == nil || !known || o.Accelerators == 0:
		return "", e, NoSpeed
	case spec.Memory == 0:
		return "", e, NoMemory
	}
	fit, ok := m.Fits(ask.Formats, spec, o.Accelerators)
	if !ok {
		return "", e, TooSmall
	}
	e = Engine{Slots: fit.Copies, Batch: fit.Batch, Fit: &fit}
	for _, s := range []struct {
		effort load.Effort
		to     *Service
	}{{load.Typical, &e.Service}, {load.Fast, &e.Fast}, {load.Slow, &e.Slow}} {
		r, ok := load.NewRoofline(m, fit, spec, l.Link, s.effort)
		if !ok {
			return "", e, NoSpeed
		}
		*s.to = r
	}
	return key, e, ""
}

// measuredName returns the measurements of an accelerator: those with its full name, or else the first in the order of
// names that means it.
func measuredName(kind string, all map[string]load.Measured) (string, bool) {
	if name := strings.ToLower(kind); all[name] != nil {
		return name, true
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if kind != "" && accelerator.Matches(name, kind) {
			return name, true
		}
	}
	return "", false
}

// Runs returns how many engines there are to play the trace on.
func (p *Plan) Runs() int { return len(p.runs) }

// Play plays the trace on one engine.
func (p *Plan) Play(i int) {
	r := p.runs[i]
	if r.function == nil {
		r.outcomes, r.met = Search(p.Ask.Trace, r.engine, p.Ask.Options)
		return
	}
	o := NewSimulation(p.Ask.Trace, r.engine.Service, 1, nil).Run(r.function.Rule())
	if r.met = o.Meets(p.Ask.Options.Targets); !o.Stopped {
		r.outcomes = []Outcome{o}
	}
}

// A Choice is one rule on one offer and what it costs for the trace.
type Choice struct {
	Listing  *catalog.Listing // nil of a function
	Function *Function        // nil of a machine
	Engine   Engine
	Outcome  Outcome
	Met      bool
	Machines money.Amount  // or what the function costs
	Egress   *money.Amount // nil: unknown, or the trace does not say what answers send
	Total    money.Amount  // Machines, and Egress where it is known
	Complete bool          // nothing that the trace asks for is unknown
	run      *run
}

// Name returns what the offer is called.
func (c Choice) Name() string {
	if c.Function != nil {
		return c.Function.Name
	}
	return string(c.Listing.Offer.ID)
}

// Choices returns the cheapest outcome of each kind on each offer, the best first: those that meet the targets by what
// they cost, where something of that is unknown after the others, then those that miss them, the nearest first.
func (p *Plan) Choices() (list []Choice) {
	for _, r := range p.runs {
		if r.function != nil {
			for _, o := range r.outcomes {
				c := Choice{Function: r.function, Engine: r.engine, Outcome: o, Met: r.met, run: r}
				c.Machines = r.function.Cost(p.Ask.Trace, r.engine.Service, o)
				list = append(list, p.complete(c, r.function.Provider))
			}
			continue
		}
		for i := range r.offers {
			l := &r.offers[i]
			best := map[Kind]Choice{}
			for _, o := range r.outcomes {
				c := Choice{Listing: l, Engine: r.engine, Outcome: o, Met: r.met, run: r}
				c.Machines = o.Cost(l.Quote.Rate, l.Offer.Billing)
				if was, ok := best[o.Rule.Kind]; !ok || cheaper(c, was) < 0 {
					best[o.Rule.Kind] = c
				}
			}
			for _, k := range Kinds {
				if c, ok := best[k]; ok {
					list = append(list, p.complete(c, l.Offer.Provider))
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Choice) int {
		if a.Met != b.Met || !a.Met {
			return cmp.Or(-compareBool(a.Met, b.Met), cmp.Compare(a.Outcome.Miss(p.Ask.Options.Targets),
				b.Outcome.Miss(p.Ask.Options.Targets)), cheaper(a, b))
		}
		return cmp.Or(-compareBool(a.Complete, b.Complete), a.Total.Cmp(b.Total), cheaper(a, b))
	})
	return list
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// cheaper orders choices by the cost of machines, then by p99, then by name.
func cheaper(a, b Choice) int {
	return cmp.Or(a.Machines.Cmp(b.Machines), cmp.Compare(a.Outcome.Quantiles[990], b.Outcome.Quantiles[990]),
		cmp.Compare(a.Name(), b.Name()))
}

// complete adds what sending the answers costs.
func (p *Plan) complete(c Choice, provider string) Choice {
	c.Total, c.Complete = c.Machines, true
	if !p.Ask.Trace.Sized {
		return c
	}
	x, ok := p.catalog.TransferRate(provider, catalog.TransferOut)
	if ok = ok && x.Currency == money.USD || p.Ask.Trace.BytesOut == 0; !ok {
		c.Complete = false
		return c
	}
	sum := Egress(p.Ask.Trace.BytesOut, x.Price)
	c.Egress, c.Total = &sum, c.Total.Add(sum)
	return c
}

// A Range is what a rule does at the ends of an estimate. An end that is nil does not answer the trace.
type Range struct{ Fast, Slow *Outcome }

// Range plays a choice at both ends of its estimate, and is false where its time is measured.
func (p *Plan) Range(c Choice) (r Range, ok bool) {
	if c.Engine.Fast == nil || c.Engine.Slow == nil {
		return r, false
	}
	at := played{c.run, c.Outcome.Rule}
	if r, ok := p.ranges[at]; ok {
		return r, true
	}
	for _, end := range []struct {
		s  Service
		to **Outcome
	}{{c.Engine.Fast, &r.Fast}, {c.Engine.Slow, &r.Slow}} {
		if o := NewSimulation(p.Ask.Trace, end.s, c.Engine.Slots, nil).Run(c.Outcome.Rule); !o.Stopped {
			*end.to = &o
		}
	}
	if p.ranges == nil {
		p.ranges = map[played]Range{}
	}
	p.ranges[at] = r
	return r, true
}

// played names a rule on an engine. Offers of one engine share its simulations.
type played struct {
	run  *run
	rule Rule
}
