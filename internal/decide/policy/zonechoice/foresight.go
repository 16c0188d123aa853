package zonechoice

import (
	"math"
	"slices"
	"time"

	"scrimp/internal/decide/policy/zonechoice/costtogo"
	"scrimp/internal/decide/policy/zonechoice/hazard"
)

// Foresight is the default policy. It takes the option with the lowest expected cost to the end of the job,
// computed by a finite-horizon decision process with hazards learned from observations of the zones. Its answer
// depends only on its Job and the View, not on earlier calls: all that it keeps is a cache of tables. The zero
// value with a Job is ready to use. It is not safe for concurrent use.
type Foresight struct {
	Job *Job
	// Shelf has tables that others build; nil: Foresight builds what it needs. If Shelf is set, call Missing before
	// Poll and Decide.
	Shelf *costtogo.Shelf

	tab     *costtogo.Table
	tabs    []*costtogo.Table // most recently used first
	now     costtogo.Model
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
	if z >= len(m.Loss) {
		return 0
	}
	r, h := &v.Past[z], ahead.Hours()
	switch v.Seen[z] {
	case Up:
		a := r.Age()
		return math.Exp(-float64(m.Loss[z].In(0) * hazard.Loss.Cumulative(a, a+h)))
	case Down:
		a := r.Idle()
		return 1 - math.Exp(-float64(m.Back[z].In(0)*hazard.Return.Cumulative(a, a+h)))
	case Unseen:
	}
	return r.Chance(v.Now, m.Up[z])
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
	if m.Regions == nil {
		m.Regions, m.N = j.regions()
		j.prices(m)
		m.Restart, m.Further, m.Tick, m.Latch = j.Restart.Hours(), j.Transfer.Hours(), j.Tick.Hours(), j.Latch
	}
	m.Losses = v.Losses
	m.Price = m.Price[:0]
	for _, r := range v.Prices {
		m.Price = append(m.Price, costtogo.OnGrid(r.Float()))
	}
	m.Learn(v.Past, v.Now.Add(-time.Duration(v.Tick%j.every())*j.Tick))
	m.Size(work, slack)
	if p.Shelf != nil {
		p.tab = p.Shelf.Find(m)
		return
	}
	i := slices.IndexFunc(p.tabs, func(t *costtogo.Table) bool { return m.Same(&t.Model) })
	if i < 0 {
		if len(p.tabs) < tables {
			p.tabs = append(p.tabs, &costtogo.Table{})
		}
		i = len(p.tabs) - 1
		p.tabs[i].Build(m)
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
func (j *Job) prices(m *costtogo.Model) {
	names := make([]string, m.N)
	m.Demand, m.Carry = make([]float64, m.N), nil
	for z, k := range m.Regions {
		if x := j.Zones[z].OnDemand.Float(); names[k] == "" || x < m.Demand[k] {
			names[k], m.Demand[k] = j.Zones[z].Region, x
		}
	}
	for _, from := range names {
		for _, to := range names {
			m.Carry = append(m.Carry, j.Moving(from, to).Float())
		}
	}
}

// home is the index of the checkpoint's region, or −1 if there is no checkpoint.
func (p *Foresight) home(v View) int {
	for z, k := range p.now.Regions {
		if p.Job.Zones[z].Region == v.Home {
			return k
		}
	}
	return -1
}

// weigh fills p.options with the expected cost of each option.
func (p *Foresight) weigh(v View, work, slack float64) {
	t, m := p.tab, &p.tab.Model
	home := p.home(v)
	g := p.tab.Gap(v.Past, home)
	consider := func(c Choice, x float64) { p.options = append(p.options, Option{c, x}) }
	owed := v.Overhead.Hours()
	if v.Held == Spot {
		consider(Choice{Spot, v.Zone}, t.Owes(v.Zone, v.Past[v.Zone].Age(), owed, work, slack))
	}
	for z, s := range v.Seen {
		if s == Up && (v.Held != Spot || z != v.Zone) {
			consider(Choice{Spot, z}, t.Take(z, home, v.Past[z].Age(), work, slack))
		}
	}
	// On-demand: with nothing up it waits for a return, otherwise for a live zone to have lasted.
	reserve := p.Job.Reserve(v)
	if v.Held != OnDemand {
		owed = m.Restart
	}
	consider(Choice{OnDemand, reserve}, p.renting(v, g, m.Regions[reserve], owed, work, slack))
	for r := range m.N { // a cheaper one elsewhere
		if home < 0 || m.Demand[r] >= m.Demand[m.Regions[reserve]] || slack < m.Restart+m.Further {
			continue
		}
		x := m.Fare(home, r) + p.renting(v, g, r, m.Restart+m.Further, work, slack)
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

// Missing returns the piece that Poll and Decide need for the view and that Shelf lacks. ok is false if nothing is
// missing, for example because the guard decides.
func (p *Foresight) Missing(v View) (want costtogo.Piece, ok bool) {
	if p.Shelf == nil || p.Job.Guarded(v.Tick, v.Left) {
		return want, false
	}
	if p.begin(v); p.tab != nil {
		return want, false
	}
	return p.now.Piece(), true
}
