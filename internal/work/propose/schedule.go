package propose

import (
	"fmt"

	"scrimp/internal/work/groups"
	"scrimp/internal/work/schedule"
)

// runs starts or skips the due run of a schedule, and gives the next due time.
func runs(s groups.Snapshot) []groups.Move {
	y := s.Schedule
	finish := []groups.Move{{Do: groups.Finish, Why: "no_more_runs"}}
	if s.Due.IsZero() {
		next := y.After(s.Now)
		if next.IsZero() {
			return finish
		}
		return []groups.Move{{Do: groups.Await, Run: &groups.RunMove{Next: next}}}
	}
	last := y.Runs > 0 && s.Runs >= y.Runs || !y.Until.IsZero() && s.Due.After(y.Until)
	switch {
	case last && s.Open == 0:
		return finish
	case last || s.Due.After(s.Now):
		return nil
	}
	r := &groups.RunMove{Saw: s.Due}
	if r.Due, r.Missed, r.Next = y.Due(s.Due, s.Now); r.Next.IsZero() {
		r.Next = s.Now.Add(schedule.Late)
	}
	late := s.Now.Sub(r.Due)
	switch {
	case s.Open > 0:
		return []groups.Move{{Do: groups.Skip, Why: "the run before it is not over", Run: r}}
	case y.NoCatchUp && late > schedule.Late:
		return []groups.Move{{Do: groups.Skip, Why: "the server was not running when it was due", Run: r}}
	case r.Missed > 0:
		return []groups.Move{{Do: groups.Start, Why: fmt.Sprintf("it makes up for %d that were missed", r.Missed), Run: r}}
	}
	return []groups.Move{{Do: groups.Start, Why: "due", Run: r}}
}
