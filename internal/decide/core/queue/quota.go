package queue

import (
	"strings"
	"time"

	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/quota"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/quantity"
	"scrimp/money"
)

// SetQuotas applies the limits in force. Running jobs continue; waiting jobs move to the classes of the new quotas.
func (qs *Quotas) SetQuotas() {
	qs.era++
	qs.Quotas = nil
	if rules := qs.State.Rules(); rules != nil {
		for _, l := range rules.Limits {
			if !l.Queues() {
				continue
			}
			q := &quota.Quota{Limit: l, N: len(qs.Quotas), Cheapest: qs.cheapest, PassedFor: passedFor}
			if qs.Faults.Passes {
				q.PassedFor *= 1000
			}
			if l.Wait {
				q.Begin = l.Window.Begin(qs.Now())
				q.End, _ = l.Window.End(qs.Now())
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
	qs.orderByWork()
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
				q.Used = u.Gpus
			}
		}
	}
}

// ServedGPUs counts the GPU time of an ended task.
func (qs *Quotas) ServedGPUs(j *state.Job, k *state.Task, from, until time.Time) {
	for _, q := range qs.ClassOf(j).Quotas {
		if q.Wait {
			q.Used = quantity.Add(q.Used, quantity.Times(admission.Overlap(from, until, q.Begin), k.GPUs()))
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
	var quotas []*quota.Quota
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
		if q.Wait && !q.End.IsZero() && !qs.Now().Before(q.End) {
			q.Begin, q.Used = q.Window.Begin(qs.Now()), 0
			q.End, _ = q.Window.End(qs.Now())
			qs.Queue.loosen(q)
			qs.Queue.Changed()
		}
	}
}

// tallies sums what runs under each quota at t.
func (qs *Quotas) tallies(t time.Time) []quota.Tally {
	sums := make([]quota.Tally, len(qs.Quotas))
	for i, q := range qs.Quotas {
		sums[i].Past, sums[i].Hours = q.Used, q.Used
	}
	if len(sums) == 0 {
		return sums
	}
	for _, j := range qs.State.Running() {
		c := qs.ClassOf(j)
		if len(c.Quotas) == 0 {
			continue
		}
		gpus, all, rate := 0, j.GPUServed(), step.Burns(j)
		if a := j.Asked(); a != nil {
			gpus += a.Machine().GPUs * a.Nodes()
		}
		for _, a := range j.Open() {
			if a.Live() {
				kept, rateKept := qs.keeps(j, a)
				gpus, rate = gpus+a.GPUs()-kept, rate-rateKept
				all = quantity.Add(all, admission.GPUTime(a, t, time.Time{}))
			}
		}
		most, bounded := admission.GPUMost(j.Terms())
		for _, q := range c.Quotas {
			s := &sums[q.N]
			s.Running++
			s.GPUs += gpus
			s.Rate = quantity.Add(s.Rate, rate)
			if !q.Wait {
				continue
			}
			for _, a := range j.Open() {
				if a.Live() {
					used := admission.GPUTime(a, t, q.Begin)
					s.Past, s.Hours = quantity.Add(s.Past, used), quantity.Add(s.Hours, used)
				}
			}
			s.Hours = quantity.Add(s.Hours, max(0, most-all))
			if !bounded && (s.Open == "" || j.ID() < s.Open) {
				s.Open, s.OpenTeam = j.ID(), j.Terms().Owner.Team
			}
		}
	}
	qs.tallyIdle(sums)
	return sums
}

// sumUp returns the current tallies. They are kept until something starts or ends.
func (qs *Quotas) sumUp() []quota.Tally {
	if qs.Sums == nil {
		qs.Sums, qs.placed = qs.tallies(qs.Now()), false
	}
	return qs.Sums
}

// keeps returns how many of an attempt's GPUs the next attempt of its job, which is being requested, takes over, and
// what their machines cost an hour.
func (qs *Quotas) keeps(j *state.Job, a *state.Attempt) (gpus int, rate money.Rate) {
	if qs.Keeping != j {
		return 0, 0
	}
	for _, k := range qs.Keeps {
		if k.Attempt() == a {
			gpus, rate = gpus+k.GPUs(), quantity.Add(rate, k.Rate())
		}
	}
	return gpus, rate
}

// blocked is the answer of the quotas for a job.
type blocked struct {
	By    *quota.Quota // quota without room for it; nil: all have room
	keeps bool         // By reserves its room for the job, because nothing else blocks it
	Never bool         // there is no room in this window even if nothing runs
}

// Blocks returns a function that reports whether the quotas have room for a job.
func (qs *Quotas) Blocks() func(*state.Job) blocked { return qs.blocksBy(nil) }

// blocksBy is Blocks with the given sums, or with those of what runs now, which are computed when first needed.
func (qs *Quotas) blocksBy(sums []quota.Tally) func(*state.Job) blocked {
	return func(j *state.Job) (b blocked) {
		quotas := qs.ClassOf(j).Quotas
		if len(quotas) == 0 {
			return b
		}
		if sums == nil {
			sums = qs.sumUp()
		}
		for _, q := range quotas {
			if q.Lacks(&sums[q.N], j) == quota.HasRoom {
				continue
			}
			b.keeps = b.By == nil
			b.Never = b.Never || q.Lacks(&quota.Tally{Hours: sums[q.N].Past}, j) != quota.HasRoom && !q.Shut()
			b.By = q
		}
		return b
	}
}

// GPURoom is the largest number of GPUs that a machine for j may have; limited is false if there is no limit.
func (qs *Quotas) GPURoom(j *state.Job) (room int, limited bool) {
	for _, q := range qs.ClassOf(j).Quotas {
		if q.GPUs == nil {
			continue
		}
		free := *q.GPUs - qs.sumUp()[q.N].GPUs
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
