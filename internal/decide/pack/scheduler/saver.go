package scheduler

import (
	"cmp"
	"slices"

	"scrimp/internal/decide/pack"
	"scrimp/internal/decide/pack/simplex"
)

// Constants of the default policy. All traces use the same set.
const (
	// horizonHours is how long a better packing is expected to last before tasks come and go: a move or a launch
	// must have paid off by then. Costs change little between 0.7 and 3.
	horizonHours = 1.0
	// worst is the number of the most loss-making machines repacked in a round, each alone and with each other
	// machine.
	worst = 4
	// improvements bounds the repackings of a round.
	improvements = 6
)

// saver is the default policy. It values progress by the duals of a linear program over all ways to fill a machine
// with the present tasks, which is the cost of an hour of a task's work in the best packing. It minimizes the
// machine prices less the value of the progress on them: waiting tasks go where they add the most, and the most
// loss-making machines are repacked if the saving pays for the moves.
type saver struct {
	deadlines bool
	rates     pack.Rates
	classes   classes
	duals     duals
	worth     []float64 // by task
	quiet     bool      // the last round changed nothing
	last      []pack.Task
}

// trial is a statement of the default policy.
type trial struct {
	*Statement
	s *saver
	f filler

	shelves stock // buffer of the last stock
}

func (s *saver) Place(v *pack.View) pack.Plan {
	if s.quiet && same(s.last, v.Tasks) {
		return pack.Plan{}
	}
	s.rates.Learn(v)
	s.classes.read(v)
	s.value(v)
	t := &trial{Statement: NewStatement(v), s: s, f: filler{v: v, rates: &s.rates, worth: s.worth}}
	if s.deadlines {
		t.f.needs = needs(v)
	}
	var loose []int
	for i, x := range v.Tasks {
		if x.On == pack.Waiting && s.classes.cheapest(i) != pack.Waiting {
			loose = append(loose, i)
		}
	}
	t.rebuild(nil, loose)
	t.improve()
	p := t.Commit()
	s.quiet = len(p.Launches) == 0 && len(p.Moves) == 0 && len(p.Releases) == 0
	s.last = append(s.last[:0], v.Tasks...)
	return p
}

// same reports whether no task has come, gone or settled.
func same(a, b []pack.Task) bool {
	return slices.EqualFunc(a, b, func(x, y pack.Task) bool { return x.ID == y.ID && x.On == y.On && x.Fixed == y.Fixed })
}

// objective is the saving over the horizon less the cost of moves and launches, in dollars.
func (t *trial) objective() (sum float64) {
	for m := range t.machines {
		x := &t.machines[m]
		if len(x.tasks) == 0 {
			continue
		}
		gain := t.gain(m)
		boot := 0.0
		if m >= len(t.v.Machines) {
			y := t.v.Types[x.kind]
			boot = float64(y.Boot)
			sum -= pack.Hourly(y.Price) * boot / 3600
		}
		for _, i := range x.tasks {
			if task := &t.v.Tasks[i]; task.On != m && task.On != pack.Waiting {
				sum -= t.s.worth[i] * (float64(task.Setup+task.Leave) + boot) / 3600
			}
		}
		sum += float64(gain * horizonHours)
	}
	return sum
}

// gain is the worth of a machine's progress less its price, in dollars per hour.
func (t *trial) gain(m int) float64 {
	t.f.here = m
	t.f.set(t.machines[m].tasks)
	return t.f.value() - pack.Hourly(t.v.Types[t.machines[m].kind].Price)
}

// improve repacks machines while that pays.
func (t *trial) improve() {
	best := t.objective()
	for range improvements {
		order := t.losers()
		took := false
		for _, pair := range pairs(order) {
			mark := t.Mark()
			if !t.repack(pair) {
				continue
			}
			if now := t.objective(); now > best+0.005 { // half a cent: smaller differences are floating-point noise
				best, took = now, true
				break
			}
			t.Rollback(mark)
		}
		if !took {
			return
		}
	}
}

