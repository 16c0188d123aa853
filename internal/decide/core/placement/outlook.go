package placement

import (
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

// Courses returns the expected courses, from t, of the jobs with a machine and of up to most of the most urgent
// waiting jobs. t must not be before the last event. places is the number of jobs that may hold a machine at once;
// beyond is set if more jobs wait.
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
	prices, running := map[string]price{}, len(list)
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
	if dc.queue.Shared() && len(waiting) > 1 {
		newTurns(dc.queue.Shares(t), list[:running], dc.Config().MaxRunning).sort(waiting, list[running:])
	}
	return list, dc.Config().MaxRunning, beyond
}

// idleCourse is the course of an idle machine: until it is terminated, or as long as it is paid for in any case.
func (dc *Decider) idleCourse(i *state.Instance, t time.Time) budget.Course {
	idle, _ := i.Idle()
	v := dc.books.IdleJob(i, &idle, t)
	last := max(0, step.Later(dc.IdleUntil(i, &idle), dc.books.PaidUntil(i)).Sub(t))
	return budget.Course{ID: v.ID, Owner: v.Owner, User: v.User, Runs: true, Rate: i.PresentRate(), Lasts: last,
		Quick: last, Slow: last, Known: true, Rest: idle.Most.Sub(v.Spent), Bounded: true}
}

// urgent returns the most urgent waiting jobs in order, and whether there are others, including those that wait for
// the next window of a quota and those that the market has nothing for.
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

// standing is a job in a heap of waiting jobs. A frontier has those standings whose more urgent jobs have all been
// taken.
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

// restOf returns a course without its times.
func restOf(j *state.Job, t time.Time) budget.Course {
	w := admission.Weighed(j.ID(), j.User(), j.Terms())
	return budget.Course{ID: j.ID(), Owner: w.Owner, User: w.User, GPUs: w.GPUs, Rest: w.Most.Sub(j.Spent(t)),
		Bounded: w.Bounded}
}

// courseOf returns the course of a job that has a machine or requests one.
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
		c.Known = true // it is being terminated
		return c
	}
	if a.Started().IsZero() {
		start := max(0, j.Restart()+a.Transfer()-t.Sub(a.Requested()))
		return expected(c, j, a.Machine(), time.Time{}, start, t)
	}
	return expected(c, j, a.Machine(), a.Kept(), 0, t)
}

// expected completes a course on a machine. Work on it has been done since kept, if that is set, and starts after
// start.
func expected(c budget.Course, j *state.Job, on *state.Machine, kept time.Time, start time.Duration,
	t time.Time) budget.Course {
	left, doubt, known := step.Remains(j, on.Speed, kept, t)
	if c.Known = known; !known {
		return c
	}
	c.Quick, c.Lasts, c.Slow = start+max(0, left-doubt), start+left, start+left+doubt
	// The plan may expect a higher cost than the time at this price, for interruptions and for going on-demand
	// before the job is late.
	if d, ok := c.Rate.Buys(expectedRest(j, on.Capacity, t)); ok {
		c.Lasts, c.Slow = max(c.Lasts, d), max(c.Slow, quantity.Add(d, doubt))
	}
	return c
}

// expectedRest is the expected cost in the newest decision for the job's present choice, less its cost since then; zero
// if there was none.
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

// waits is the course of a waiting job once its turn comes, on the machine for sale that does its work for the
// least money.
func waits(j *state.Job, t time.Time, rate money.Rate, speed float64, sold bool) budget.Course {
	c := restOf(j, t)
	if !sold {
		return c // nothing for sale fits, so its start and price are unknown
	}
	c.Rate = rate.Times(j.Terms().Most())
	left, _, ok := j.Left(speed)
	if !ok {
		return c
	}
	c.Known = true
	start, doubt := j.Restart(), left/2
	if j.Pace().Looks >= 1 && j.StepRate() > 0 {
		doubt = j.Margin(left, step.Likely)
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
