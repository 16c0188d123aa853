package queue

import (
	"slices"
	"time"

	"scrimp/internal/decide/core/quota"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
)

// Room reports whether one more job may hold a machine.
func (qs *Quotas) Room() bool {
	_, _, full := qs.Full()
	return !full && !qs.State.Undecided()
}

// Full returns how many jobs hold machines, how many may, and whether the maximum is reached. In that case no
// waiting job is tried.
func (qs *Quotas) Full() (running, most int, full bool) {
	running, most = len(qs.State.Running()), qs.Config().MaxRunning
	return running, most, running >= most
}

// Waits explains in a sentence which quota a job waits for. ok is false if it waits for none. A job also waits if a
// quota reserves its room for a more urgent one.
func (qs *Quotas) Waits(j *state.Job) (limit, detail string, ok bool) {
	if j.State() != state.Queued || !At(j).Waits {
		return "", "", false
	}
	if detail, ok = qs.whyShare(j); ok {
		return "the share of team " + j.Terms().Owner.Team, detail, true
	}
	if len(qs.ClassOf(j).Quotas) == 0 {
		return "", "", false
	}
	sums := qs.tallies(qs.Now())
	own := qs.ClassOf(j)
	mine := own.Quotas
	for _, q := range mine {
		if detail = q.Why(&sums[q.N], j); detail != "" {
			return q.Name(), detail, true
		}
	}
	blocks := qs.blocksBy(sums)
	for _, c := range qs.Queue.Classes {
		if !slices.ContainsFunc(mine, func(q *quota.Quota) bool { return slices.Contains(c.Quotas, q) }) {
			continue
		}
		for other := range c.upTo(j, step.Tries) {
			if b := blocks(other); b.By != nil && !b.Never && (b.keeps || c == own) && slices.Contains(mine, b.By) {
				if other.Terms().Owner.Team != j.Terms().Owner.Team { // whose submitter need not know of that job
					return b.By.Name(), b.By.Name() + " keeps its room for a job of another team, which is more urgent", true
				}
				return b.By.Name(), b.By.Why(&sums[b.By.N], other) + " (that is job " + other.ID() + ", which is more urgent)", true
			}
		}
	}
	return "", "", false
}

// Waiting counts the jobs that wait for a quota, by limit. Limits that no job waits for are present with 0. Each
// job counts once, for the first quota by name without room.
func (qs *Quotas) Waiting() map[string]int {
	sums, counts := qs.tallies(qs.Now()), map[string]int{}
	for _, q := range qs.Quotas {
		counts[q.Name()] = 0
	}
	for _, c := range qs.Queue.Classes {
		for side := range OverQuota + 1 {
			n, j := 0, (*state.Job)(nil)
			for _, p := range c.Subqueues {
				if u := p.Sides[side]; len(u) > 0 {
					if n += len(u); j == nil || Before(u[0], j) {
						j = u[0]
					}
				}
			}
			for _, q := range c.Quotas {
				if j != nil && q.Lacks(&sums[q.N], j) != quota.HasRoom {
					counts[q.Name()] += n
					break
				}
			}
		}
	}
	return counts
}

// WakeForQuotas is when the next window opens that jobs may wait for, or when a deadline needs a job to start that
// waits behind other teams; zero: neither.
func (qs *Quotas) WakeForQuotas() time.Time {
	var at time.Time
	for _, q := range qs.Quotas {
		if q.Wait && !q.End.IsZero() && (at.IsZero() || q.End.Before(at)) {
			at = q.End
		}
	}
	if qs.Queue.Len() == 0 {
		return time.Time{}
	}
	if press := qs.Queue.nextPress(); at.IsZero() || !press.IsZero() && press.Before(at) {
		at = press
	}
	return at
}
