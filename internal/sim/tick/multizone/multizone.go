// Package multizone replays recorded spot markets in which a job may move between zones and regions, tick by tick
// against a placement policy. It also computes the least cost with the whole window known in advance.
package multizone

import (
	"fmt"
	"math/bits"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/decide/policy/zonechoice/hazard"
	"scrimp/internal/lib/money"
	"scrimp/internal/sim/tick"
)

// A Run is one job over one group of zones in one window.
type Run struct {
	Job    zonechoice.Job
	Traces []*Trace // by zone of the job
	Window int
	Group  int
	Nodes  int          // machines that the job has at once; 0 means one
	Alone  []tick.Alone // additional losses, by zone of the job; nil for none
}

// AloneAt returns the nodes that are lost in a zone at the start of tick t while spot is available.
func (r *Run) AloneAt(zone, t int) uint16 {
	if r.Alone == nil {
		return 0
	}
	return r.Alone[zone].At(t)
}

// epoch is when every run begins; its value does not matter.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Outcome is the outcome of a run.
type Outcome struct {
	Cost      money.Amount
	Fees      money.Amount // part of Cost, for successful tries that the policy did not use; per machine
	Moves     int          // machines rented
	Carries   int          // part of Moves, to another region
	Losses    int          // interrupted spot machines
	Decisions int
	Missed    bool
}

// Play runs p through r by the rules of the benchmark and returns the outcome. It panics on an illegal answer: spot in
// a zone that p does not see up.
func (r *Run) Play(p zonechoice.Policy) Outcome {
	var out Outcome
	j := &r.Job
	v := zonechoice.View{Left: j.Work, Prices: make([]money.Rate, len(j.Zones)),
		Seen: make([]zonechoice.Sight, len(j.Zones)), Past: make([]hazard.Record, len(j.Zones))}
	looker, _ := p.(zonechoice.Poller)
	var polled []int
	var gangs policy.Gangs
	for v.Tick = 0; v.Tick < j.Ticks(); v.Tick++ {
		r.show(&v)
		if v.Lost {
			out.Losses++
			gangs = r.learn(gangs, &v)
		}
		polled = polled[:0]
		for looker != nil && len(polled) < j.Polls() {
			z := looker.Poll(v)
			if z < 0 {
				break
			}
			r.see(&v, z)
			polled = append(polled, z)
		}
		c := j.Guard(v, p.Decide(v))
		out.Decisions++
		if j.Tries {
			r.fees(v, c, polled, &out)
		}
		if c.Kind == zonechoice.Spot && v.Seen[c.Zone] != zonechoice.Up {
			panic(fmt.Sprintf("spot in %s at tick %d, which is not seen up", j.Zones[c.Zone].Name, v.Tick))
		}
		r.hold(&v, c, &out)
		if v.Left == 0 {
			out.Cost = tick.Times(out.Cost, r.Nodes)
			return out
		}
	}
	out.Missed, out.Cost = true, tick.Times(out.Cost, r.Nodes)
	return out
}

// learn counts a loss of a job on several machines.
func (r *Run) learn(gangs policy.Gangs, v *zonechoice.View) policy.Gangs {
	if r.Nodes < 2 {
		return gangs
	}
	lost := r.Nodes
	if r.Traces[v.Zone].Up[v.Tick] {
		lost = bits.OnesCount16(r.AloneAt(v.Zone, v.Tick))
	}
	gangs = gangs.See(r.Nodes, lost)
	v.Losses = gangs.Times(r.Nodes, 0)
	return gangs
}

// fees bills the successful tries of a tick whose machine the policy did not rent.
func (r *Run) fees(v zonechoice.View, c zonechoice.Choice, polled []int, out *Outcome) {
	for _, z := range polled {
		if v.Seen[z] == zonechoice.Up && (c.Kind != zonechoice.Spot || c.Zone != z) {
			out.Fees = out.Fees.Add(v.Prices[z].Until(r.Job.Fee))
			out.Cost = out.Cost.Add(v.Prices[z].Until(r.Job.Fee))
		}
	}
}

// see probes zone z.
func (r *Run) see(v *zonechoice.View, z int) {
	up := r.Traces[z].Up[v.Tick]
	v.Seen[z] = zonechoice.Down
	if up {
		v.Seen[z] = zonechoice.Up
	}
	v.Past[z] = v.Past[z].See(v.Now, up)
}

// show fills v with what is visible at the start of its tick before any probe.
func (r *Run) show(v *zonechoice.View) {
	j := &r.Job
	v.Now = epoch.Add(time.Duration(v.Tick) * j.Tick)
	v.Lost = v.Held == zonechoice.Spot && (!r.Traces[v.Zone].Up[v.Tick] || r.AloneAt(v.Zone, v.Tick) != 0)
	for z, t := range r.Traces {
		v.Prices[z] = t.Price[v.Tick]
		v.Seen[z] = zonechoice.Unseen
		if !j.Looks || v.Held == zonechoice.Spot && v.Zone == z {
			r.see(v, z)
		}
	}
	if v.Lost {
		v.Held, v.Overhead = zonechoice.None, 0
	}
}

// hold rents or keeps c for the tick, bills it and counts the work.
func (r *Run) hold(v *zonechoice.View, c zonechoice.Choice, out *Outcome) {
	j := &r.Job
	if c.Kind == zonechoice.None {
		v.Held, v.Overhead = zonechoice.None, 0
		return
	}
	region := j.Zones[c.Zone].Region
	same := c.Kind == v.Held && (c.Zone == v.Zone || c.Kind == zonechoice.OnDemand && region == j.Zones[v.Zone].Region)
	if !same {
		v.Overhead = j.Restart
		out.Moves++
		if v.Home != "" && region != v.Home {
			v.Overhead += j.Transfer
			out.Cost = out.Cost.Add(j.Moving(v.Home, region))
			out.Carries++
		}
		v.Home = region
	}
	v.Held, v.Zone = c.Kind, c.Zone
	rate := j.Zones[c.Zone].OnDemand
	if c.Kind == zonechoice.Spot {
		rate = v.Prices[c.Zone]
	}
	out.Cost = out.Cost.Add(rate.Until(j.Tick))
	used := min(v.Overhead, j.Tick)
	v.Overhead -= used
	work := min(j.Tick-used, v.Left)
	v.Left -= work
	v.Done += work
}

// OnNodes is tick.OnNodes for runs over several zones.
func OnNodes(runs []Run, nodes int, alone bool) []Run {
	list := make([]Run, len(runs))
	for i, r := range runs {
		if r.Nodes = nodes; alone {
			r.Alone = make([]tick.Alone, len(r.Traces))
			for z, t := range r.Traces {
				r.Alone[z] = tick.Losses(fmt.Sprint(r.Job.Zones[z].Name, "/", r.Window), t.Up, nodes)
			}
		}
		list[i] = r
	}
	return list
}
