package placement

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"scrimp/internal/decide/core/books"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// nodesOf is how many machines the job has, or is to have.
func (dc *Decider) nodesOf(j *state.Job) int {
	if a := j.Live(); a != nil && a.Task() != state.Ended && j.State() == state.Running {
		return a.Nodes()
	}
	if a := j.Asked(); a != nil {
		return a.Nodes()
	}
	return dc.Enough(j)
}

// Enough is the fewest machines with which the job's work takes no more than half of the time to
// its deadline, so that there is room for waits and moves; the fewest that it allows where it has
// no deadline or nobody knows its work, and the most where no number does. Its speed is taken
// to grow with the number.
func (dc *Decider) Enough(j *state.Job) int {
	least, most := j.Terms().Fewest(), j.Terms().Most()
	if least == most {
		return most
	}
	p := dc.Progress(j, 1)
	if p.Deadline.IsZero() || !p.Known {
		return least
	}
	room := p.Deadline.Sub(dc.Now())/2 - p.Restart
	return least + sort.Search(most-least, func(more int) bool {
		return float64(p.Left)*float64(most)/float64(least+more) <= float64(room)
	})
}

// Grows reports whether an elastic gang is ended for one of more machines: the work takes too
// long on those that it has, it has run for long enough to be worth another start, and nothing
// says that no more are to be had.
func (dc *Decider) Grows(j *state.Job, a *state.Attempt) bool {
	l := dc.State.Listing(a.Offer())
	if l == nil || !l.Quote().Available {
		return false
	}
	if _, cools := dc.State.Cooling(l); cools {
		return false
	}
	return a.Nodes() < j.Terms().Most() && a.Task() == state.TaskRunning && dc.Enough(j) > a.Nodes() &&
		dc.Now().Sub(a.Full()) >= restsBeforeGrowing*j.Restart()
}

// restsBeforeGrowing is for how many restarts a gang goes on before it is ended for a larger one.
const restsBeforeGrowing = 10

// ShareOf is how fast so many of the machines of a job are against all of them.
func ShareOf(t *state.Terms, nodes int) float64 {
	if nodes == t.Most() {
		return 1
	}
	return float64(nodes) / float64(t.Most())
}

// each turns a view of a job on several machines into that of one of them: prices are those of
// a machine, and so are budget and costs; its time is that of all together.
func each(v *plan.Job, t *state.Terms, nodes int) {
	if nodes == 1 && t.Most() == 1 {
		return
	}
	if s := ShareOf(t, nodes); s != 1 {
		longer := func(d time.Duration) time.Duration { return quantity.Over(d, s) }
		v.Progress.Left, v.Progress.Done, v.Progress.Margin = longer(v.Progress.Left), longer(v.Progress.Done),
			longer(v.Progress.Margin)
		v.Unsaved = longer(v.Unsaved)
	}
	v.Left, v.EgressCost = part(v.Left, nodes), part(v.EgressCost, nodes)
	v.Egress = slices.Clone(v.Egress)
	for i := range v.Egress {
		v.Egress[i].Cost = part(v.Egress[i].Cost, nodes)
	}
	v.DueElsewhere = part(v.DueElsewhere, nodes)
	v.GPURoom /= nodes
}

// part is a / n, cut off.
func part(a money.Amount, n int) money.Amount {
	return books.Portion(a, money.Picos(1), money.Picos(int64(n)))
}

// all turns a decision about one of several machines into that about all.
func all(d *plan.Decision, t *state.Terms, nodes int, left money.Amount) {
	if s := ShareOf(t, nodes); s != 1 {
		d.Speed = cmp.Or(max(d.Speed, 0), 1) * s
	}
	if nodes == 1 {
		return
	}
	d.Nodes = nodes
	if d.Budget != nil {
		b := *d.Budget
		b.Left, b.Needs = left, times(b.Needs, nodes)
		d.Budget = &b
	}
	if d.Expect != nil {
		e := *d.Expect
		for _, usd := range []**float64{&e.Spot, &e.OnDemand, &e.Wait} {
			if *usd != nil {
				sum := **usd * float64(nodes)
				*usd = &sum
			}
		}
		e.Zones = slices.Clone(e.Zones)
		for i := range e.Zones {
			if usd := e.Zones[i].USD; usd != nil {
				sum := *usd * float64(nodes)
				e.Zones[i].USD = &sum
			}
		}
		d.Expect = &e
	}
}

// times is a · n.
func times(a money.Amount, n int) (sum money.Amount) {
	for range n {
		sum = sum.Add(a)
	}
	return sum
}
