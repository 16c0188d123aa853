package queue

import (
	"strings"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/quantity"
)

// Quota is a limit that the queue keeps: on what runs at once, or on GPU-hours that a job waits for until the next
// window.
type Quota struct {
	budget.Limit
	begin, end time.Time     // current window, if jobs wait for GPU-hours
	used       time.Duration // GPU time in it of attempts that have ended
	n          int           // its index among the quotas
}

// Tally is what runs under a quota.
type Tally struct {
	running, gpus int
	past          time.Duration // used in the window
	hours         time.Duration // past, plus what is held for running jobs
	open          string        // a running job with unknown maximum GPU-hours
	openTeam      string        // the team of that job
}

// SetQuotas applies the limits in force. Running jobs continue; waiting jobs move to the classes of the new quotas.
func (qs *Quotas) SetQuotas() {
	qs.era++
	qs.Quotas = nil
	if rules := qs.State.Rules(); rules != nil {
		for _, l := range rules.Limits {
			if !l.Queues() {
				continue
			}
			q := &Quota{Limit: l, n: len(qs.Quotas)}
			if l.Wait {
				q.begin = l.Window.Begin(qs.Now())
				q.end, _ = l.Window.End(qs.Now())
			}
			qs.Quotas = append(qs.Quotas, q)
		}
	}
	qs.admission.SumLimits()
	qs.regroup()
	for _, j := range qs.State.Running() {
		qs.ClassOf(j)
	}
	qs.shareAmongTeams()
	qs.Recount()
	qs.Queue.Changed()
}

// regroup moves waiting jobs into the classes of the new quotas: each group as a whole, loose jobs one by one.
func (qs *Quotas) regroup() {
	old := qs.Queue.Classes
	qs.Queue.Classes = nil
	for _, c := range old {
		for _, p := range c.Subqueues {
			sides := p.Sides
			if p.Sides[OverQuota] = nil; p.Group.loose() {
				p.Sides = [3]Urgency{}
			}
			for side, u := range sides {
				if !p.Group.loose() && side != OverQuota {
					continue
				}
				qs.Queue.waiting -= len(u)
				for _, j := range u {
					At(j).Subqueue = nil
				}
			}
			if !p.Group.loose() {
				qs.moveSubqueue(p, sides[OverQuota])
			}
			for side, u := range sides {
				for _, j := range u {
					switch {
					case side == OverQuota:
						qs.ClassOf(j)
						qs.Queue.Add(j)
					case p.Group.loose():
						qs.ClassOf(j)
						qs.Queue.seat(j, side)
					}
				}
			}
		}
	}
}

// moveSubqueue moves a subqueue to its current class. If it is empty, the jobs that were over quota in it determine
// that class.
func (qs *Quotas) moveSubqueue(p *subqueue, others Urgency) {
	for _, u := range [...]Urgency{p.Sides[0], p.Sides[1], others} {
		if len(u) > 0 {
			p.move(qs.ClassBy(u[0]))
			return
		}
	}
}

// Recount copies from the limits' usage what ended attempts have used in the current windows.
func (qs *Quotas) Recount() {
	for _, q := range qs.Quotas {
		for _, u := range qs.admission.Usage {
			if q.Wait && u.Name() == q.Name() {
				q.used = u.Gpus
			}
		}
	}
}

// ServedGPUs counts the GPU time of an ended task.
func (qs *Quotas) ServedGPUs(j *state.Job, k *state.Task, from, until time.Time) {
	for _, q := range qs.ClassOf(j).Quotas {
		if q.Wait {
			q.used = quantity.Add(q.used, quantity.Times(admission.Overlap(from, until, q.begin), k.GPUs()))
		}
	}
}

// ClassOf returns the class of the quotas that j is under now.
func (qs *Quotas) ClassOf(j *state.Job) *class {
	if p := At(j).Subqueue; p != nil {
		return p.Class
	}
	if c := At(j).class; c == nil || c.era != qs.era {
		At(j).class = qs.ClassBy(j)
	}
	return At(j).class
}

// ClassBy returns the class of the quotas whose scope contains j.
func (qs *Quotas) ClassBy(j *state.Job) *class {
	var key strings.Builder
	var quotas []*Quota
	for _, q := range qs.Quotas {
		if q.Scope.Holds(j.Terms().Owner, j.User()) {
			quotas = append(quotas, q)
			key.WriteString(q.Name() + "\n")
		}
	}
	return qs.Queue.class(key.String(), quotas, qs.era)
}

// OpenWindows opens the windows that are due.
func (qs *Quotas) OpenWindows() {
	qs.admission.OpenLimitWindows()
	for _, q := range qs.Quotas {
		if q.Wait && !q.end.IsZero() && !qs.Now().Before(q.end) {
			q.begin, q.used = q.Window.Begin(qs.Now()), 0
			q.end, _ = q.Window.End(qs.Now())
			qs.Queue.loosen(q)
			qs.Queue.Changed()
		}
	}
}