// losers lists the machines with tasks, the most loss-making first.
func (t *trial) losers() []int {
	var list []int
	loss := make([]float64, len(t.machines))
	for m := range t.machines {
		if len(t.machines[m].tasks) > 0 {
			loss[m] = -t.gain(m)
			list = append(list, m)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(loss[b], loss[a]) })
	return list
}

// pairs lists what to repack: each of the worst machines alone, then with each other machine.
func pairs(order []int) (list [][]int) {
	n := min(worst, len(order))
	for _, a := range order[:n] {
		list = append(list, []int{a})
	}
	for i, a := range order[:n] {
		for _, b := range order[i+1:] {
			list = append(list, []int{a, b})
		}
	}
	return list
}

// repack takes the movable tasks off the machines and seats them again. It returns false if there are none.
func (t *trial) repack(machines []int) bool {
	var pool []int
	for _, m := range machines {
		for _, i := range t.machines[m].tasks {
			if !t.v.Tasks[i].Fixed {
				pool = append(pool, i)
			}
		}
	}
	if len(pool) == 0 {
		return false
	}
	for _, i := range pool {
		t.Move(i, pack.Waiting)
	}
	t.rebuild(machines, pool)
	return true
}

// rebuild seats a pool of tasks: first where they add the most on machines that stay, then on the emptied machines
// and new ones, the set with the highest worth per dollar first.
func (t *trial) rebuild(emptied, pool []int) {
	pool = slices.Clone(pool)
	slices.Sort(pool)
	pool = t.insert(emptied, pool)
	free := slices.Clone(emptied)
	for len(pool) > 0 {
		c := t.best(free, pool)
		if len(c.tasks) == 0 { // no task is worth anything to the linear program, but each must run
			c = choice{pack.Waiting, t.s.classes.cheapest(pool[0]), pool[:1], 0}
		}
		m := c.machine
		if m == pack.Waiting {
			m = t.Open(c.kind)
		} else {
			free = slices.DeleteFunc(free, func(o int) bool { return o == m })
		}
		for _, i := range c.tasks {
			t.Move(i, m)
		}
		pool = slices.DeleteFunc(pool, func(i int) bool { return slices.Contains(c.tasks, i) })
	}
}

// insert seats tasks on machines that stay while that adds worth, and returns the rest.
func (t *trial) insert(emptied, pool []int) []int {
	for {
		at, to, best := -1, -1, 0.0
		for m := range t.machines {
			x := &t.machines[m]
			if len(x.tasks) == 0 || slices.Contains(emptied, m) {
				continue
			}
			ready := false
			tried := t.s.classes.fresh()
			var before float64
			for k, i := range pool {
				if !t.v.Tasks[i].Size.Fits(x.room) || tried.again(i, false) {
					continue
				}
				tried.mark(i, false)
				if !ready {
					t.f.here = m
					t.f.set(x.tasks)
					before, ready = t.f.value(), true
				}
				if add := t.f.with(i) - before; add > best {
					at, to, best = k, m, add
				}
			}
		}
		if at < 0 {
			return pool
		}
		t.Move(pool[at], to)
		pool = slices.Delete(pool, at, at+1)
	}
}

// choice is a set of tasks for a machine.
type choice struct {
	machine int // Waiting for a new machine
	kind    int
	tasks   []int
	ratio   float64 // worth over price
}

