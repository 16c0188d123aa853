package place

import "math"

// Foresight is the default policy: it takes the option with the lowest expected
// cost to the end of the job, by a finite-horizon decision process whose hazards
// are learned within the run. One Foresight decides one run; its zero value with
// a Job is ready.
type Foresight struct {
	Job *Job

	mem     *memory
	tab     table
	options []Option
}

// Option is one thing that could be held in this tick, and the dollars that the
// job is expected to cost from now to its end where it is taken. Dollars of 1e9
// mean that the guard would step in before it did any work.
type Option struct {
	Choice
	USD float64
}

// Options are what the last call of Decide weighed, for a reader: the first of
// the lowest was taken. They are valid until the next call, and empty where the
// guard decides.
func (p *Foresight) Options() []Option { return p.options }

// Look names the zone whose state is worth most: the chance that it is up, times
// what it would save.
func (p *Foresight) Look(v View) int {
	work, slack := p.begin(v)
	if p.Job.Guarded(v.Tick, v.Left) {
		return -1
	}
	p.best(v, work, slack)
	stay := math.Inf(1)
	for _, o := range p.options {
		stay = min(stay, o.USD)
	}
	look, most := -1, math.Inf(-1)
	_, _, up := p.mem.scales()
	for z, s := range v.Seen {
		if s != Unseen {
			continue
		}
		saves := p.mem.chance(z, v.Tick, p.Job.Tick.Hours(), up[z]) * max(stay-p.take(v, z, work, slack), 1e-6)
		if saves > most {
			look, most = z, saves
		}
	}
	return look
}

// Decide takes the option with the lowest expected cost.
func (p *Foresight) Decide(v View) Choice {
	work, slack := p.begin(v)
	if p.Job.Guarded(v.Tick, v.Left) {
		p.options = p.options[:0]
		return Choice{Kind: v.Held, Zone: v.Zone} // what follows is the guard's
	}
	return p.best(v, work, slack)
}

// begin takes in what v shows, and returns the hours of work and of slack left;
// slack is what can be spent before the guard steps in.
func (p *Foresight) begin(v View) (work, slack float64) {
	j := p.Job
	if p.mem == nil {
		p.mem = newMemory(j)
	}
	tick := j.Tick.Hours()
	for z, s := range v.Seen {
		if s != Unseen {
			p.mem.see(z, s == Up, v.Tick, tick)
		}
	}
	work = v.Left.Hours()
	slack = (j.Deadline - j.Deadline%j.Tick).Hours() - float64(v.Tick)*tick - work - tick - (j.Restart + j.Transfer).Hours()
	if !j.Guarded(v.Tick, v.Left) {
		p.refresh(v, work, slack)
	}
	return work, slack
}

func (p *Foresight) refresh(v View, work, slack float64) {
	j := p.Job
	loss, back, up := p.mem.scales()
	price := make([]float64, len(v.Prices))
	for z, r := range v.Prices {
		price[z] = r.Float()
	}
	old := &p.tab.m
	fresh := p.tab.has(work)
	if fresh {
		for z := range price {
			if apart(price[z], old.price[z], 0.01) || apart(loss[z], old.loss[z], 0.2) || apart(back[z], old.back[z], 0.2) || math.Abs(up[z]-old.up[z]) > 0.1 {
				fresh = false
			}
		}
	}
	if fresh {
		return
	}
	p.tab.build(model{
		price: price, loss: loss, back: back, up: up, regions: p.mem.regions, n: p.mem.n,
		demand: j.Zones[0].OnDemand.Float(), restart: j.Restart.Hours(), carry: j.Carry.Float(), further: j.Transfer.Hours(), tick: j.Tick.Hours(),
	}, work, slack)
}

func apart(a, b, by float64) bool { return math.Abs(a-b) > by*b }

// home is the number of the checkpoint's region, −1 before there is one.
func (p *Foresight) home(v View) int {
	for z, k := range p.mem.regions {
		if p.Job.Zones[z].Region == v.Home {
			return k
		}
	}
	return -1
}

// spot is the cost to go of zone z's machine as it is now.
func (p *Foresight) spot(z int, work, slack float64) float64 {
	t := &p.tab
	b, f := between(p.mem.zones[z].age)
	lo := t.pick(work, slack, func(l *layer) []float64 { return l.spot[z][b] })
	if f == 0 {
		return lo
	}
	hi := t.pick(work, slack, func(l *layer) []float64 { return l.spot[z][b+1] })
	return float64((1-f)*lo) + float64(f*hi)
}

