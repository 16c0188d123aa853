package plan

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// Enough returns the smallest number of machines, from least to most, with which the work takes at most half of the
// time to the deadline, which leaves room for waits and moves. It returns least if there is no deadline or the work
// is unknown, and most if no number suffices. p counts the work on most machines; speed is assumed to grow with the
// number.
func Enough(p policy.Progress, least, most int) int {
	if p.Deadline.IsZero() || !p.Known {
		return least
	}
	room := p.Deadline.Sub(p.Now)/2 - p.Restart
	return least + sort.Search(most-least, func(more int) bool {
		return float64(p.Left)*float64(most)/float64(least+more) <= float64(room)
	})
}

// restsBeforeGrowing is how many restarts a gang must run for before it may be ended for a larger one.
const restsBeforeGrowing = 10

// MayGrow reports whether a gang that ran for that long may be ended for a larger one.
func MayGrow(ran, restart time.Duration) bool { return ran >= restsBeforeGrowing*restart }

// ShareOf returns the speed of nodes machines relative to most machines.
func ShareOf(nodes, most int) float64 {
	if nodes == most {
		return 1
	}
	return float64(nodes) / float64(most)
}

// PerMachine converts a job on several machines into one on a single machine, because prices are per machine. It
// divides budget and costs; the time is that of all machines together.
func (job *Job) PerMachine(nodes, most int) {
	if nodes == 1 && most == 1 {
		return
	}
	if s := ShareOf(nodes, most); s != 1 {
		longer := func(d time.Duration) time.Duration { return quantity.Over(d, s) }
		job.Progress.Left, job.Progress.Done, job.Progress.Margin = longer(job.Progress.Left), longer(job.Progress.Done),
			longer(job.Progress.Margin)
		job.Unsaved = longer(job.Unsaved)
	}
	job.Left, job.EgressCost = part(job.Left, nodes), part(job.EgressCost, nodes)
	job.Egress = slices.Clone(job.Egress)
	for i := range job.Egress {
		job.Egress[i].Cost = part(job.Egress[i].Cost, nodes)
	}
	job.DueElsewhere = part(job.DueElsewhere, nodes)
	job.GPURoom /= nodes
	job.RateRoom /= money.Rate(nodes)
}

// part returns a / n, rounded down.
func part(a money.Amount, n int) money.Amount {
	return money.Portion(a, money.Picos(1), money.Picos(int64(n)))
}

// ForAll converts a decision about one of several machines into one about all. left is what the job's budget has
// left.
func (d *Decision) ForAll(nodes, most int, left money.Amount) {
	if s := ShareOf(nodes, most); s != 1 {
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

// times returns a · n.
func times(a money.Amount, n int) (sum money.Amount) {
	for range n {
		sum = sum.Add(a)
	}
	return sum
}
