package queue

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/fair"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/quantity"
)

// shareAmongTeams applies the rules in force about the shares of teams. If teams begin to share the queue, or cease
// to, it looks at every queued job once.
func (qs *Quotas) shareAmongTeams() {
	was := qs.Queue.shares != nil
	qs.Sums, qs.shares, qs.Queue.shares = nil, nil, nil
	qs.held, qs.touched = nil, nil
	if r := qs.State.Rules(); r != nil && r.Fair != nil {
		qs.Queue.shares = qs.sharesNow
	}
	if qs.Queue.shares != nil != was {
		qs.Queue.now = qs.Now()
		qs.Queue.pressAll()
	}
}

// sharesNow returns the places of the teams now. They are kept until something starts or ends.
func (qs *Quotas) sharesNow() *fair.Shares {
	qs.sumUp()
	if qs.shares == nil {
		s := qs.Shares(qs.Now())
		qs.shares = &s
	}
	return qs.shares
}

// Shared reports whether teams share the queue.
func (qs *Quotas) Shared() bool { return qs.Queue.shares != nil }

// Shares returns the places of the teams at t, which must not be before the last event. It must not be called unless
// teams share the queue.
func (qs *Quotas) Shares(t time.Time) fair.Shares {
	uses := map[string]*fair.Use{}
	of := func(team string) *fair.Use {
		key := fair.Key(team)
		if uses[key] == nil {
			uses[key] = &fair.Use{}
		}
		uses[key].Spelled = cmp.Or(uses[key].Spelled, team)
		return uses[key]
	}
	held := qs.sumHeld()
	for _, team := range slices.Sorted(maps.Keys(held)) { // in order, since the first spelling of a name counts
		u, sum := of(team), held[team]
		u.Running, u.Burn, u.Held = u.Running+sum.Running, quantity.Add(u.Burn, sum.Burn), u.Held.Add(sum.Held)
	}
	for _, i := range qs.State.Waiting() {
		if idle, ok := i.Idle(); ok {
			u := of(idle.Owner.Team)
			u.Burn = quantity.Add(u.Burn, i.PresentRate())
			u.Held = u.Held.Add(i.Cost(t).Sub(i.Posted()))
		}
	}
	for _, c := range qs.Queue.Classes {
		for _, p := range c.Subqueues {
			for _, u := range p.Sides {
				if len(u) > 0 {
					of(u[0].Terms().Owner.Team).Waits = true
				}
			}
		}
	}
	for key, spent := range qs.State.SpentByTeam(t) {
		of(key).Spent = spent
	}
	rules := qs.State.Rules().Fair
	if qs.Faults.Flat {
		rules = fair.Clone(rules)
		for i := range rules.Teams {
			rules.Teams[i].Weight = fair.DefaultWeight
		}
	}
	return fair.NewShares(rules, uses)
}

// mostTouched is the number of changed jobs after which all that hold a machine are summed anew.
const mostTouched = 4096

// Touch must be called before a job changes: its team's sum is then computed again.
func (qs *Quotas) Touch(j *state.Job) {
	if !qs.Shared() || qs.held == nil {
		return
	}
	if qs.touched = append(qs.touched, j); len(qs.touched) > mostTouched {
		qs.held, qs.touched = nil, nil
	}
}

// sumHeld returns what the jobs of each team hold or request now.
func (qs *Quotas) sumHeld() map[string]*fair.Use {
	jobs, anew := qs.touched, qs.held == nil
	if anew {
		qs.held, jobs = map[string]*fair.Use{}, qs.State.Running()
	}
	for _, j := range jobs {
		qs.holds(j, anew)
	}
	// A job of this event may change again without another call of Touch, because it is in the list already.
	qs.touched = slices.DeleteFunc(qs.touched, func(j *state.Job) bool { return j.Changed() != qs.State.Seq() })
	return qs.held
}