// tallies sums what runs under each quota at t.
func (qs *Quotas) tallies(t time.Time) []Tally {
	sums := make([]Tally, len(qs.Quotas))
	for i, q := range qs.Quotas {
		sums[i].past, sums[i].hours = q.used, q.used
	}
	if len(sums) == 0 {
		return sums
	}
	for _, j := range qs.State.Running() {
		c := qs.ClassOf(j)
		if len(c.Quotas) == 0 {
			continue
		}
		gpus, all := 0, j.GPUServed()
		if a := j.Asked(); a != nil {
			gpus += a.Machine().GPUs * a.Nodes()
		}
		for _, a := range j.Open() {
			if a.Live() {
				gpus += a.GPUs() - qs.keepsGPUs(j, a)
				all = quantity.Add(all, admission.GPUTime(a, t, time.Time{}))
			}
		}
		most, bounded := admission.GPUMost(j.Terms())
		for _, q := range c.Quotas {
			s := &sums[q.n]
			s.running++
			s.gpus += gpus
			if !q.Wait {
				continue
			}
			for _, a := range j.Open() {
				if a.Live() {
					used := admission.GPUTime(a, t, q.begin)
					s.past, s.hours = quantity.Add(s.past, used), quantity.Add(s.hours, used)
				}
			}
			s.hours = quantity.Add(s.hours, max(0, most-all))
			if !bounded && (s.open == "" || j.ID() < s.open) {
				s.open, s.openTeam = j.ID(), j.Terms().Owner.Team
			}
		}
	}
	return sums
}

// sumUp returns the current tallies. They are kept until something starts or ends.
func (qs *Quotas) sumUp() []Tally {
	if qs.Sums == nil {
		qs.Sums, qs.placed = qs.tallies(qs.Now()), false
	}
	return qs.Sums
}

// keepsGPUs is how many of an attempt's GPUs the next attempt of its job, which is being requested, takes over.
func (qs *Quotas) keepsGPUs(j *state.Job, a *state.Attempt) (n int) {
	if qs.Keeping != j {
		return 0
	}
	for _, k := range qs.Keeps {
		if k.Attempt() == a {
			n += k.GPUs()
		}
	}
	return n
}

// blocked is the answer of the quotas for a job.
type blocked struct {
	By    *Quota // quota without room for it; nil: all have room
	keeps bool   // By reserves its room for the job, because nothing else blocks it
	Never bool   // there is no room in this window even if nothing runs
}

// Blocks returns a function that reports whether the quotas have room for a job.
func (qs *Quotas) Blocks() func(*state.Job) blocked { return qs.blocksBy(nil) }

// blocksBy is Blocks with the given sums, or with those of what runs now, which are computed when first needed.
func (qs *Quotas) blocksBy(sums []Tally) func(*state.Job) blocked {
	return func(j *state.Job) (b blocked) {
		quotas := qs.ClassOf(j).Quotas
		if len(quotas) == 0 {
			return b
		}
		if sums == nil {
			sums = qs.sumUp()
		}
		for _, q := range quotas {
			if q.lacks(&sums[q.n], j) == hasRoom {
				continue
			}
			b.keeps = b.By == nil
			b.Never = b.Never || q.lacks(&Tally{hours: sums[q.n].past}, j) != hasRoom && !q.shut()
			b.By = q
		}
		return b
	}
}

// shut reports whether nothing may start at all.
func (q *Quota) shut() bool { return q.Running != nil && *q.Running == 0 }

// want is the shortage of a quota for a job.
type want int

const (
	hasRoom want = iota
	wantsPlace
	wantsGPUs
	wantsHours
	wantsMost      // the job's maximum GPU-hours are unknown
	wantsOtherMost // those of a running job are unknown
)

// lacks returns what the quota has too little of for j. A job that requests a machine, or whose last one is still
// being terminated, counts as running, but not against itself.
func (q *Quota) lacks(s *Tally, j *state.Job) want {
	running, gpus := s.running, s.gpus
	if asked := j.Asked(); asked != nil {
		gpus -= asked.Machine().GPUs * asked.Nodes()
	}
	serves := j.Holds() && running > 0
	if serves {
		running--
	}
	least := admission.LeastGPUs(j.Terms())
	switch {
	case q.Running != nil && running >= *q.Running:
		return wantsPlace
	case q.GPUs != nil && gpus+least > *q.GPUs && least > 0:
		return wantsGPUs
	case !q.Wait || q.GPUHours == nil:
		return hasRoom
	}
	return q.lacksHours(s, j, serves)
}

// lacksHours returns what a quota of GPU-hours lacks for j: room for all that the job may still use, unless the job
// already runs and the tally includes its hours.
func (q *Quota) lacksHours(s *Tally, j *state.Job, serves bool) want {
	most, bounded := admission.GPUMost(j.Terms())
	rest := time.Duration(0)
	if !serves {
		rest = max(0, most-j.GPUServed())
	}
	switch {
	case most == 0 && bounded:
		return hasRoom
	case !bounded:
		return wantsMost
	case s.open != "" && s.open != j.ID():
		return wantsOtherMost
	case quantity.Add(s.hours, rest) > quantity.GPUTime(*q.GPUHours):
		return wantsHours
	}
	return hasRoom
}

// GPURoom is the largest number of GPUs that a machine for j may have; limited is false if there is no limit.
func (qs *Quotas) GPURoom(j *state.Job) (room int, limited bool) {
	for _, q := range qs.ClassOf(j).Quotas {
		if q.GPUs == nil {
			continue
		}
		free := *q.GPUs - qs.sumUp()[q.n].gpus
		switch a, asked := j.Live(), j.Asked(); {
		case asked != nil:
			free += asked.Machine().GPUs * asked.Nodes()
		case a != nil && j.State() == state.Running:
			free += a.GPUs() // that machine is terminated before the next one starts
		}
		if !limited || free < room {
			room, limited = max(0, free), true
		}
	}
	return room, limited
}
