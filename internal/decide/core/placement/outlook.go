package placement

import (
	"cmp"
	"container/heap"
	"fmt"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/queue"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
)

// likely is the share of jobs that last no longer than the slow end of their course,
// and of those that last no less than the quick one.
const likely = 0.9

// Courses are how the jobs that hold a machine, and the most urgent of those that wait,
// are expected to go on from t, which is not before the last event; at most so many
// that wait. places is how many hold a machine at once, beyond says that more wait.
func (dc *Decider) Courses(t time.Time, most int) (list []budget.Course, places int, beyond bool) {
	for _, j := range dc.State.Running() {
		list = append(list, dc.courseOf(j, t))
	}
	for _, i := range dc.State.Waiting() {
		list = append(list, dc.idleCourse(i, t))
	}
	type price struct {
		rate  money.Rate
		speed float64
		ok    bool
	}
	prices := map[string]price{}
	waiting, beyond := dc.urgent(most)
	for _, j := range waiting {
		k := queue.EquivalenceOf(j.Terms().Need)
		if k == queue.Loose {
			k = fmt.Sprintf("%+v", j.Terms().Need)
		}
		p, known := prices[k]
		if !known {
			p.rate, p.speed, p.ok = dc.market.listings.Cheapest(&j.Terms().Need)
			prices[k] = p
		}
		list = append(list, waits(j, t, p.rate, p.speed, p.ok))
	}
	return list, dc.Config().MaxRunning, beyond
}

// idleCourse is how a machine that waits goes on: until it is given back, or as long as it is
// paid for anyway.
func (dc *Decider) idleCourse(i *state.Instance, t time.Time) budget.Course {
	idle, _ := i.Idle()
	v := dc.books.IdleJob(i, &idle, t)
	last := max(0, step.Later(dc.IdleUntil(i, &idle), dc.books.PaidUntil(i)).Sub(t))
	return budget.Course{ID: v.ID, Owner: v.Owner, User: v.User, Runs: true, Rate: i.PresentRate(), Lasts: last,
		Quick: last, Slow: last, Known: true, Rest: idle.Most.Sub(v.Spent), Bounded: true}
}

