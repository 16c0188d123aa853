package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
)

// nodes is how many machines the job may have at once.
func (j *simJob) nodes() int { return max(1, j.terms.Nodes) }

// rankName is what an agent is known by: its attempt, and its rank where that is not the first.
func rankName(attempt string, node int) string {
	if node == 0 {
		return attempt
	}
	return fmt.Sprintf("%s/%d", attempt, node)
}

// ranks are the agents of an attempt, by rank.
func (w *World) ranks(attempt string) (list []*agent) {
	for n := range 8 {
		if a := w.agents[rankName(attempt, n)]; a != nil {
			list = append(list, a)
		}
	}
	return list
}

// agentOn is the agent of an attempt on a machine, or nil.
func (w *World) agentOn(attempt, instance string) *agent {
	for _, a := range w.ranks(attempt) {
		if a.i.id == instance {
			return a
		}
	}
	return nil
}

// several lets jobs of this world have several machines each.
func (w *World) several(seed uint64) { w.gang = rand.New(rand.NewPCG(seed, 0x6a46)) }

// serves lets a machine that may be one of several ask for its task, and end what is to end,
// as the real agent does, until its end. Where there are no faults it is told when to: see wakes.
func (w *World) serves(i *instance) {
	if w.calm {
		w.after(time.Second, func() { w.served(i) })
		return
	}
	w.after(time.Duration(1+w.gang.IntN(20))*time.Second, func() {
		if !i.running() {
			return
		}
		if w.up && !i.agent.cut {
			w.served(i)
		}
		w.serves(i)
	})
}

// wakes lets the machines look for what there is to do that a step concerns.
func (w *World) wakes(facts []core.Fact) {
	all := func(attempt string) {
		a, ok := w.m.Attempt(attempt)
		if !ok {
			return
		}
		for _, k := range a.Tasks() {
			if i := w.instances[k.Instance()]; i != nil && k.Live() {
				w.after(time.Second, func() {
					if i.running() {
						w.served(i)
					}
				})
			}
		}
	}
	for _, f := range facts {
		switch f := f.(type) {
		case state.SeatReleased:
			all(f.Attempt)
		case state.AttemptBegan:
			all(f.Attempt)
		case state.InstanceRegistered:
			if i := w.m.State().Instance(f.Instance); i != nil && w.m.State().Seated(i) != nil {
				all(w.m.State().Seated(i).ID())
			}
		}
	}
}

func (w *World) served(i *instance) {
	known := w.m.State().Instance(i.id)
	if known == nil || !w.m.Stays(known) {
		return
	}
	i.agent.answered = w.now
	for _, k := range w.m.State().Leaving() {
		if k.Instance() == i.id && k.Phase() != core.Ended {
			w.evicts(k.Attempt().ID(), k.Rank())
			return
		}
	}
	for _, k := range w.m.Tasks(known) {
		if w.agents[rankName(k.Attempt().ID(), k.Rank())] == nil {
			w.ranked(i, known, k)
			return
		}
	}
}

// ranked begins a rank of an attempt.
func (w *World) ranked(i *instance, known *state.Instance, k *core.Task) {
	t := k.Attempt()
	job := w.jobOf(t.ID())
	if job == nil {
		return
	}
	if before := i.agent; before.job != nil && before.attempt != t.ID() {
		if !before.dead && !before.over && !before.began.IsZero() {
			w.breaks("gang: %s begins on %s, and the program of %s runs there", t.ID(), i.id, before.attempt)
		}
		w.saw("a machine goes on with the next attempt")
		before.gone = cmp.Or(before.gone, w.now.Add(w.skew))
	}
	if len(known.Seats()) != 1 {
		w.breaks("gang: %s has %d seats", i.id, len(known.Seats()))
	}
	b := &agent{w: w, i: i, attempt: t.ID(), node: k.Rank(), nodes: t.Nodes(), job: job, epoch: t.Epoch(), since: k.From(),
		key: i.agent.key, up: i.agent.up, gpus: i.offer.Accelerators,
		pace: job.pace * cmp.Or(max(i.offer.Speed, 0), 1) * float64(t.Nodes()) / float64(job.nodes())}
	if t.Nodes() > 1 {
		w.saw("a rank begins")
	}
	i.agent, w.agents[rankName(b.attempt, b.node)] = b, b
	b.answered = w.now
	w.tell("%s begins on %s as rank %d of %d", b.attempt, i.id, b.node, b.nodes)
	w.after(time.Second, b.claim)
}

// together lets a gang work once all of its programs have begun.
func (a *agent) together() {
	ranks := a.w.ranks(a.attempt)
	if len(ranks) < a.nodes || slices.ContainsFunc(ranks, func(r *agent) bool { return r.began.IsZero() || r.dead }) {
		return
	}
	a.w.saw("a gang works")
	lead := ranks[0]
	lead.apart, lead.began, lead.captured = false, a.w.now, a.w.now
	lead.works()
}

// bereaved is said of a gang of which a machine is lost: its programs hang, or fail.
func (w *World) bereaved(i *instance) {
	lost := i.agent
	if lost == nil || lost.nodes < 2 || lost.over || lost.began.IsZero() {
		return
	}
	for _, r := range w.ranks(lost.attempt) {
		if r == lost || r.dead || r.over || r.began.IsZero() {
			continue
		}
		if r.node == 0 && r.stuck == 0 {
			r.stuck = r.step()
			r.froze = true
		}
		if w.calm || w.gang.IntN(2) == 0 {
			continue // it hangs
		}
		w.after(time.Duration(1+w.gang.IntN(60))*time.Second, func() { w.failAfterLoss(r) })
	}
}

// failAfterLoss fails the program of a rank that still runs.
func (w *World) failAfterLoss(r *agent) {
	if r.dead || r.over {
		return
	}
	w.saw("a rank fails after a loss")
	r.over = true
	r.end("failed", 1, r.step(), false)
}

// completes lets the other ranks of a gang end with the first.
func (a *agent) completes() {
	for _, r := range a.w.ranks(a.attempt) {
		if r == a {
			continue
		}
		d := time.Second
		if !a.w.calm {
			d = time.Duration(1+a.w.gang.IntN(30)) * time.Second
		}
		a.w.after(d, func() {
			if !r.dead && !r.over {
				r.over = true
				r.end("completed", 0, 0, false)
			}
		})
	}
}

// parts is how many machines of a launch are granted at once, and whether the others come at all.
func (w *World) grantedOf(nodes int) (now int, rest bool) {
	if w.gang == nil || nodes < 2 || w.gang.Float64() >= w.partly {
		return nodes, false
	}
	w.saw("fault in part × launch")
	return 1 + w.gang.IntN(nodes-1), w.gang.IntN(2) == 0
}

// asked is how many machines were asked for with a key at most.
func (w *World) asks(a core.Launch) int {
	n := max(1, a.Nodes)
	w.wanted[a.Allocation] = max(w.wanted[a.Allocation], n)
	return n
}