// best returns the set with the highest worth per dollar, on a free machine or a new one.
func (t *trial) best(free, pool []int) (b choice) {
	b.ratio = -1
	stock := t.stock(pool)
	for _, m := range free {
		x := &t.machines[m]
		t.f.here = m
		tasks, value := t.fill(x.room, x.tasks, stock)
		price := pack.Hourly(t.v.Types[x.kind].Price)
		if len(tasks) > 0 && value/price > b.ratio {
			b = choice{m, x.kind, tasks, value / price}
		}
	}
	t.f.here = len(t.machines)
	for kind, y := range t.v.Types {
		if t.needless(kind, stock) {
			continue
		}
		tasks, value := t.fill(y.Size, nil, stock)
		if len(tasks) == 0 {
			continue
		}
		var sum pack.Size
		for _, i := range tasks {
			sum = sum.Add(t.v.Tasks[i].Size)
		}
		if c, ok := pack.Cheapest(t.v.Types, sum); ok {
			kind = c
		}
		y = t.v.Types[kind]
		price := pack.Hourly(y.Price) * (1 + float64(y.Boot)/3600/horizonHours)
		if value/price > b.ratio {
			b = choice{pack.Waiting, kind, tasks, value / price}
		}
	}
	return b
}

// needless reports whether a cheaper type holds all of the stock that fits this one, and therefore gives the same
// set.
func (t *trial) needless(kind int, s stock) bool {
	y := &t.v.Types[kind]
	var sum pack.Size
	for k := range s {
		if x := &s[k]; x.size.Fits(y.Size) {
			for range x.tasks {
				sum = sum.Add(x.size)
			}
		}
	}
	c, ok := pack.Cheapest(t.v.Types, sum)
	return sum == pack.Size{} || ok && t.v.Types[c].Price < y.Price
}

// stock is a pool by class.
type stock []shelf

// shelf is the tasks of one class, in the order in which they are taken.
type shelf struct {
	size  pack.Size
	tasks []int
	taken int
}

func (t *trial) stock(pool []int) stock {
	s := t.shelves[:0]
	place := t.s.classes.fresh()
	for _, i := range pool {
		at, known := place.find(i)
		if !known {
			at = len(s)
			place.put(i, at)
			if at < cap(s) {
				s = s[:at+1]
				s[at] = shelf{size: t.v.Tasks[i].Size, tasks: s[at].tasks[:0]}
			} else {
				s = append(s, shelf{size: t.v.Tasks[i].Size})
			}
		}
		s[at].tasks = append(s[at].tasks, i)
	}
	t.shelves = s
	return s
}

// fill chooses tasks of a stock for a room beside the present ones, in two ways, and returns the better result: by
// what a task adds, and by what it adds relative to its share of the room. The value includes the present tasks.
func (t *trial) fill(room pack.Size, present []int, s stock) (tasks []int, value float64) {
	if !slices.ContainsFunc(s, func(x shelf) bool { return x.size.Fits(room) }) {
		return nil, 0
	}
	tasks, value = t.greedy(room, present, s, false)
	if other, v := t.greedy(room, present, s, true); v > value {
		tasks, value = other, v
	}
	return tasks, value
}

func (t *trial) greedy(room pack.Size, present []int, s stock, dense bool) (chosen []int, value float64) {
	full := room
	t.f.set(present)
	value = t.f.value()
	for k := range s {
		s[k].taken = 0
	}
	for {
		pick, best, worthWith := -1, 0.0, 0.0
		for k := range s {
			x := &s[k]
			if x.taken == len(x.tasks) || !x.size.Fits(room) {
				continue
			}
			with := t.f.with(x.tasks[x.taken])
			score := with - value
			if dense {
				score /= share(x.size, full)
			}
			if score > best {
				pick, best, worthWith = k, score, with
			}
		}
		if pick < 0 {
			return chosen, value
		}
		i := s[pick].tasks[s[pick].taken]
		s[pick].taken++
		t.f.add(i)
		chosen, value = append(chosen, i), worthWith
		room = room.Sub(s[pick].size)
	}
}

// share is the largest share of a room, over all resources, that a size takes.
func share(s, room pack.Size) (most float64) {
	for r := range s {
		if room[r] > 0 {
			most = max(most, float64(s[r])/float64(room[r]))
		}
	}
	return max(most, simplex.Tiny)
}
