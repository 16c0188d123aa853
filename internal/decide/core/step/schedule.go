package step

import (
	"fmt"

	"scrimp/internal/decide/state"
)

// OnlySchedule refuses a schedule that would be the second open one of its name in its team and project: both would
// spend a budget of their own on the same runs. It returns nil if there is no other one, or the group is no schedule.
func OnlySchedule(s *state.State, group string, t *state.GroupTerms) *Refusal {
	if t.Schedule == nil || t.Member.Name == "" {
		return nil
	}
	for _, g := range s.Groups() {
		o := &g.Terms
		if o.Schedule == nil || g.Name == group || g.Phase == state.GroupOver || o.Member.Name != t.Member.Name {
			continue
		}
		if o.Owner.Team == t.Owner.Team && o.Owner.Project == t.Owner.Project {
			return &Refusal{Job: group, Why: ScheduleOpen,
				Err: fmt.Errorf("the schedule %s is open and has the same name, team and project", g.Name)}
		}
	}
	return nil
}
