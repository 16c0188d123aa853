package place

import (
	"math"
	"slices"
	"time"
)

// Foresight is the default policy. It takes the option with the lowest expected cost to the end of the job,
// computed by a finite-horizon decision process with hazards learned from observations of the zones. Its answer
// depends only on its Job and the View, not on earlier calls: all that it keeps is a cache of tables. The zero
// value with a Job is ready to use. It is not safe for concurrent use.
type Foresight struct {
	Job *Job
	// Shelf has tables that others build; nil: Foresight builds what it needs. If Shelf is set, call Missing before
	// Poll and Decide.
	Shelf *Shelf

	tab     *table
	tabs    []*table // most recently used first
	now     model
	options []Option
}

// Option is something that could be held in this tick, and the expected cost in dollars from now to the end of the
// job if it is taken. A cost of 1e9 means that the guard would step in before it did any work.
type Option struct {
	Choice
	USD float64
}

// Options returns the options that the last call of Decide weighed. Decide took the first of the cheapest, unless a
// live held machine cost hardly more. The slice is valid until the next call, and empty if the guard decided.
func (p *Foresight) Options() []Option { return p.options }

// Chance is the probability that spot in zone z lasts for that long if it is up, or comes back by then if it is
// down. If nobody polled it, it is the probability that it is up now. It uses the hazards of the last call of
// Decide or Poll.
func (p *Foresight) Chance(v View, z int, ahead time.Duration) float64 {
	m := &p.now
	if z >= len(m.loss) {
		return 0
	}
	r, h := &v.Past[z], ahead.Hours()
	switch v.Seen[z] {
	case Up:
		a := r.age()
		return math.Exp(-float64(m.loss[z].in(0) * lossShape.cumulative(a, a+h)))
	case Down:
		a := r.idle()
		return 1 - math.Exp(-float64(m.back[z].in(0)*returnShape.cumulative(a, a+h)))
	case Unseen:
	}
	return r.chance(v.Now, m.up[z])
}

// Decide takes the option with the lowest expected cost. It leaves a live spot machine only for one that is cheaper
// by inHand: the costs are estimates, the lowest of several is more likely to be too low, and a restart certainly
// costs money.
func (p *Foresight) Decide(v View) Choice {
	work, slack := p.begin(v)
	if p.Job.Guarded(v.Tick, v.Left) {
		p.options = p.options[:0]
		return Choice{Kind: v.Held, Zone: v.Zone} // the guard overrides this anyway
	}
	return p.best(v, work, slack)
}

// begin returns the remaining hours of work and slack, and prepares their table. Slack is what can be spent before
// the guard steps in.
func (p *Foresight) begin(v View) (work, slack float64) {
	j := p.Job
	tick := j.Tick.Hours()
	work = v.Left.Hours()
	whole := (j.Deadline - j.Deadline%j.Tick).Hours()
	slack = whole - float64(v.Tick)*tick - work - tick - j.reserve().Hours()
	if !j.Guarded(v.Tick, v.Left) {
		p.refresh(v, work, slack)
	}
	return work, slack
}

// tables is the number of tables kept, for jobs that are queried in turn.
const tables = 4

// every is the smallest number of ticks for which a table is used while no price moves: three, or half an hour if
// ticks are short, but at most sixteen.
func (j *Job) every() int {
	return max(3, min(16, int(30*time.Minute/j.Tick)))
}

// refresh rebuilds the table if its inputs have changed.
func (p *Foresight) refresh(v View, work, slack float64) {
	j := p.Job
	m := &p.now
	if m.regions == nil {
		m.regions, m.n = j.regions()
		j.prices(m)
		m.restart, m.further, m.tick, m.latch = j.Restart.Hours(), j.Transfer.Hours(), j.Tick.Hours(), j.Latch
	}
	m.price = m.price[:0]
	for _, r := range v.Prices {
		m.price = append(m.price, math.Exp(snap(math.Log(max(r.Float(), 1e-6)), priceGrid)))
	}
	m.learn(v.Past, v.Now.Add(-time.Duration(v.Tick%j.every())*j.Tick))
	m.size(work, slack)
	if p.Shelf != nil {
		p.tab = p.Shelf.find(m)
		return
	}
	i := slices.IndexFunc(p.tabs, func(t *table) bool { return m.same(&t.m) })
	if i < 0 {
		if len(p.tabs) < tables {
			p.tabs = append(p.tabs, &table{})
		}
		i = len(p.tabs) - 1
		p.tabs[i].build(m)
	}
	p.tab = p.tabs[i]
	copy(p.tabs[1:i+1], p.tabs[:i])
	p.tabs[0] = p.tab
}

// regions numbers the regions of the zones, and returns their number.
func (j *Job) regions() (by []int, n int) {
	index := map[string]int{}
	for _, z := range j.Zones {
		k, ok := index[z.Region]
		if !ok {
			k = len(index)
			index[z.Region] = k
		}
		by = append(by, k)
	}
	return by, len(index)
}

