package rank

import (
	"cmp"
	"math"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/size"
	"scrimp/internal/market"
	"scrimp/internal/market/catalog"
	"scrimp/internal/market/egress"
)

// tenth is the standard normal quantile of 0.9: an 80 % interval extends that many deviations to each side.
const tenth = 1.2815515655446004

// course is the expected progress of a run of a shape and variant on one kind of capacity.
type course struct {
	hours         float64 // median
	start         float64 // part of hours before the first step, which no estimate of the speed changes
	sigma         float64 // standard deviation of the logarithm of hours without start
	held          float64 // part of hours with a machine, which is paid
	work          float64 // hours of an uninterrupted run, median
	chance        float64 // probability of meeting the deadline; meaningless without one
	interruptions float64
	interval      time.Duration
	low, high     float64 // hours, 10 % and 90 %
	why           Reason  // InterruptedTooOften, or ""
}

// cell is what all offers of a shape share for one variant.
type cell struct {
	estimate   Estimate
	ok         bool
	why        Reason  // why there is no estimate, if known
	hours      float64 // of an uninterrupted run, median
	sigma      float64
	onDemand   course
	spot       map[time.Duration]*course // by mean time between interruptions
	last       time.Duration
	lastCourse *course
}

// row has all variants for a shape.
type row struct {
	cells []cell
	// onDemand is the cheapest offer of the shape that is not spot; nil if there is none.
	onDemand *catalog.Listing
}

// mostHours is the longest run that is planned. widest bounds the error of an estimate: a factor of 47 to each
// side.
const (
	mostHours = 1e6
	widest    = 3.0
	mostLost  = 20.0 // hours held per hour of work
)

func (r *ranking) row(s Shape) *row {
	if found, ok := r.rows[s]; ok {
		return found
	}
	w := &row{cells: make([]cell, len(r.Variants)), onDemand: r.onDemand[s.alike()]}
	r.rows[s] = w
	if r.Estimate == nil || !(r.Work > 0) {
		return w
	}
	for v := range w.cells {
		c := &w.cells[v]
		e, ok := r.Estimate(s, v)
		c.why = e.Why
		if !ok || e.Why != "" || !e.Rate.ok() {
			continue
		}
		work := r.Work
		if k := r.Variants[v].Work; k > 0 {
			work *= k
		}
		c.hours = work / e.Rate.Value / 3600
		if c.hours > mostHours {
			continue
		}
		c.estimate, c.ok, c.spot = e, true, map[time.Duration]*course{}
		c.sigma = min(widest, math.Log(e.Rate.High/e.Rate.Low)/(2*tenth))
		hours := c.hours + r.Start.Hours()
		c.onDemand = r.close(course{hours: hours, start: r.Start.Hours(), held: hours, work: c.hours, sigma: c.sigma})
	}
	return w
}

// on returns the course of the run on machines with that mean time between interruptions.
func (c *cell) on(r *ranking, between time.Duration) *course {
	if c.lastCourse != nil && c.last == between {
		return c.lastCourse
	}
	l, ok := c.spot[between]
	if !ok {
		v := r.spotCourse(c, between)
		l = &v
		c.spot[between] = l
	}
	c.last, c.lastCourse = between, l
	return l
}

// spotCourse computes a run on spot machines that are held for M on average.
//
// With checkpoints every τ (policy.Interval) that cost δ each, s the time from getting a machine to the next step,
// and g the wait for another machine:
//
//	held = start + T/τ · M·e^(s/M)·(e^((τ+δ)/M) − 1),  n = held/M interruptions
//	hours = held + n·g,  variance of what is lost = n·((s+g)² + (s+g)·τ + τ²/3 + g²)
//
// Without checkpoints all work is repeated: n = e^((T+s)/M) − 1, held = M·n.
//
// Example: T=10 h, M=4 h, δ=30 s, s=6 min, start=g=0 gives τ=910 s, held = 10.94 h, n = 2.7.
// TestSpotCourse_MatchesASimulation checks both formulas.
func (r *ranking) spotCourse(c *cell, between time.Duration) course {
	m, s, g := between.Hours(), r.Resume.Hours(), r.Gap.Hours()
	l := course{work: c.hours}
	variance := 0.0
	if r.Checkpoints {
		save := max(r.Save, time.Second)
		l.interval = policy.Interval(save, between)
		tau := l.interval.Hours()
		l.start = r.Start.Hours()
		l.held = l.start + float64(c.hours/tau*m*math.Exp(s/m)*(math.Exp((tau+save.Hours())/m)-1))
		if l.held > mostLost*c.hours {
			l.why = InterruptedTooOften
			return l
		}
		l.interruptions = l.held / m
		loss := s + g
		variance = l.interruptions * (float64(loss*loss) + float64(loss*tau) + float64(tau*tau)/3 + float64(g*g))
	} else {
		x := (c.hours + r.Start.Hours()) / m
		l.interruptions = math.Exp(x) - 1
		l.held = m * l.interruptions
		if l.held > mostLost*c.hours {
			l.why = InterruptedTooOften
			return l
		}
		lost := l.held - c.hours
		variance = float64(lost*lost) + float64(l.interruptions*2*g*g)
	}
	l.hours = l.held + float64(l.interruptions*g)
	varies := l.hours - l.start
	l.sigma = math.Sqrt(float64(c.sigma*c.sigma) + math.Log1p(variance/float64(varies*varies)))
	return r.close(l)
}

