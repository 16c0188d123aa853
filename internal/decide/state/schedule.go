package state

import (
	"strconv"
	"strings"
	"time"
)

// Schedule is how a schedule stands.
type Schedule struct {
	Due     time.Time `json:"due,omitzero"`      // of its next run; zero: nobody has found out
	Begun   int       `json:"begun,omitempty"`   // runs that have begun
	Skipped int       `json:"skipped,omitempty"` // runs that were due and did not begin
	Runs    []Run     `json:"runs,omitempty"`    // the last of them, begun or skipped, in the order in which they were due
}

// Run is a run of a schedule.
type Run struct {
	Due    time.Time `json:"due"`
	Group  string    `json:"group,omitempty"`  // that it is; "": it was skipped
	Why    string    `json:"why,omitempty"`    // it was skipped, a sentence
	Missed int       `json:"missed,omitempty"` // earlier due times that passed while the server was down
}

// RunsKept is how many runs of a schedule are kept.
const RunsKept = 100

// RunSettled: a run of a schedule has begun or was skipped, or, with neither, the schedule has learned when it is due.
// The event has the move. Skipped says why where it was not the planner that skipped it.
type RunSettled struct {
	Group   string `json:"group"`
	Run     string `json:"run,omitempty"`
	Skipped string `json:"skipped,omitempty"`
}

func (RunSettled) Fact() string { return "run_settled" }

func init() { reads[RunSettled]() }

// RunOf is the name of the n-th run of a schedule, from 1. Names that people give have no dot.
func RunOf(schedule string, n int) string { return schedule + ".r" + strconv.Itoa(n) }

// Submitted is the group that was submitted: of a run its schedule, which has the work folder and the secrets.
func Submitted(group string) string {
	name, _, _ := strings.Cut(group, ".")
	return name
}

// NextRun is the opening of the next run of a schedule.
func (g *Group) NextRun() *GroupOpened {
	t := *g.Terms.Run
	t.Owner, t.Parent, t.Member = g.Terms.Owner, g.Name, g.Terms.Member
	return &GroupOpened{Group: RunOf(g.Name, g.Schedule.Begun+1), Terms: t}
}

// opening is what an event says of a new group.
func (s *State) opening(e *Event, group string) GroupOpened {
	if b, ok := e.Body.(Proposed); ok && b.Group != group {
		return *s.groups[b.Group].NextRun()
	}
	return e.Body.(GroupOpened)
}

// settlesRun takes what became of a run of a schedule.
func (s *State) settlesRun(e *Event, f RunSettled) {
	y := s.groups[f.Group].Schedule
	b := e.Body.(Proposed)
	for _, v := range b.Moves {
		if v.Run == nil || !v.Run.Saw.Equal(y.Due) {
			continue
		}
		y.Due = v.Run.Next
		if v.Run.Due.IsZero() {
			return
		}
		r := Run{Due: v.Run.Due, Group: f.Run, Missed: v.Run.Missed}
		if f.Run != "" {
			y.Begun++
		} else if y.Skipped++; f.Skipped != "" {
			r.Why = f.Skipped
		} else {
			r.Why = v.Why
		}
		if y.Runs = append(y.Runs, r); len(y.Runs) > RunsKept {
			y.Runs = append([]Run(nil), y.Runs[len(y.Runs)-RunsKept:]...)
		}
		return
	}
	panic("state: the event says nothing of a run")
}