// holds replaces what a job adds to the sum of its team. anew is set if the sum has nothing of it.
func (qs *Quotas) holds(j *state.Job, anew bool) {
	x := At(j).sharing
	if x == nil && !j.Holds() {
		return
	}
	x = At(j).share()
	u := qs.held[j.Terms().Owner.Team]
	if u == nil {
		u = &fair.Use{}
		qs.held[j.Terms().Owner.Team] = u
	}
	if x.counted && !anew {
		u.Running, u.Burn, u.Held = u.Running-1, u.Burn-x.rate, u.Held.Sub(x.held)
	}
	if x.counted = j.Holds(); x.counted {
		x.rate = step.Burns(j)
		x.held = step.Expects(j, x.rate)
		u.Running, u.Burn, u.Held = u.Running+1, quantity.Add(u.Burn, x.rate), u.Held.Add(x.held)
	}
	if *u == (fair.Use{}) {
		delete(qs.held, j.Terms().Owner.Team)
	}
}

// contender is the most urgent job of a subqueue.
type contender struct {
	job   *state.Job
	class *class
}

// fairHead is head if teams share the queue. The order is: the priority; then the jobs whose deadline needs them to
// start now, by deadline; then the teams, as fair.Shares compares them; and within a team as in Before. A team that
// has borrowed as much as it may starts nothing but jobs whose deadline needs them to.
func (q *Queue) fairHead(blocks func(*state.Job) blocked) *state.Job {
	var list []contender
	var s *fair.Shares
	for _, c := range q.Classes {
		for _, p := range c.Subqueues {
			u := p.Sides[q.fresh]
			if len(u) == 0 || p.Group.Equivalence.Unschedulable {
				continue
			}
			if s == nil {
				s = q.shares()
			}
			if !At(u[0]).pressed && s.Of(u[0].Terms().Owner.Team).Stopped {
				continue
			}
			list = append(list, contender{u[0], c})
		}
	}
	var full []*Quota
	for len(list) > 0 {
		best := list[0]
		for _, x := range list[1:] {
			if Precedes(s, x.job, best.job) {
				best = x
			}
		}
		if len(best.class.Quotas) == 0 {
			return best.job
		}
		if !slices.ContainsFunc(best.class.Quotas, func(q *Quota) bool { return slices.Contains(full, q) }) {
			b := blocks(best.job)
			if b.By == nil || b.Never {
				return best.job
			}
			if b.keeps {
				full = append(full, b.By)
			}
		}
		list = slices.DeleteFunc(list, func(x contender) bool { return x.class == best.class })
	}
	return nil
}

// Precedes reports whether a starts before b when teams share the queue.
func Precedes(s *fair.Shares, a, b *state.Job) bool {
	switch {
	case a.Terms().Priority != b.Terms().Priority, At(a).pressed, At(b).pressed:
		return Before(a, b)
	}
	if order := s.Compare(a.Terms().Owner.Team, b.Terms().Owner.Team); order != 0 {
		return order < 0
	}
	return Before(a, b)
}

// Pressed reports whether the deadline of a queued job needs it to start now. It must not be called unless teams share
// the queue.
func Pressed(j *state.Job) bool { return At(j).pressed }

// Stopped reports whether the team of a queued job has borrowed as much as it may, and its deadline does not need it to
// start now.
func (qs *Quotas) Stopped(j *state.Job) bool {
	if !qs.Shared() || At(j).pressed {
		return false
	}
	return qs.sharesNow().Of(j.Terms().Owner.Team).Stopped
}

// whyShare explains in a sentence that a job waits because its team has borrowed as much as it may.
func (qs *Quotas) whyShare(j *state.Job) (string, bool) {
	if !qs.Shared() || At(j).pressed {
		return "", false
	}
	s := qs.Shares(qs.Now())
	t := s.Of(j.Terms().Owner.Team)
	if !t.Stopped {
		return "", false
	}
	return fmt.Sprintf("team %s burns $%s an hour, and may borrow $%s an hour beyond its share of %.0f %% of what burns "+
		"now (scrimp queue shares)", j.Terms().Owner.Team, t.Burn, *t.Borrow, 100*t.Wanted), true
}
