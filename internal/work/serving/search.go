package serving

import (
	"slices"
	"time"

	"scrimp/internal/work/serving/load"
	"scrimp/internal/work/serving/simulation"
)

// An Engine answers requests: it is one or more copies of a model on one machine, or a function.
type Engine struct {
	Service    simulation.Service
	Fast, Slow simulation.Service // ends of an estimate; nil: the time is measured
	Slots      int                // copies in a machine
	Batch      int                // largest that it answers
	Fit        *load.Fit          // nil: the time is measured, so the model fits
}

// Options say which rules are tried.
type Options struct {
	Targets  []simulation.Target
	Kinds    []simulation.Kind
	Batches  []int           // nil: powers of two
	Waits    []time.Duration // nil: none, and shares of the smallest limit
	Machines int             // at most
	Exactly  bool            // Machines is the number of machines, not its bound
	Cold     time.Duration
	Keep     time.Duration
	Poll     time.Duration
	Warm     load.Hours // of rules with a warm pool; both equal: the busiest hours of the trace
}

// strictest returns the smallest limit.
func (o Options) strictest() time.Duration {
	limit := simulation.Never
	for _, t := range o.Targets {
		limit = min(limit, t.Limit)
	}
	return limit
}

// leastBatch returns the smallest batch that a server must be able to answer for any of the rules.
func (o Options) leastBatch() int {
	switch {
	case o.Batches != nil:
		return slices.Min(o.Batches)
	case len(o.Kinds) == 1 && o.Kinds[0] == simulation.Batched:
		return 2
	}
	return 1
}

// pairs returns the batches and waits that are tried, the plain one first.
func (o Options) pairs(e Engine) (list []simulation.Rule) {
	batches := o.Batches
	if batches == nil {
		for b := 1; b <= e.Batch; b *= 2 {
			batches = append(batches, b)
		}
	}
	waits := o.Waits
	if waits == nil {
		limit := o.strictest()
		waits = []time.Duration{0, limit / 10, limit * 2 / 5}
	}
	for _, b := range batches {
		for _, w := range waits {
			if b == 1 {
				w = 0
			}
			if b > e.Batch || b == 1 && len(list) > 0 {
				continue
			}
			list = append(list, simulation.Rule{Batch: b, Wait: w})
		}
	}
	return list
}

// searcher looks for rules of one engine.
type searcher struct {
	sim  *simulation.Simulation
	opts Options
	met  []simulation.Outcome
}

// Search plays the trace under rules of each kind and returns the outcomes that meet the targets. Of fixed rules it
// keeps those with the fewest machines, and of the others those that rent machines for the shortest time. Where none
// meets the targets, it returns the outcome that comes nearest, and false.
func Search(t load.Trace, e Engine, opts Options) ([]simulation.Outcome, bool) {
	s := &searcher{sim: simulation.NewSimulation(t, e.Service, e.Slots, opts.Targets), opts: opts}
	pairs := opts.pairs(e)
	best := map[simulation.Kind]simulation.Outcome{}
	for _, p := range pairs {
		p.Kind = fixedKind(p)
		most := opts.Machines
		if b, ok := best[p.Kind]; ok && !opts.Exactly {
			most = b.Rule.Max - 1
		}
		if o, ok := s.fewest(p, most); ok {
			best[p.Kind] = o
		}
	}
	for _, kind := range []simulation.Kind{simulation.Fixed, simulation.Batched} {
		if o, ok := best[kind]; ok && slices.Contains(opts.Kinds, kind) {
			s.met = append(s.met, o)
		}
	}
	for _, kind := range opts.Kinds {
		if kind != simulation.Fixed && kind != simulation.Batched {
			s.elastic(kind, pairs, best)
		}
	}
	if len(s.met) > 0 {
		return s.met, true
	}
	return s.nearest(t, e, pairs), false
}

// fixedKind returns the kind of a rule that keeps its machines, by its batch.
func fixedKind(r simulation.Rule) simulation.Kind {
	if r.Batch == 1 {
		return simulation.Fixed
	}
	return simulation.Batched
}

// fewest returns the outcome of the fewest machines, up to most, with which a fixed rule meets the targets. More
// machines are taken to be no slower.
func (s *searcher) fewest(p simulation.Rule, most int) (simulation.Outcome, bool) {
	run := func(n int) (simulation.Outcome, bool) {
		p.Min, p.Max = n, n
		o := s.sim.Run(p)
		return o, o.Meets(s.opts.Targets)
	}
	if s.opts.Exactly || most < 1 {
		if most < 1 {
			return simulation.Outcome{}, false
		}
		return run(most)
	}
	if most < s.opts.Machines { // it is enough to know whether fewer than before do
		if o, ok := run(most); !ok || most == 1 {
			return o, ok
		}
	}
	low, high := 0, 1
	for ; ; high = min(2*high, most) {
		o, ok := run(high)
		switch {
		case ok && high-low <= 1:
			return o, true
		case ok:
			return s.between(run, o, low, high), true
		case high >= most:
			return o, false
		}
		low = high
	}
}

