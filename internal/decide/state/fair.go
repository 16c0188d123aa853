package state

import (
	"iter"
	"time"

	"scrimp/internal/decide/fair"
	"scrimp/internal/lib/money"
)

// fairRules returns how teams share the queue; nil: the queue does not regard teams.
func (s *State) fairRules() *fair.Rules {
	if s.rules == nil {
		return nil
	}
	return s.rules.Fair
}

// spendTeam counts what a team spent at t, if teams share the queue.
func (s *State) spendTeam(team string, amount money.Amount, t time.Time) {
	r := s.fairRules()
	if r == nil {
		return
	}
	if s.spending.Teams == nil {
		s.spending.Teams = map[string]fair.Spent{}
	}
	key := fair.Key(team)
	s.spending.Teams[key] = s.spending.Teams[key].Add(amount, t, r.HalfLife)
}

// endTeam counts whether a job that has ended met its deadline, if teams share the queue. by is -1 for a job that goes
// on after its end.
func (s *State) endTeam(j *Job, by int) {
	r := s.fairRules()
	met, ok := fair.Outcome(j.r.Terms.Deadline, j.r.Finished, j.r.State == Succeeded)
	if r == nil || !ok {
		return
	}
	if s.spending.Deadlines == nil {
		s.spending.Deadlines = map[string]fair.Deadlines{}
	}
	key := fair.Key(j.r.Terms.Owner.Team)
	s.spending.Deadlines[key] = s.spending.Deadlines[key].Add(j.r.Finished, r.HalfLife, met, by)
}

// DeadlinesByTeam returns how many jobs of each team met and missed their deadline within a half-life before t, by the
// team's key in package fair. It is empty unless teams share the queue.
func (s *State) DeadlinesByTeam(t time.Time) map[string]fair.Ended {
	list := make(map[string]fair.Ended, len(s.spending.Deadlines))
	for key, d := range s.spending.Deadlines {
		var e fair.Ended
		if e.Met, e.Missed = d.In(t, s.fairRules().HalfLife); e != (fair.Ended{}) {
			list[key] = e
		}
	}
	return list
}

// shareQueue settles what teams have spent when their rules change to next: the former half-life holds until now. The
// sums begin with the first rules, and end with the last.
func (s *State) shareQueue(next *fair.Rules) {
	was := s.fairRules()
	if was == nil || next == nil {
		s.spending.Teams, s.spending.Deadlines = nil, nil
		return
	}
	if was.HalfLife == next.HalfLife {
		return
	}
	for key, v := range s.spending.Teams {
		s.spending.Teams[key] = fair.Spent{At: s.now, Amount: v.In(s.now, was.HalfLife)}
	}
}

// SpentByTeam yields what each team has spent by t, with decay, by its key in package fair, in no order. It yields
// nothing unless teams share the queue.
func (s *State) SpentByTeam(t time.Time) iter.Seq2[string, money.Amount] {
	return func(yield func(string, money.Amount) bool) {
		for key, v := range s.spending.Teams {
			if !yield(key, v.In(t, s.fairRules().HalfLife)) {
				return
			}
		}
	}
}

// Changed returns the last event that changed the job; 0: none since a restart.
func (j *Job) Changed() uint64 { return j.changed }
