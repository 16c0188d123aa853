package scheduler

import "scrimp/internal/decide/pack"

// filler evaluates the tasks of one machine: what their progress is worth in dollars per hour, and what one more
// task adds.
type filler struct {
	v     *pack.View
	rates *pack.Rates
	worth []float64 // by task: dollars per hour at full rate
	tasks []int
	own   []float64 // rate of each of tasks
	// needs are the lowest rates at which tasks keep their deadlines, by task; nil if deadlines are unknown.
	needs []need
	here  int // index in View.Machines of the machine being filled, or an index without tasks
}

// need is the lowest rate at which a task ends in time, on its present machine and after a move.
type need struct{ stay, start float64 }

// lateFine is what a task that would miss its deadline subtracts from the value, in dollars per hour: more than any
// machine costs.
const lateFine = 1e6

// fine returns lateFine if a task would be late at a rate.
func (f *filler) fine(t int, rate float64) float64 {
	if f.needs == nil {
		return 0
	}
	least := f.needs[t].start
	if f.v.Tasks[t].On == f.here {
		least = f.needs[t].stay
	}
	if rate < least {
		return lateFine
	}
	return 0
}

// set replaces the tasks.
func (f *filler) set(tasks []int) {
	f.tasks, f.own = append(f.tasks[:0], tasks...), f.own[:0]
	for _, t := range f.tasks {
		f.own = append(f.own, f.rate(t))
	}
}

// rate is the rate of a task among the others.
func (f *filler) rate(t int) float64 {
	r := 1.0
	for _, o := range f.tasks {
		if o != t {
			r *= f.rates.Of(f.v.Tasks[t].Kind, f.v.Tasks[o].Kind)
		}
	}
	return r
}

// value is the sum of the worth of all tasks, each times its rate.
func (f *filler) value() (sum float64) {
	for i, t := range f.tasks {
		sum += float64(f.worth[t]*f.own[i]) - f.fine(t, f.own[i])
	}
	return sum
}

// with is the value with one more task.
func (f *filler) with(t int) (sum float64) {
	kind, own := f.v.Tasks[t].Kind, 1.0
	for i, o := range f.tasks {
		k := f.v.Tasks[o].Kind
		rate := f.own[i] * f.rates.Of(k, kind)
		sum += float64(f.worth[o]*rate) - f.fine(o, rate)
		own *= f.rates.Of(kind, k)
	}
	return sum + float64(f.worth[t]*own) - f.fine(t, own)
}

// add adds one more task.
func (f *filler) add(t int) {
	kind, own := f.v.Tasks[t].Kind, 1.0
	for i, o := range f.tasks {
		k := f.v.Tasks[o].Kind
		f.own[i] *= f.rates.Of(k, kind)
		own *= f.rates.Of(kind, k)
	}
	f.tasks, f.own = append(f.tasks, t), append(f.own, own)
}