// between narrows down: low machines are too few, and high are enough.
func (s *searcher) between(run func(int) (simulation.Outcome, bool), best simulation.Outcome, low,
	high int) simulation.Outcome {
	for high-low > 1 {
		mid := (low + high) / 2
		if o, ok := run(mid); ok {
			best, high = o, mid
		} else {
			low = mid
		}
	}
	return best
}

// elastic looks for the rule of a kind that meets the targets and rents machines for the shortest time. Each batch and
// wait is tried with as many machines as a fixed rule needs, and with twice as many, which make up for cold starts.
func (s *searcher) elastic(kind simulation.Kind, pairs []simulation.Rule,
	fixed map[simulation.Kind]simulation.Outcome) {
	var best *simulation.Outcome
	for _, p := range pairs {
		enough, ok := fixed[fixedKind(p)]
		if !ok { // a fixed rule with all machines that are allowed does not meet the targets
			continue
		}
		fewest := enough.Rule.Max
		p.Kind, p.Cold, p.Keep, p.Poll = kind, s.opts.Cold, s.opts.Keep, s.opts.Poll
		for _, top := range slices.Compact([]int{fewest, min(2*fewest, s.opts.Machines)}) {
			p.Max = top
			if s.kept(p, fewest, &best) {
				break
			}
		}
	}
	if best != nil {
		s.met = append(s.met, *best)
	}
}

// kept tries a rule with the machines that it may keep, the fewest first, and reports whether one meets the targets.
// best is replaced by what rents machines for a shorter time.
func (s *searcher) kept(r simulation.Rule, fewest int, best **simulation.Outcome) bool {
	switch r.Kind {
	case simulation.Autoscale:
		for _, least := range slices.Compact([]int{1, max(1, fewest/2), max(1, fewest-1), fewest}) {
			if r.Min = least; least < r.Max && s.try(r, best) {
				return true
			}
		}
	case simulation.ScaleToZero:
		return s.try(r, best)
	case simulation.WarmHours:
		if r.Warm = s.opts.Warm; r.Warm.From == r.Warm.To {
			return false
		}
		for _, warm := range slices.Compact([]int{1, fewest}) {
			if r.WarmMin = warm; s.try(r, best) {
				return true
			}
		}
	case simulation.Fixed, simulation.Batched, simulation.Serverless:
	}
	return false
}

// try plays a rule, unless the machines that it keeps are rented for longer than those of the best already.
func (s *searcher) try(r simulation.Rule, best **simulation.Outcome) bool {
	if *best != nil && time.Duration(r.Min)*s.sim.Trace.Window >= (*best).Rented() {
		return false
	}
	o := s.sim.Run(r)
	met := o.Meets(s.opts.Targets)
	if met && (*best == nil || o.Rented() < (*best).Rented()) {
		*best = &o
	}
	return met
}

// nearest returns the outcome that misses the targets by least. It plays the whole trace with all machines that are
// allowed, and then looks for the fewest machines that come as near, within 1 %.
func (s *searcher) nearest(t load.Trace, e Engine, pairs []simulation.Rule) []simulation.Outcome {
	sim := simulation.NewSimulation(t, e.Service, e.Slots, nil)
	var best []simulation.Outcome
	for i, p := range pairs {
		if i > 0 && p.Batch == pairs[i-1].Batch {
			continue // more waiting only adds
		}
		for _, r := range s.largest(p) {
			o := sim.Run(r)
			if !o.Stopped && (best == nil || o.Miss(s.opts.Targets) < best[0].Miss(s.opts.Targets)) {
				best = []simulation.Outcome{o}
			}
		}
	}
	if best == nil || s.opts.Exactly || best[0].Rule.Elastic() {
		return best
	}
	near := *s
	near.opts.Targets = slices.Clone(s.opts.Targets)
	miss := best[0].Miss(s.opts.Targets) * 1.01
	for i := range near.opts.Targets {
		l := &near.opts.Targets[i].Limit
		*l = time.Duration(min(float64(*l)*miss, float64(simulation.TooLate)))
	}
	near.sim = simulation.NewSimulation(t, e.Service, e.Slots, near.opts.Targets)
	if o, ok := near.fewest(best[0].Rule, s.opts.Machines); ok {
		best[0] = o
	}
	return best
}

// largest returns the rule of each kind that is tried with all machines that are allowed.
func (s *searcher) largest(p simulation.Rule) (list []simulation.Rule) {
	p.Max = s.opts.Machines
	for _, k := range s.opts.Kinds {
		r := p
		r.Kind = k
		switch k {
		case simulation.Fixed, simulation.Batched:
			if (k == simulation.Fixed) != (p.Batch == 1) {
				continue
			}
			r.Min = p.Max
		default:
			if r.Cold, r.Keep, r.Poll = s.opts.Cold, s.opts.Keep, s.opts.Poll; k == simulation.Autoscale {
				r.Min = 1
			}
			if r.Warm = s.opts.Warm; k == simulation.WarmHours && r.Warm.From != r.Warm.To {
				r.WarmMin = p.Max
			} else if k == simulation.WarmHours {
				continue
			}
		}
		list = append(list, r)
	}
	return list
}
