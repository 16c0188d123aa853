package budget

import (
	"container/heap"
	"maps"
	"math"
	"slices"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// Outstanding sums the jobs of a limit that are not over and hold no machine: what they
// hold does not change while they wait, so that each is added once, and taken out
// when it begins or is over. The zero value has none.
type Outstanding struct {
	jobs, awaiting int
	held           money.Amount
	// GPU time held, in whole hours and milliseconds besides: whole, so that what was added can be taken
	// out exactly, and apart, so that ten million jobs of the most hours add up.
	hours, millis int64
	open, gpuOpen names
}

const millisAnHour = 3_600_000

// Add adds a job of the limit's scope.
func (s *Outstanding) Add(l Limit, j Job) { s.change(l, j, 1) }

// Remove takes out a job as it was when it was added.
func (s *Outstanding) Remove(l Limit, j Job) { s.change(l, j, -1) }

func (s *Outstanding) change(l Limit, j Job, by int) {
	if j.AwaitsApproval {
		s.awaiting += by
		return
	}
	s.jobs += by * j.counts()
	held, millis := j.held(), quantity.Int(math.Round(j.gpuHeld()*millisAnHour))
	if by > 0 {
		s.held = s.held.Add(held)
	} else {
		s.held, millis = s.held.Sub(held), -millis
	}
	s.hours, s.millis = s.hours+millis/millisAnHour, s.millis+millis%millisAnHour
	if !j.Bounded && l.Dollars != nil {
		s.open.change(j.ID, by)
	}
	if !j.GPUBounded && l.GPUHours != nil {
		s.gpuOpen.change(j.ID, by)
	}
}

// Use is what those jobs take of the limit.
func (s *Outstanding) Use() Use {
	millis := float64(s.hours)*millisAnHour + float64(s.millis)
	return Use{Jobs: s.jobs, AwaitingApproval: s.awaiting, Held: s.held, GPUHeld: millis / millisAnHour,
		Unbounded: s.open.least(), GPUOpen: s.gpuOpen.least()}
}

// names is a set that knows its least, of a million as of one: who sets the first
// limit of dollars may find a million jobs of which nobody knows the most.
type names struct {
	all   map[string]bool
	order least // those of all, and some that were taken out since
}

func (n *names) change(name string, by int) {
	if by > 0 {
		if n.all == nil {
			n.all = map[string]bool{}
		}
		n.all[name] = true
		heap.Push(&n.order, name)
		if len(n.order) > 2*len(n.all)+16 {
			n.order = n.order[:0]
			for name := range n.all {
				n.order = append(n.order, name)
			}
			heap.Init(&n.order)
		}
		return
	}
	delete(n.all, name)
	for len(n.order) > 0 && !n.all[n.order[0]] {
		heap.Pop(&n.order)
	}
}

// least is "" where there is none.
func (n *names) least() string {
	if len(n.order) == 0 {
		return ""
	}
	return n.order[0]
}

type least []string

func (l least) Len() int           { return len(l) }
func (l least) Less(i, j int) bool { return l[i] < l[j] }
func (l least) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *least) Push(x any)        { *l = append(*l, x.(string)) }
func (l *least) Pop() any {
	last := len(*l) - 1
	name := (*l)[last]
	*l = (*l)[:last]
	return name
}

// Folded is a with its jobs summed, so that many more can be weighed one after the other.
func (a Accounts) Folded() Accounts {
	v := Accounts{Limits: a.Limits, Spent: a.Spent, GPUs: a.GPUs, Outstanding: map[string]Use{}}
	for _, l := range a.Limits {
		v.Outstanding[l.Name()] = a.Use(l)
	}
	return v
}

// Without is a without a job that it counts as was.
func (a Accounts) Without(was Job) Accounts {
	if i := slices.IndexFunc(a.Live, func(j Job) bool { return j.ID == was.ID }); i >= 0 {
		a.Live = slices.Delete(slices.Clone(a.Live), i, i+1)
		return a
	}
	a.Outstanding = maps.Clone(a.Outstanding)
	for _, l := range a.Limits {
		if l.Scope.Holds(was.Owner, was.User) {
			u := a.Outstanding[l.Name()]
			u.remove(was)
			a.Outstanding[l.Name()] = u
		}
	}
	return a
}

// remove takes out a job that waits.
func (u *Use) remove(j Job) {
	if j.AwaitsApproval {
		u.AwaitingApproval--
		return
	}
	u.Jobs -= j.counts()
	u.Held = u.Held.Sub(j.held())
	u.GPUHeld -= j.gpuHeld()
	if u.Unbounded == j.ID { // another one may be there: it was let in before the limit was set
		u.Unbounded = ""
	}
	if u.GPUOpen == j.ID {
		u.GPUOpen = ""
	}
}

// Take counts a job that is let in, in accounts that are folded.
func (a Accounts) Take(j Job) {
	for _, l := range a.Limits {
		if l.Scope.Holds(j.Owner, j.User) {
			u := a.Outstanding[l.Name()]
			u.add(l, j)
			a.Outstanding[l.Name()] = u
		}
	}
}