// move is what taking zone z costs at once, in hours of slack and in dollars.
func (p *Foresight) move(v View, z int) (owed, dollars float64) {
	m := &p.tab.m
	owed = m.restart
	if h := p.home(v); h >= 0 && m.regions[z] != h {
		owed, dollars = owed+m.further, m.carry
	}
	return owed, dollars + float64(m.price[z]*owed)
}

// hopeless reports whether the guard steps in before a machine that owes so much
// does any work.
func (p *Foresight) hopeless(owed, slack float64) bool {
	tick := p.tab.m.tick
	return slack < (math.Ceil(owed/tick-1e-9)-1)*tick-1e-9
}

// take is the cost to go of taking zone z, which is up.
func (p *Foresight) take(v View, z int, work, slack float64) float64 {
	owed, dollars := p.move(v, z)
	if p.hopeless(owed, slack) {
		return far
	}
	return dollars + p.spot(z, work, slack-owed)
}

// fresh is the same of a zone that has just come up.
func (p *Foresight) fresh(v View, z int, work, slack float64) float64 {
	owed, dollars := p.move(v, z)
	if p.hopeless(owed, slack) {
		return far
	}
	return dollars + p.tab.pick(work, slack-owed, func(l *layer) []float64 { return l.spot[z][0] })
}

func (p *Foresight) best(v View, work, slack float64) Choice {
	t, m := &p.tab, &p.tab.m
	home := p.home(v)
	// Hazard of return now, and the bucket of nothing up that has the same.
	now := make([]float64, len(m.price))
	sum := 0.0
	for z := range now {
		if r := &p.mem.zones[z]; !r.up {
			now[z] = m.back[z] * returnShape.cumulative(r.age, r.age+m.tick) / m.tick
			sum += now[z]
		}
	}
	h := max(home, 0)
	b, bf := ages-1, 0.0
	total := 0.0
	for _, x := range m.back {
		total += x
	}
	n := len(m.price)
	for k := range ages - 1 {
		hi, lo := total*returnMix(k, n), total*returnMix(k+1, n)
		if sum >= hi {
			b, bf = k, 0
			break
		}
		if sum > lo {
			b, bf = k, (hi-sum)/(hi-lo)
			break
		}
	}
	byGap := func(of func(*layer) [][ages][]float64, w, s float64) float64 {
		lo := t.pick(w, s, func(l *layer) []float64 { return of(l)[h][b] })
		if bf == 0 {
			return lo
		}
		return float64((1-bf)*lo) + float64(bf*t.pick(w, s, func(l *layer) []float64 { return of(l)[h][b+1] }))
	}
	dem := func(l *layer) [][ages][]float64 { return l.dem }
	none := func(l *layer) [][ages][]float64 { return l.none }

	best, cost := Choice{}, math.Inf(1)
	p.options = p.options[:0]
	consider := func(c Choice, x float64) {
		p.options = append(p.options, Option{c, x})
		if x < cost-1e-9 {
			best, cost = c, x
		}
	}
	owed := v.Overhead.Hours()
	if v.Held == Spot {
		consider(Choice{Spot, v.Zone}, float64(m.price[v.Zone]*owed)+p.spot(v.Zone, work, slack-owed))
	}
	for z, s := range v.Seen {
		if s == Up && (v.Held != Spot || z != v.Zone) {
			consider(Choice{Spot, z}, p.take(v, z, work, slack))
		}
	}
	if v.Held == OnDemand {
		consider(Choice{OnDemand, v.Zone}, float64(m.demand*owed)+byGap(dem, work, slack-owed))
	} else {
		consider(Choice{OnDemand, p.Job.Reserve(v)}, float64(m.demand*m.restart)+byGap(dem, work, slack-m.restart))
	}
	if v.Held != Spot {
		// Wait a tick: what is up stays up or not, what is down comes back or not.
		s := slack - m.tick
		wait := float64(m.demand * (work + m.restart))
		if s >= 0 {
			rest, sum := 1.0, 0.0
			stay := byGap(none, work, s)
			for z, seen := range v.Seen {
				if seen == Up {
					stay = min(stay, p.take(v, z, work, s))
				}
			}
			for z := range now {
				r := now[z] * m.tick
				if r == 0 {
					continue
				}
				rest -= r
				sum += r * min(p.fresh(v, z, work, s), stay)
			}
			wait = sum + float64(rest*stay)
		}
		consider(Choice{}, wait)
	}
	return best
}
