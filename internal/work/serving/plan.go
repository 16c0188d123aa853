// Package serving says what it costs to serve a model: it plays the rules of package simulation against the machines of
// the catalogue, and adds up what the machines cost.
package serving

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"scrimp/internal/estimate/shape"
	"scrimp/internal/lib/size"
	"scrimp/internal/market/catalog"
	"scrimp/internal/work/serving/load"
	"scrimp/internal/work/serving/simulation"
)

// The reasons for which the plan leaves an offer out.
const (
	NoPrice  = "no price is known"
	NoSpeed  = "nobody measured it, and its rate or bandwidth is unknown"
	NoMemory = "its memory is unknown"
	TooSmall = "the model is larger than its memory"

	TooManyRequests = "a batch as large as asked does not fit into its memory beside the weights"
	TooManyMeasured = "a batch as large as asked is larger than its measurements have"
)

// A Skip is an offer that the plan leaves out.
type Skip struct {
	Listing catalog.Listing
	Why     string
}

// An Ask is the question of a plan: the requests, the model and the rules.
type Ask struct {
	Trace     load.Trace
	Model     *shape.Model // nil: all times are measured
	Formats   []load.Format
	Measured  map[string]load.Measured
	Functions []Function
	Options   Options
}

// A Plan is the engines that a trace is played on, and their outcomes.
type Plan struct {
	Ask     Ask
	Skipped []Skip
	Notes   []string // on what the measurements hold for
	fits    int      // the largest batch of the offers that cannot answer a batch as large as asked
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
	outcomes []simulation.Outcome
	met      bool
}

// NewPlan sorts offers by the engine that they make. Offers of the same accelerators share their simulations.
func NewPlan(c catalog.Catalog, offers []catalog.Listing, ask Ask) (*Plan, error) {
	p := &Plan{Ask: ask, catalog: c}
	model, err := modelOf(ask)
	if err != nil {
		return nil, err
	}
	u := uses{}
	if err := p.functions(u); err != nil {
		return nil, err
	}
	at := map[string]*run{}
	for _, l := range offers {
		key, e, why := engineOf(l, model, ask, u)
		switch {
		case why != "":
		case !l.Quote.Priced:
			why = NoPrice
		case e.Batch < ask.Options.leastBatch():
			why = e.tooMany()
			p.fits = max(p.fits, e.Batch)
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
	if p.Notes, err = u.notes(c, ask); err != nil {
		return nil, err
	}
	if len(p.runs) == 0 {
		return nil, p.nothing(model)
	}
	return p, nil
}

// modelOf returns the model that is asked for, and nil where all times are measured.
func modelOf(ask Ask) (*load.Model, error) {
	if ask.Model == nil {
		return nil, nil
	}
	m, err := load.ModelOf(*ask.Model, ask.Trace)
	if _, long := errors.AsType[*load.TooLongError](err); err != nil && ask.Measured != nil && !long {
		return nil, fmt.Errorf("%w: with measurements of all offers, leave --model out", err)
	}
	return m, err
}

// functions adds a run for each function, which must have a measured time.
func (p *Plan) functions(u uses) error {
	for i := range p.Ask.Functions {
		f := &p.Ask.Functions[i]
		name := strings.ToLower(f.Name)
		m, ok := p.Ask.Measured[name]
		if !ok {
			return fmt.Errorf("function %s: its time is unknown: add a row %s,1,SECONDS to the file of --measured", f.Name,
				f.Name)
		}
		u.add(name, f.Name)
		p.runs = append(p.runs, &run{key: "function " + name, function: f, engine: Engine{Service: m, Slots: 1, Batch: 1}})
	}
	return nil
}

// tooMany says why an engine answers no batch that is asked for.
func (e Engine) tooMany() string {
	if e.Fit == nil {
		return TooManyMeasured
	}
	return TooManyRequests
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
	if by[TooManyRequests]+by[TooManyMeasured] > 0 {
		return p.tooMany(m, by)
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

// tooMany says that no offer answers a batch as large as asked, and which is the largest.
func (p *Plan) tooMany(m *load.Model, by map[string]int) error {
	batch, fix := p.Ask.Options.leastBatch(), fmt.Sprintf("give --batch %d", p.fits)
	if p.Ask.Options.Batches == nil { // only the rule asks for batches
		fix = "leave --rule batched out"
	}
	if m == nil || by[TooManyRequests] == 0 {
		return &NothingError{fmt.Sprintf("no offer is planned with a batch of %d: the largest batch of the measurements is "+
			"%d: measure a larger one, or %s", batch, p.fits, fix)}
	}
	return &NothingError{fmt.Sprintf("a batch of %d does not fit: %d caches of %s do not fit into the memory beside the "+
		"weights, and the largest batch that fits into an offer is %d: %s, or allow a narrower --format or larger machines",
		batch, batch, Gigabytes(m.Each()), p.fits, fix)}
}

// Gigabytes writes a size in GB of 1e9 bytes, as memory of accelerators is sold.
func Gigabytes(b size.Bytes) string { return fmt.Sprintf("%.1f GB", float64(b)/1e9) }

// Runs returns how many engines there are to play the trace on.
func (p *Plan) Runs() int { return len(p.runs) }

// Play plays the trace on one engine: each rule in the middle of its estimate, and those that it keeps at both ends.
func (p *Plan) Play(i int) {
	r := p.runs[i]
	if r.function == nil {
		r.outcomes, r.met = Search(p.Ask.Trace, r.engine, p.Ask.Options)
		r.outcomes = append(r.outcomes, p.certain(r)...)
		for _, o := range r.outcomes {
			p.Range(Choice{Engine: r.engine, Outcome: o, run: r})
		}
		return
	}
	o := simulation.NewSimulation(p.Ask.Trace, r.engine.Service, 1, nil).Run(r.function.Rule())
	if r.met = o.Meets(p.Ask.Options.Targets); !o.Stopped {
		r.outcomes = []simulation.Outcome{o}
	}
}

// certain looks for rules that meet the targets at the slow end of an estimate, and plays them in its middle. The
// search in the middle alone takes the cheapest rule, and would miss a certain one with another batch or more machines.
func (p *Plan) certain(r *run) (list []simulation.Outcome) {
	if r.engine.Slow == nil || !r.met {
		return nil
	}
	slow := r.engine
	slow.Service = r.engine.Slow
	found, ok := Search(p.Ask.Trace, slow, p.Ask.Options)
	if !ok {
		return nil
	}
	for _, f := range found {
		if slices.ContainsFunc(r.outcomes, func(o simulation.Outcome) bool { return o.Rule == f.Rule }) {
			continue
		}
		o := simulation.NewSimulation(p.Ask.Trace, r.engine.Service, r.engine.Slots, p.Ask.Options.Targets).Run(f.Rule)
		if o.Meets(p.Ask.Options.Targets) {
			list = append(list, o)
		}
	}
	return list
}
