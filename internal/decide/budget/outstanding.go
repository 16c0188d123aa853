package budget

import (
	"container/heap"
	"maps"
	"math"
	"slices"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// Outstanding sums the unfinished jobs of a limit that hold no machine. What they hold does not change while they
// wait, so each job is added once, and removed when it starts or ends. The zero value is empty.
type Outstanding struct {
	jobs, awaiting int
	held           money.Amount
	// GPU time held, in whole hours plus milliseconds: integers, so that additions can be undone exactly, and two
	// of them, so that ten million jobs of maximum size do not overflow.
	hours, millis int64
	open, gpuOpen names
}

const millisAnHour = 3_600_000

// Add adds a job of the limit's scope.
func (s *Outstanding) Add(l Limit, j Job) { s.change(l, j, 1) }

// Remove removes a job, given as it was when added.
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

// Use returns what those jobs take from the limit.
func (s *Outstanding) Use() Use {
	millis := float64(s.hours)*millisAnHour + float64(s.millis)
	return Use{Jobs: s.jobs, AwaitingApproval: s.awaiting, Held: s.held, GPUHeld: millis / millisAnHour,
		Unbounded: s.open.least(), GPUOpen: s.gpuOpen.least()}
}

// names is a set that finds its smallest element quickly at any size: the first limit in dollars may find a million
// jobs with unknown maximum cost.
type names struct {
	all   map[string]bool
	order least // heap of all names, and of some removed since
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

// least returns the smallest name, or "" if there is none.
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

// Folded returns a with its jobs summed, so that many more jobs can be weighed one after the other.
func (a Accounts) Folded() Accounts {
	v := Accounts{Limits: a.Limits, Spent: a.Spent, GPUs: a.GPUs, Outstanding: map[string]Use{}}
	for _, l := range a.Limits {
		v.Outstanding[l.Name()] = a.Use(l)
	}
	return v
}

// Without returns a without a job that it counts as was.
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

// remove removes a waiting job.
func (u *Use) remove(j Job) {
	if j.AwaitsApproval {
		u.AwaitingApproval--
		return
	}
	u.Jobs -= j.counts()
	u.Held = u.Held.Sub(j.held())
	u.GPUHeld -= j.gpuHeld()
	if u.Unbounded == j.ID { // another one may remain: it was admitted before the limit was set
		u.Unbounded = ""
	}
	if u.GPUOpen == j.ID {
		u.GPUOpen = ""
	}
}

// Take counts an admitted job in folded accounts.
func (a Accounts) Take(j Job) {
	for _, l := range a.Limits {
		if l.Scope.Holds(j.Owner, j.User) {
			u := a.Outstanding[l.Name()]
			u.add(l, j)
			a.Outstanding[l.Name()] = u
		}
	}
}
