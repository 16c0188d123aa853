package scheduler

import (
	"math"
	"slices"

	"scrimp/internal/decide/pack"
)

// eva is the published policy of that name (Chang and Venkataraman, EuroSys'25). Each round it makes two plans: one
// that seats only waiting tasks and those of machines that do not pay, and one that repacks everything. It chooses
// the second if its saving until the next full repack exceeds the extra cost of its moves.
type eva struct {
	rates   pack.Rates
	seen    map[int]bool // tasks of the last round, by ID
	first   int64        // second of the first arrival or end
	last    int64
	events  int
	anew    int // rounds that repacked everything
	classes classes
	worth   []float64 // reservation prices, by task
}

// launchSeconds is what Eva charges for a new machine, in seconds of its price.
const launchSeconds = 300

func (e *eva) Place(v *pack.View) pack.Plan {
	e.rates.Learn(v)
	e.count(v)
	e.classes.read(v)
	e.worth = e.worth[:0]
	for t := range v.Tasks {
		e.worth = append(e.worth, e.classes.price(t))
	}
	part := e.plan(v, false)
	whole := e.plan(v, true)
	horizon := e.horizon(v.Now)
	if e.events >= 2 && cents(whole.worth(horizon)) > cents(part.worth(horizon)) {
		e.anew++
		return whole.Commit()
	}
	return part.Commit()
}

func cents(v float64) float64 { return math.Round(v*100) / 100 }

// count records arrivals and ends since the last round.
func (e *eva) count(v *pack.View) {
	now := map[int]bool{}
	for _, t := range v.Tasks {
		now[t.ID] = true
		if !e.seen[t.ID] {
			e.event(t.Arrived)
		}
	}
	for id := range e.seen {
		if !now[id] {
			e.event(v.Now) // ended within the last period
		}
	}
	e.seen = now
}

func (e *eva) event(at int64) {
	if e.events == 0 || at < e.first {
		e.first = at
	}
	e.last = max(e.last, at)
	e.events++
}

// horizon is the number of seconds until the next full repack: events come at a constant rate, and each leads to a
// repack with the frequency seen so far.
func (e *eva) horizon(now int64) float64 {
	if e.events < 2 || e.last == e.first {
		return 0
	}
	lambda := float64(e.events-1) / float64(e.last-e.first)
	p := float64(e.anew) / float64(e.events)
	if p == 0 {
		return float64(now)
	}
	return -1 / (lambda * math.Log(1-p))
}

// draft is one plan of Eva.
type draft struct {
	*Statement
	eva    *eva
	filled []bool // machines of the plan; a present machine that is not filled may be filled again
}

// plan makes one of the two plans.
func (e *eva) plan(v *pack.View, all bool) *draft {
	d := &draft{Statement: NewStatement(v), eva: e, filled: make([]bool, len(v.Machines))}
	var loose []int
	for i, t := range v.Tasks {
		if t.On == pack.Waiting {
			loose = append(loose, i)
		}
	}
	for m, x := range v.Machines {
		if len(x.Tasks) == 0 {
			continue
		}
		pays := !all && d.pays(m)
		for _, t := range x.Tasks {
			switch {
			case v.Tasks[t].Fixed || pays:
				d.filled[m] = true
			default:
				loose = append(loose, t)
				d.Move(t, pack.Waiting)
			}
		}
	}
	slices.Sort(loose)
	loose = d.join(loose)
	d.provision(loose)
	return d
}

// pays reports whether a machine's tasks are worth its price, or cost at least as much elsewhere.
func (d *draft) pays(m int) bool {
	x := &d.machines[m]
	if !d.movable(m) {
		return true
	}
	if len(x.tasks) == 1 && d.eva.classes.cheapest(x.tasks[0]) == x.kind {
		return true
	}
	return d.value(x.tasks) >= pack.Hourly(d.v.Types[x.kind].Price)
}

// value is the sum of the reservation prices of tasks that share a machine, each times its rate.
func (d *draft) value(tasks []int) float64 {
	f := d.filler()
	f.set(tasks)
	return f.value()
}

func (d *draft) filler() filler {
	return filler{v: d.v, rates: &d.eva.rates, worth: d.eva.worth}
}

// score orders the choices for a seat: by value, then a task that is already there, then how well it fills the
// room.
type score struct {
	value float64
	there bool
	align float64
}

func (s score) beats(t score) bool {
	switch {
	case s.value != t.value:
		return s.value > t.value
	case s.there != t.there:
		return s.there
	}
	return s.align > t.align
}

// align is the inner product of demand and room, each relative to the machine.
func align(task, room, full pack.Size) (a float64) {
	for r := range full {
		if full[r] > 0 {
			a += float64(task[r]) / float64(full[r]) * float64(room[r]) / float64(full[r])
		}
	}
	return a
}

