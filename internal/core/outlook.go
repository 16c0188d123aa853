package core

import (
	"cmp"
	"container/heap"
	"fmt"
	"time"

	"scrimp/internal/budget"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/plan"
)

// likely is the share of jobs that last no longer than the slow end of their course,
// and of those that last no less than the quick one.
const likely = 0.9

// Courses are how the jobs that hold a machine, and the most urgent of those that wait,
// are expected to go on from t, which is not before the last event; at most so many
// that wait. places is how many hold a machine at once, beyond says that more wait.
func (m *Machine) Courses(t time.Time, most int) (list []budget.Course, places int, beyond bool) {
	for _, j := range m.running {
		list = append(list, m.courseOf(j, t))
	}
	type price struct {
		rate  money.Rate
		speed float64
		ok    bool
	}
	prices := map[string]price{}
	waiting, beyond := m.urgent(most)
	for _, j := range waiting {
		k := kindOf(j.Terms.Need)
		if k == loose {
			k = fmt.Sprintf("%+v", j.Terms.Need)
		}
		p, known := prices[k]
		if !known {
			p.rate, p.speed, p.ok = m.listings.Cheapest(&j.Terms.Need)
			prices[k] = p
		}
		list = append(list, waits(j, t, p.rate, p.speed, p.ok))
	}
	return list, m.cfg.MaxRunning, beyond
}

// urgent are the most urgent jobs that wait, in order, and whether there are others:
// also those that wait for the next window of a quota, and those for which the market has nothing.
func (m *Machine) urgent(most int) (list []*Job, others bool) {
	var tops frontier
	for _, c := range m.queue.classes {
		for _, p := range c.piles {
			for side, u := range p.sides {
				switch {
				case len(u) == 0:
				case side == stuck || p.group.kind.barren:
					others = true
				default:
					tops = append(tops, standing{u, 0})
				}
			}
		}
	}
	heap.Init(&tops)
	for len(tops) > 0 && len(list) < most {
		s := heap.Pop(&tops).(standing)
		list = append(list, s.of[s.at])
		for _, below := range []int{2*s.at + 1, 2*s.at + 2} {
			if below < len(s.of) {
				heap.Push(&tops, standing{s.of, below})
			}
		}
	}
	return list, others || len(tops) > 0
}

// standing is a job in a heap of those that wait; frontier are those of which no more
// urgent one is left.
type (
	standing struct {
		of urgency
		at int
	}
	frontier []standing
)

func (f frontier) Len() int           { return len(f) }
func (f frontier) Less(i, j int) bool { return before(f[i].of[f[i].at], f[j].of[f[j].at]) }
func (f frontier) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *frontier) Push(x any)        { *f = append(*f, x.(standing)) }
func (f *frontier) Pop() any {
	last := len(*f) - 1
	x := (*f)[last]
	*f = (*f)[:last]
	return x
}

// rest is a course without its time.
func (j *Job) rest(t time.Time) budget.Course {
	w := Weighed(j.ID, j.User(), j.Terms)
	return budget.Course{ID: j.ID, Owner: w.Owner, User: w.User, GPUs: w.GPUs, Rest: w.Most.Sub(j.Spent(t)), Bounded: w.Bounded}
}

// courseOf is how a job that has a machine, or asks for one, goes on.
func (m *Machine) courseOf(j *Job, t time.Time) budget.Course {
	c, a := j.rest(t), j.live()
	c.Runs = true
	if a == nil {
		return c
	}
	c.GPUs = max(c.GPUs, a.GPUs)
	switch {
	case len(a.Rates) > 0:
		c.Rate = a.Rates[len(a.Rates)-1].Rate
	case m.offers[a.Offer] != nil: // it is asked for
		c.Rate = m.offers[a.Offer].Quote.Rate
	}
	if !a.Until.IsZero() || a.Phase == Leaving || a.Draining && j.Ending != "" {
		c.Known = true // it is being given back
		return c
	}
	left, doubt, known := j.remains(a, t)
	c.Known = known
	start := time.Duration(0)
	if a.Started.IsZero() {
		start = max(0, j.restart()+a.Transfer-t.Sub(a.Asked))
	}
	if !known {
		return c
	}
	c.Quick, c.Lasts, c.Slow = start+max(0, left-doubt), start+left, start+left+doubt
	// What the plan expects it to cost may be more than the time at this price: of
	// machines that are taken, and of going on-demand before it is late.
	if d, ok := c.Rate.Buys(expectedRest(j, a, t)); ok {
		c.Lasts, c.Slow = max(c.Lasts, d), max(c.Slow, d+doubt)
	}
	return c
}

// remains is how long the job still takes on its machine, counted from its newest step
// and not from its checkpoint, and how much longer or shorter it may be; false where
// nobody can say: also of one that goes on past what was said of it.
func (j *Job) remains(a *Attempt, t time.Time) (left, doubt time.Duration, ok bool) {
	speed := cmp.Or(max(a.Speed, 0), 1)
	switch {
	case j.Total > 0 && j.StepRate > 0:
		if j.Step >= j.Total {
			return 0, 0, true // its program is about to end
		}
		hours := float64(j.Total-j.Step) / j.StepRate / speed
		left = time.Duration(min(hours, 1e6) * float64(time.Hour))
	case j.Terms.Work > 0:
		work := j.Terms.Work - j.SavedWork
		if j.Total > 0 {
			work = share(j.Terms.Work, max(0, j.Total-j.SavedStep), j.Total)
		}
		left = time.Duration(float64(work) / speed)
		if a.Phase == Working {
			left -= max(0, t.Sub(a.Kept))
		}
		if left <= 0 {
			return 0, 0, false
		}
	default:
		return 0, 0, false
	}
	if j.Pace.Looks >= 1 && j.StepRate > 0 {
		return left, j.Pace.Doubt(left, likely), true
	}
	return left, left / 2, true // its length is somebody's word: half again, as in budget.Bound
}

// expectedRest is what the newest decision expected of what the job has taken, less
// what it has cost since; nothing where it said nothing.
func expectedRest(j *Job, a *Attempt, t time.Time) (rest money.Amount) {
	e := j.Last.Expect
	if e == nil || j.Decided.IsZero() {
		return rest
	}
	usd := e.OnDemand
	if a.Capacity == market.Spot {
		usd = e.Spot
	}
	if usd == nil {
		return rest
	}
	all, ok := money.Estimated(*usd)
	if !ok {
		return rest
	}
	since := j.Decided
	if since.Before(a.From) {
		since = a.From
	}
	return all.Sub(a.Cost(t).Sub(a.Cost(since)))
}

// waits is how a job that waits goes on once its turn has come, on a machine that does
// its work for the least money, or on any that is for sale then.
func waits(j *Job, t time.Time, rate money.Rate, speed float64, sold bool) budget.Course {
	c := j.rest(t)
	if !sold {
		return c // nothing for sale fits: nobody knows when and at what price it begins
	}
	c.Rate = rate
	left, _, ok := j.Left(speed)
	if !ok {
		return c
	}
	c.Known = true
	start, doubt := j.restart(), left/2
	if j.Pace.Looks >= 1 && j.StepRate > 0 {
		doubt = j.Pace.Doubt(left, likely)
	}
	c.Quick, c.Lasts, c.Slow = start+max(0, left-doubt), start+left, start+left+doubt
	if e := j.Last.Expect; e != nil {
		best := plan.Least(e)
		if a, ok := money.Estimated(best); ok && best >= 0 {
			if d, ok := rate.Buys(a); ok {
				c.Lasts, c.Slow = max(c.Lasts, d), max(c.Slow, d+doubt)
			}
		}
	}
	return c
}
