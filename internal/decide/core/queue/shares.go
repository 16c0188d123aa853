package queue

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"scrimp/internal/decide/core/quota"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/fair"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/quantity"
)

// shareAmongTeams applies the rules in force about the shares of teams. If teams begin or cease to share the queue, it
// scans every queued job once.
func (qs *Quotas) shareAmongTeams() {
	was := qs.Queue.shares != nil
	qs.Sums, qs.placed, qs.Queue.shares, qs.held, qs.touched = nil, false, nil, nil, nil
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
	if !qs.placed {
		qs.sumHeld()
		if qs.places.Len() > 1024+2*len(qs.held) { // most of them are gone
			qs.places = fair.Shares{}
		}
		qs.places.Clear(qs.fairRules())
		qs.sumUses(qs.Now(), &qs.places)
		qs.places.Place()
		qs.placed = true
	}
	return &qs.places
}

// Shared reports whether teams share the queue.
func (qs *Quotas) Shared() bool { return qs.Queue.shares != nil }

// Shares returns the places of the teams at t, which must not be before the last event. It must not be called unless
// teams share the queue, and only between steps: readers call it at the same time, so it changes nothing.
func (qs *Quotas) Shares(t time.Time) fair.Shares {
	var s fair.Shares
	s.Clear(qs.fairRules())
	for _, team := range slices.Sorted(maps.Keys(qs.held)) { // in order, since the first spelling of a name counts
		s.Use(team)
	}
	qs.sumUses(t, &s)
	for key, e := range qs.State.DeadlinesByTeam(t) {
		s.Use(key).Met, s.Use(key).Missed = e.Met, e.Missed
	}
	s.Place()
	return s
}

// fairRules returns the rules in force about the shares of teams.
func (qs *Quotas) fairRules() *fair.Rules {
	if qs.Faults.Flat {
		return fair.Flat(qs.State.Rules().Fair)
	}
	return qs.State.Rules().Fair
}

// sumUses fills in the uses of all teams at t. Only the spelling of a team's name depends on the order of the teams.
func (qs *Quotas) sumUses(t time.Time, s *fair.Shares) {
	for team, sum := range qs.held {
		u := s.Use(team)
		u.Running, u.Burn, u.Held = u.Running+sum.Running, quantity.Add(u.Burn, sum.Burn), u.Held.Add(sum.Held)
	}
	for _, i := range qs.State.Waiting() {
		if idle, ok := i.Idle(); ok {
			u := s.Use(idle.Owner.Team)
			u.Burn, u.Held = quantity.Add(u.Burn, i.PresentRate()), u.Held.Add(i.Cost(t).Sub(i.Posted()))
		}
	}
	for _, c := range qs.Queue.Classes {
		for _, p := range c.Subqueues {
			for _, u := range p.Sides {
				if len(u) > 0 {
					s.Use(u[0].Terms().Owner.Team).Waits = true
				}
			}
		}
	}
	for key, spent := range qs.State.SpentByTeam(t) {
		s.Use(key).Spent = spent
	}
	if qs.Faults.Favours {
		*s.Use(qs.State.Rules().Fair.Teams[0].Name) = fair.Use{Waits: true}
	}
}

// mostTouched is the number of changed jobs after which it sums all jobs with a machine again.
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

// Settle must be called at the end of a step: readers then find the sums of all teams complete.
func (qs *Quotas) Settle() {
	if qs.Shared() {
		qs.sumHeld()
		clear(qs.touched)
		qs.touched = qs.touched[:0]
	}
}

// sumHeld sums what the jobs of each team hold or request now.
func (qs *Quotas) sumHeld() {
	jobs, anew := qs.touched, qs.held == nil
	if anew {
		qs.held, jobs = map[string]*fair.Use{}, qs.State.Running()
	}
	for _, j := range jobs {
		qs.holds(j, anew)
	}
	// A job of this event may change again without another call of Touch, because it is in the list already.
	qs.touched = slices.DeleteFunc(qs.touched, func(j *state.Job) bool { return j.Changed() != qs.State.Seq() })
}

// holds replaces a job's part of its team's sum. anew is set if the sum does not include the job.
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
	job     *state.Job
	class   *class
	team    *fair.Share
	pressed bool // as the job's place
}

// fairHead is head if teams share the queue. The order is: the priority; then the jobs whose deadline needs them to
// start now, by deadline; then the teams, as fair.Shares compares them; and within a team as in Before. A team that
// has borrowed as much as it may starts nothing but jobs whose deadline needs them to.
func (q *Queue) fairHead(blocks func(*state.Job) blocked) *state.Job {
	list := q.contenders[:0]
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
			team := s.At(u[0].Terms().Owner.Team)
			if pressed := At(u[0]).pressed; pressed || !team.Stopped {
				list = append(list, contender{u[0], c, team, pressed})
			}
		}
	}
	q.contenders = list
	var full []*quota.Quota
	for len(list) > 0 {
		best := &list[0]
		for i := range list[1:] {
			if x := &list[1+i]; x.precedes(best) {
				best = x
			}
		}
		if len(best.class.Quotas) == 0 {
			return best.job
		}
		if !slices.ContainsFunc(best.class.Quotas, func(q *quota.Quota) bool { return slices.Contains(full, q) }) {
			b := blocks(best.job)
			if b.By == nil || b.Never {
				return best.job
			}
			if b.keeps {
				full = append(full, b.By)
			}
		}
		done := best.class
		list = slices.DeleteFunc(list, func(x contender) bool { return x.class == done })
	}
	return nil
}

// precedes reports whether the job of x starts before that of y when teams share the queue.
func (x *contender) precedes(y *contender) bool {
	if x.job.Terms().Priority == y.job.Terms().Priority && !x.pressed && !y.pressed {
		if order := x.team.Compare(y.team); order != 0 {
			return order < 0
		}
	}
	return Before(x.job, y.job)
}

// Precedes reports whether a starts before b when teams share the queue.
func Precedes(s *fair.Shares, a, b *state.Job) bool {
	return contenderOf(s, a).precedes(contenderOf(s, b))
}

func contenderOf(s *fair.Shares, j *state.Job) *contender {
	return &contender{job: j, team: s.At(j.Terms().Owner.Team), pressed: At(j).pressed}
}

// Pressed reports whether the deadline of a queued job needs it to start now. It must not be called unless teams share
// the queue.
func Pressed(j *state.Job) bool { return At(j).pressed }

// Stopped reports whether the team of a queued job has borrowed as much as it may, and its deadline does not need it to
// start now.
func (qs *Quotas) Stopped(j *state.Job) bool {
	return qs.Shared() && !At(j).pressed && qs.sharesNow().At(j.Terms().Owner.Team).Stopped
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