// join seats loose tasks on machines that the plan keeps, the best pair first, until none fits.
func (d *draft) join(loose []int) []int {
	fillers := make([]filler, len(d.v.Machines))
	for m := range d.v.Machines {
		if d.filled[m] {
			fillers[m] = d.filler()
			fillers[m].set(d.machines[m].tasks)
		}
	}
	for {
		bestTask, bestMachine, best := -1, -1, score{value: -1}
		for at, t := range loose {
			for m := range d.v.Machines {
				room := d.machines[m].room
				if !d.filled[m] || !d.v.Tasks[t].Size.Fits(room) {
					continue
				}
				s := score{fillers[m].with(t), d.v.Tasks[t].On == m,
					align(d.v.Tasks[t].Size, room, d.v.Types[d.machines[m].kind].Size)}
				if s.beats(best) {
					bestTask, bestMachine, best = at, m, s
				}
			}
		}
		if bestTask < 0 {
			return loose
		}
		d.Move(loose[bestTask], bestMachine)
		fillers[bestMachine].add(loose[bestTask])
		loose = slices.Delete(loose, bestTask, bestTask+1)
	}
}

// provision fills machines of every type, the most expensive first, while their tasks are worth the price.
func (d *draft) provision(loose []int) {
	order := d.eva.classes.dearest
	for _, kind := range order {
		for {
			m := d.free(kind)
			chosen, value := d.choose(kind, m, loose)
			alone := len(chosen) == 1 && d.eva.classes.cheapest(chosen[0]) == kind
			if len(chosen) == 0 || value < pack.Hourly(d.v.Types[kind].Price) && !alone {
				break
			}
			final := d.smallest(chosen)
			if final != kind {
				m = -1
			}
			d.fill(m, final, chosen)
			loose = slices.DeleteFunc(loose, func(t int) bool { return slices.Contains(chosen, t) })
		}
		for _, t := range slices.Clone(loose) {
			if d.eva.classes.cheapest(t) == kind {
				d.fill(d.free(kind), kind, []int{t})
				loose = slices.DeleteFunc(loose, func(o int) bool { return o == t })
			}
		}
	}
}

func (d *draft) fill(m, kind int, tasks []int) {
	if m < 0 {
		m = d.Open(kind)
	} else {
		d.filled[m] = true
	}
	for _, t := range tasks {
		d.Move(t, m)
	}
}

// free returns the present machine of a type that the plan has not filled and that has the most tasks, or -1.
func (d *draft) free(kind int) int {
	best := -1
	for m, x := range d.v.Machines {
		if x.Type == kind && !d.filled[m] && (best < 0 || len(x.Tasks) > len(d.v.Machines[best].Tasks)) {
			best = m
		}
	}
	return best
}

// choose fills one machine greedily until the value would decrease.
func (d *draft) choose(kind, m int, loose []int) (chosen []int, value float64) {
	full := d.v.Types[kind].Size
	room := full
	f := d.filler()
	for {
		bestTask, best := -1, score{value: -1}
		tried := d.eva.classes.fresh()
		for _, t := range loose {
			task := &d.v.Tasks[t]
			there := m >= 0 && task.On == m
			if tried.again(t, there) || !task.Size.Fits(room) || slices.Contains(chosen, t) {
				continue
			}
			s := score{f.with(t), there, align(task.Size, room, full)}
			if s.beats(best) {
				bestTask, best = t, s
			}
			tried.mark(t, there)
		}
		if bestTask < 0 || best.value < value {
			return chosen, value
		}
		chosen, value = append(chosen, bestTask), best.value
		room = room.Sub(d.v.Tasks[bestTask].Size)
		f.add(bestTask)
	}
}

// smallest returns the cheapest type that holds all the tasks.
func (d *draft) smallest(tasks []int) int {
	var sum pack.Size
	for _, t := range tasks {
		sum = sum.Add(d.v.Tasks[t].Size)
	}
	c, _ := pack.Cheapest(d.v.Types, sum)
	return c
}

// worth is the saving of a plan over a horizon, less the cost of its moves and launches, in dollars.
func (d *draft) worth(horizon float64) float64 {
	saving, cost := 0.0, 0.0
	for m, x := range d.machines {
		if len(x.tasks) == 0 {
			continue
		}
		price := pack.Hourly(d.v.Types[x.kind].Price)
		saving += d.value(x.tasks) - price
		if m >= len(d.v.Machines) {
			cost += price * launchSeconds
		}
		for _, t := range x.tasks {
			if d.v.Tasks[t].On != m {
				cost += d.eva.worth[t] * float64(d.v.Tasks[t].Setup+d.v.Tasks[t].Leave)
			}
		}
	}
	return (saving*horizon - cost) / 3600
}
