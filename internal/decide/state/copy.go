package state

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// clone returns a copy of the job that later changes do not affect, except that it shares the machines of its
// attempts.
func (j *Job) clone() *Job {
	c := *j
	if j.r.Run == nil {
		return &c
	}
	r := *j.r.Run
	r.Fallback = slices.Clone(r.Fallback)
	r.Attempts = make([]*Attempt, len(j.r.Run.Attempts))
	for i, a := range j.r.Run.Attempts {
		r.Attempts[i] = a.clone()
	}
	if r.Asked != nil {
		a := *r.Asked
		r.Asked = &a
	}
	r.Leaving = make([]*Allocation, len(j.r.Run.Leaving))
	for i, a := range j.r.Run.Leaving {
		b := *a
		r.Leaving[i] = &b
	}
	c.r.Run = &r
	return &c
}

// Copy returns the job as it is now, for readers that run while events continue.
func (j *Job) Copy() *Job {
	c := j.clone()
	for _, a := range c.Attempts() {
		for _, t := range a.tasks {
			t.instance = t.instance.copied()
		}
	}
	for _, a := range append([]*Allocation{c.run().Asked}, c.run().Leaving...) {
		if a != nil {
			a.machines = slices.Clone(a.machines)
			for n, i := range a.machines {
				a.machines[n] = i.copied()
			}
		}
	}
	return c
}

// copied returns a copy of the instance with its current prices, or nil for nil.
func (i *Instance) copied() *Instance {
	if i == nil {
		return nil
	}
	c := *i
	if c.series != nil {
		c.series = &Series{slices.Clone(c.series.list)}
	}
	return &c
}

// Same reports whether two states agree on the job. With learned, what was learned from samples and prices must
// agree too.
func (j *Job) Same(o *Job, learned bool) bool {
	a, wrongA := json.Marshal(storedOf(j.compared(learned)))
	b, wrongB := json.Marshal(storedOf(o.compared(learned)))
	return wrongA == nil && wrongB == nil && bytes.Equal(a, b)
}

// compared returns the parts of the job that Same compares.
func (j *Job) compared(learned bool) *Job {
	if learned || j.r.Run == nil {
		return j
	}
	c := j.clone()
	c.r.Run.Learned = learnedJob{}
	for _, a := range c.r.Run.Attempts {
		for _, t := range a.tasks {
			t.r.Learned, t.r.LastRate = learnedTask{}, 0
		}
	}
	return c
}

// clone returns a copy of the attempt that later changes do not affect.
func (a *Attempt) clone() *Attempt {
	c := &Attempt{r: a.r, tasks: make([]*Task, len(a.tasks))}
	for n, t := range a.tasks {
		k := *t
		k.attempt, k.r.Uses, k.r.Bill = c, maps.Clone(t.r.Uses), maps.Clone(t.r.Bill)
		c.tasks[n] = &k
	}
	return c
}