// after returns the hours of a run that is slower by z standard deviations.
func (l *course) after(z float64) float64 {
	return l.start + float64((l.hours-l.start)*math.Exp(float64(z*l.sigma)))
}

// close adds the interval and the probability of meeting the deadline. It assumes that the logarithm of the time after
// the start is normally distributed.
func (r *ranking) close(l course) course {
	l.low, l.high = l.after(-tenth), l.after(tenth)
	l.chance = 1
	if d := r.Deadline.Hours(); d > 0 {
		l.chance = within(d-l.start, l.hours-l.start, l.sigma)
	}
	return l
}

// within returns the probability that a time with that median is at most limit.
func within(limit, median, sigma float64) float64 {
	switch {
	case limit <= 0:
		return 0
	case sigma <= 0 && median <= limit:
		return 1
	case sigma <= 0:
		return 0
	}
	return 0.5 * math.Erfc(-math.Log(limit/median)/(sigma*math.Sqrt2))
}

// quantile returns the standard normal quantile of p.
func quantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

// option evaluates an offer with a number of machines and a variant. It returns why the option is not feasible, or
// "".
func (r *ranking) option(p *Plan, w *row, l *catalog.Listing, variant int) Reason {
	c := &w.cells[variant]
	if !c.ok {
		return cmp.Or(c.why, NoEstimate)
	}
	p.Source = c.estimate.Source
	if !p.holds(&c.estimate, l) {
		return DoesNotFit
	}
	p.course = &c.onDemand
	if most := l.Offer.MaxLifetime; most > 0 && !r.Checkpoints && c.hours+r.Start.Hours() >= most.Hours() {
		return OutlivesMachine
	}
	p.course = c.course(r, l)
	if p.course.why != "" {
		return p.course.why
	}
	r.price(p, l, c, r.fallback(w, l))
	switch {
	case p.timed && p.chance < r.Promise:
		return TooSlow
	case r.Budget.OK && p.Cost.Value > r.Budget.V:
		return OverBudget
	}
	return ""
}

// course returns how the run goes on machines of an offer, which may be interrupted or have a longest lifetime.
func (c *cell) course(r *ranking, l *catalog.Listing) *course {
	most := l.Offer.MaxLifetime
	switch {
	case l.Offer.Capacity == market.Spot:
		return c.on(r, held(r.Hazards[l.Offer.ID].Between(), most))
	case most > 0:
		return c.on(r, most)
	}
	return &c.onDemand
}

// fallback returns the on-demand offer that takes over from a cheaper spot offer when the slack is gone, or nil.
func (r *ranking) fallback(w *row, l *catalog.Listing) *catalog.Listing {
	if l.Offer.Capacity == market.Spot && w.onDemand != nil && r.Deadline > 0 && w.onDemand.Quote.Rate > l.Quote.Rate {
		return w.onDemand
	}
	return nil
}

// held is how long a machine is held on average if interruptions are memoryless with the given mean and the machine
// ends in any case at the end of its life (0: none):
//
//	m·(1 − e^(−life/m))
//
// Example: m = 4 h and a life of 24 h give 3.99 h; m = 100 h gives 21.3 h. TestLife_EndsTheMachineForCertain checks
// it.
func held(mean, life time.Duration) time.Duration {
	if life <= 0 || mean <= 0 {
		return max(mean, life)
	}
	m := mean.Hours()
	return time.Duration(-m * math.Expm1(-life.Hours()/m) * float64(time.Hour))
}

// holds reports whether the accelerators have enough memory, as far as that is known.
func (p *Plan) holds(e *Estimate, l *catalog.Listing) bool {
	if e.Fits != nil {
		return *e.Fits
	}
	if e.Memory > 0 && l.AcceleratorMemory > 0 && e.Memory > l.AcceleratorMemory {
		return false
	}
	if l.Offer.Accelerators > 0 && (e.Memory == 0 || l.AcceleratorMemory == 0) {
		p.missing |= lacksMemory
	}
	return true
}

// What a cost may omit, as bits.
const (
	lacksMemory = 1 << iota
	lacksTransfer
	lacksStorage
)