// urgent are the most urgent jobs that wait, in order, and whether there are others:
// also those that wait for the next window of a quota, and those for which the market has nothing.
func (dc *Decider) urgent(most int) (list []*state.Job, others bool) {
	var tops frontier
	for _, c := range dc.queue.Queue.Classes {
		for _, p := range c.Subqueues {
			for side, u := range p.Sides {
				switch {
				case len(u) == 0:
				case side == queue.OverQuota || p.Group.Equivalence.Unschedulable:
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
		of queue.Urgency
		at int
	}
	frontier []standing
)

func (f frontier) Len() int { return len(f) }

func (f frontier) Less(i, j int) bool { return queue.Before(f[i].of[f[i].at], f[j].of[f[j].at]) }

func (f frontier) Swap(i, j int) { f[i], f[j] = f[j], f[i] }

func (f *frontier) Push(x any) { *f = append(*f, x.(standing)) }

func (f *frontier) Pop() any {
	last := len(*f) - 1
	x := (*f)[last]
	*f = (*f)[:last]
	return x
}

// rest is a course without its time.
func restOf(j *state.Job, t time.Time) budget.Course {
	w := admission.Weighed(j.ID(), j.User(), j.Terms())
	return budget.Course{ID: j.ID(), Owner: w.Owner, User: w.User, GPUs: w.GPUs, Rest: w.Most.Sub(j.Spent(t)),
		Bounded: w.Bounded}
}

// courseOf is how a job that has a machine, or asks for one, goes on.
func (dc *Decider) courseOf(j *state.Job, t time.Time) budget.Course {
	c := restOf(j, t)
	c.Runs = true
	if asked := j.Asked(); asked != nil {
		c.GPUs, c.Rate = max(c.GPUs, asked.Machine().GPUs*asked.Nodes()), dc.rateOf(asked).Times(asked.Nodes())
		start := max(0, j.Restart()+asked.Transfer()-t.Sub(asked.Requested()))
		return expected(c, j, asked.Machine(), time.Time{}, start, t)
	}
	a := j.Live()
	if a == nil {
		return c
	}
	c.GPUs, c.Rate = max(c.GPUs, a.GPUs()), a.Rate()
	if !a.Until().IsZero() || a.Task() == state.Ended || a.Draining() && j.Ending() != "" {
		c.Known = true // it is being given back
		return c
	}
	if a.Started().IsZero() {
		start := max(0, j.Restart()+a.Transfer()-t.Sub(a.Requested()))
		return expected(c, j, a.Machine(), time.Time{}, start, t)
	}
	return expected(c, j, a.Machine(), a.Kept(), 0, t)
}

// expected is a course on a machine, on which work is done since kept, if at all, and
// begins after start.
func expected(c budget.Course, j *state.Job, on *state.Machine, kept time.Time, start time.Duration,
	t time.Time) budget.Course {
	left, doubt, known := remains(j, on.Speed, kept, t)
	if c.Known = known; !known {
		return c
	}
	c.Quick, c.Lasts, c.Slow = start+max(0, left-doubt), start+left, start+left+doubt
	// What the plan expects it to cost may be more than the time at this price: of
	// interruptions, and of going on-demand before it is late.
	if d, ok := c.Rate.Buys(expectedRest(j, on.Capacity, t)); ok {
		c.Lasts, c.Slow = max(c.Lasts, d), max(c.Slow, quantity.Add(d, doubt))
	}
	return c
}

// remains is how long the job still takes on its machine, counted from its newest step
// and not from its checkpoint, and how much longer or shorter it may be; false where
// nobody can say: also of one that goes on past what was said of it.
func remains(j *state.Job, speed float64, kept, t time.Time) (left, doubt time.Duration, ok bool) {
	speed = cmp.Or(max(speed, 0), 1)
	switch {
	case j.Total() > 0 && j.StepRate() > 0:
		if j.Step() >= j.Total() {
			return 0, 0, true // its program is about to end
		}
		hours := float64(j.Total()-j.Step()) / j.StepRate() / speed
		left = quantity.Hours(hours)
	case j.Terms().Work > 0:
		work := j.Terms().Work - j.SavedWork()
		if j.Total() > 0 {
			work = state.Share(j.Terms().Work, max(0, j.Total()-j.SavedStep()), j.Total())
		}
		left = quantity.Over(work, speed)
		if !kept.IsZero() {
			left -= max(0, t.Sub(kept))
		}
		if left <= 0 {
			return 0, 0, false
		}
	default:
		return 0, 0, false
	}
	if j.Pace().Looks >= 1 && j.StepRate() > 0 {
		return left, j.Margin(left, likely), true
	}
	return left, left / 2, true // its length is somebody's word: half again, as in budget.Bound
}

// expectedRest is what the newest decision expected of what the job has taken, less
// what it has cost since; nothing where it said nothing.
func expectedRest(j *state.Job, on market.Capacity, t time.Time) (rest money.Amount) {
	e := j.Last().Expect
	if e == nil || j.Decided().IsZero() {
		return rest
	}
	usd := e.OnDemand
	if on == market.Spot {
		usd = e.Spot
	}
	if usd == nil {
		return rest
	}
	all, ok := money.Estimated(*usd)
	if !ok {
		return rest
	}
	a, since := j.Live(), j.Decided()
	if a == nil {
		return all
	}
	if since.Before(a.From()) {
		since = a.From()
	}
	return all.Sub(a.Cost(t).Sub(a.Cost(since)))
}

// waits is how a job that waits goes on once its turn has come, on a machine that does
// its work for the least money, or on any that is for sale then.
func waits(j *state.Job, t time.Time, rate money.Rate, speed float64, sold bool) budget.Course {
	c := restOf(j, t)
	if !sold {
		return c // nothing for sale fits: nobody knows when and at what price it begins
	}
	c.Rate = rate.Times(j.Terms().Most())
	left, _, ok := j.Left(speed)
	if !ok {
		return c
	}
	c.Known = true
	start, doubt := j.Restart(), left/2
	if j.Pace().Looks >= 1 && j.StepRate() > 0 {
		doubt = j.Margin(left, likely)
	}
	c.Quick, c.Lasts, c.Slow = start+max(0, left-doubt), start+left, start+left+doubt
	if e := j.Last().Expect; e != nil {
		best := plan.Least(e)
		if a, ok := money.Estimated(best); ok && best >= 0 {
			if d, ok := c.Rate.Buys(a); ok {
				c.Lasts, c.Slow = max(c.Lasts, d), max(c.Slow, quantity.Add(d, doubt))
			}
		}
	}
	return c
}