// prices sets the on-demand prices by region, and the costs of moves between regions.
func (j *Job) prices(m *model) {
	names := make([]string, m.n)
	m.demand, m.carry = make([]float64, m.n), nil
	for z, k := range m.regions {
		if x := j.Zones[z].OnDemand.Float(); names[k] == "" || x < m.demand[k] {
			names[k], m.demand[k] = j.Zones[z].Region, x
		}
	}
	for _, from := range names {
		for _, to := range names {
			m.carry = append(m.carry, j.Moving(from, to).Float())
		}
	}
}

// home is the index of the checkpoint's region, or −1 if there is no checkpoint.
func (p *Foresight) home(v View) int {
	for z, k := range p.now.regions {
		if p.Job.Zones[z].Region == v.Home {
			return k
		}
	}
	return -1
}

// spotAt is the remaining cost on a machine of zone z at some age.
func (t *table) spotAt(z int, age, work, slack float64) float64 {
	b, f := between(age)
	lo := t.pick(work, slack, func(l *layer) []float64 { return l.spot[z][b] })
	if f == 0 {
		return lo
	}
	hi := t.pick(work, slack, func(l *layer) []float64 { return l.spot[z][b+1] })
	return float64((1-f)*lo) + float64(f*hi)
}

// staying is the remaining cost on on-demand in a region while zone z is up at some age and is not taken in this
// tick.
func (t *table) staying(z, on int, age, work, slack float64) float64 {
	m := &t.m
	if slack < -1e-9 || work < m.tick {
		return m.demand[on] * work
	}
	k := t.ways.of[m.regions[z]][on]
	h := 1 - math.Exp(-float64(t.scale[z]*lossShape.cumulative(age, age+m.tick)))
	b, f := between(age + m.tick)
	w := work - m.tick
	lo := t.pick(w, slack, func(l *layer) []float64 { return l.cand[z][k][b] })
	if f > 0 {
		lo = float64((1-f)*lo) + float64(f*t.pick(w, slack, func(l *layer) []float64 { return l.cand[z][k][b+1] }))
	}
	gone := t.pick(w, slack, func(l *layer) []float64 { return l.dem[on][0] })
	return float64(m.demand[on]*m.tick) + float64((1-h)*lo) + float64(h*gone)
}

// owes is the remaining cost on a machine of zone z at some age that still owes that many hours of overhead,
// without the cost of a move.
func (t *table) owes(z int, age, owed, work, slack float64) float64 {
	m := &t.m
	if slack < (math.Ceil(owed/m.tick-1e-9)-1)*m.tick-1e-9 {
		return far
	}
	v := float64(m.price[z]*owed) + t.spotAt(z, age+owed, work, slack-owed)
	if owed == 0 {
		return v
	}
	p := math.Exp(-float64(t.scale[z] * lossShape.cumulative(age, age+owed)))
	lost := float64(m.price[z]*owed/2) + t.pick(work, slack-owed/2, func(l *layer) []float64 { return l.lost[z] })
	return float64(p*v) + float64((1-p)*lost)
}

func (t *table) take(z, home int, age, work, slack float64) float64 {
	m := &t.m
	owed, c := m.restart, 0.0
	if home >= 0 && m.regions[z] != home {
		owed, c = owed+m.further, m.fare(home, m.regions[z])
	}
	return c + t.owes(z, age, owed, work, slack)
}

// weigh fills p.options with the expected cost of each option.
func (p *Foresight) weigh(v View, work, slack float64) {
	t, m := p.tab, &p.tab.m
	home := p.home(v)
	g := p.gap(v, home)
	consider := func(c Choice, x float64) { p.options = append(p.options, Option{c, x}) }
	owed := v.Overhead.Hours()
	if v.Held == Spot {
		consider(Choice{Spot, v.Zone}, t.owes(v.Zone, v.Past[v.Zone].age(), owed, work, slack))
	}
	for z, s := range v.Seen {
		if s == Up && (v.Held != Spot || z != v.Zone) {
			consider(Choice{Spot, z}, t.take(z, home, v.Past[z].age(), work, slack))
		}
	}
	// On-demand: with nothing up it waits for a return, otherwise for a live zone to have lasted.
	reserve := p.Job.Reserve(v)
	if v.Held != OnDemand {
		owed = m.restart
	}
	consider(Choice{OnDemand, reserve}, p.renting(v, g, m.regions[reserve], owed, work, slack))
	for r := range m.n { // a cheaper one elsewhere
		if home < 0 || m.demand[r] >= m.demand[m.regions[reserve]] || slack < m.restart+m.further {
			continue
		}
		x := m.fare(home, r) + p.renting(v, g, r, m.restart+m.further, work, slack)
		consider(Choice{OnDemand, p.cheapestIn(r)}, x)
	}
	if v.Held != Spot {
		consider(Choice{}, p.waiting(v, g, home, work, slack))
	}
}

func (p *Foresight) best(v View, work, slack float64) Choice {
	p.options = p.options[:0]
	p.weigh(v, work, slack)
	best, cost := Choice{}, math.Inf(1)
	for _, o := range p.options {
		x := o.USD
		if o.Kind == Spot && v.Held == Spot && o.Zone == v.Zone {
			x -= p.margin(v)
		}
		if x < cost-1e-9 {
			best, cost = o.Choice, x
		}
	}
	return best
}