var missingNames = []string{"memory", "transfer", "storage"}

// price computes cost and probability. If an on-demand offer takes over when the slack is used up, a run that needs
// T hours, and H hours on spot alone with H above the deadline D, spends the share
//
// of D on spot, where work progresses T/H as fast, and the rest on-demand. Example: D=10 h, T=8 h, H=12 h gives f =
// 2/(10·⅓) = 0.6. Runs that spot alone would finish in time cost what spot costs; the others cost what the median
// of them does.
func (r *ranking) price(p *Plan, l *catalog.Listing, c *cell, over *catalog.Listing) {
	n := float64(p.Machines)
	rate := l.Quote.Rate.Float() * n
	v := p.course
	least := l.Offer.Billing.Minimum.Hours()
	perHour := v.held / v.hours * rate // waiting for a machine costs nothing
	paid := func(hours float64) float64 { return max(least*rate, float64(hours*perHour)) }
	p.Cost, p.Hours = Range{paid(v.low), paid(v.hours), paid(v.high)}, Range{v.low, v.hours, v.high}
	if d := r.Deadline.Hours(); d > 0 {
		p.timed, p.chance = true, v.chance
		starts := r.Start.Hours() + r.Resume.Hours()
		need := c.hours + starts
		chance := 0.0
		if over != nil && v.chance < 1 && need < d {
			chance = within(d-starts, c.hours, c.sigma)
		}
		if chance > v.chance && chance >= r.Promise {
			p.Fallback, p.chance = over.Offer.ID, chance
			dear := over.Quote.Rate.Float() * n           // an hour on-demand
			at := func(z float64) (cost, hours float64) { // for a run slower by z deviations
				t, h := starts+float64(c.hours*math.Exp(z*c.sigma)), v.after(z)
				switch {
				case h <= d:
					return paid(h), h
				case t >= d:
					return t * dear, t
				}
				f := min(1, (d-t)/float64(d*(1-t/h)))
				return d * (float64(f*perHour) + float64((1-f)*dear)), d
			}
			_, p.Hours.Value = at(0)
			p.Cost.High, p.Hours.High = at(tenth)
			missing, _ := at(quantile(1 - (1-v.chance)/2))
			p.Cost.Value = float64(v.chance*min(p.Cost.Value, paid(d))) + float64((1-v.chance)*missing)
			p.Cost.Low, p.Cost.High = min(p.Cost.Low, p.Cost.Value), max(p.Cost.Value, p.Cost.High)
			p.Hours.Low, p.Hours.High = min(p.Hours.Low, p.Hours.Value), max(p.Hours.Value, p.Hours.High)
		}
	}
	add := r.brought(p, l) + r.kept(p, l)
	p.Cost.Low, p.Cost.Value, p.Cost.High = p.Cost.Low+add, p.Cost.Value+add, p.Cost.High+add
}

// brought is the cost of bringing the data to each machine, once.
func (r *ranking) brought(p *Plan, l *catalog.Listing) float64 {
	if r.Data.Region == "" {
		return 0
	}
	fare, ok := r.Data.Fare(l.Offer.Provider, l.Offer.Region)
	if !ok {
		p.missing |= lacksTransfer
		return 0
	}
	return egress.Cost(int64(r.Data.Size), fare).Float() * float64(p.Machines)
}

// month is the number of hours in a month for storage billing.
const month = 730

// kept is the cost of storing the checkpoints during the run.
func (r *ranking) kept(p *Plan, l *catalog.Listing) float64 {
	switch per, known := r.PerGBMonth[l.Offer.Provider]; {
	case !r.Checkpoints:
		return 0
	case r.Storage.OK:
		return r.Storage.V * p.Hours.Value
	case known && r.Kept > 0:
		return float64(r.Kept) / float64(size.GB) * per / month * p.Hours.Value
	}
	p.missing |= lacksStorage
	return 0
}

// told returns a copy of a plan with the fields that only returned plans need.
func (r *ranking) told(plan *Plan) Plan {
	p := *plan
	if p.course != nil {
		p.WorkHours = p.course.work
	}
	if v := p.course; v != nil && v.interruptions > 0 {
		p.Interruptions, p.IntervalS = v.interruptions, v.interval.Seconds()
		p.LostHours = max(0, v.hours-v.work-r.Start.Hours())
	}
	if p.timed {
		p.Chance = &p.chance
	}
	for i, name := range missingNames {
		if p.missing&(1<<i) != 0 {
			p.Missing = append(p.Missing, name)
		}
	}
	if p.Offer != nil {
		p.Data, p.Stored = r.brought(&p, p.Offer), r.kept(&p, p.Offer)
		p.Stale = p.Offer.Stale(r.Now, p.Offer.Fresh())
	}
	return p
}
