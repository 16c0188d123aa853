package sim

import "math/rand/v2"

// gangs reports whether jobs of this life may take several machines at once.
func (w *World) gangs() bool {
	return w.extra != nil && !w.calm5() && !w.plain && w.seed%7 == 3 && !w.warm()
}

// drawGang turns a job into a gang, elastic or not, from its own random source.
func (w *World) drawGang(j *simJob) {
	if w.gang == nil {
		w.gang = rand.New(rand.NewPCG(w.seed, 0x6a46))
		w.partly = 0.2
	}
	if w.gang.IntN(4) == 0 {
		return
	}
	t := &j.terms
	t.Nodes = 2 + w.gang.IntN(3)
	if w.gang.IntN(3) == 0 {
		t.LeastNodes = 1 + w.gang.IntN(t.Nodes)
	}
	t.Budget = t.Budget.Add(t.Budget)
	for n := 2; n < t.Nodes && t.HasBudget; n++ {
		t.Budget = t.Budget.Add(t.Budget)
	}
	t.GPUHours *= float64(t.Nodes)
}
