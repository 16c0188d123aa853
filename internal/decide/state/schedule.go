package state

import (
	"strconv"
	"strings"
	"time"
)

// Schedule is the state of a schedule.
type Schedule struct {
	Due     time.Time `json:"due,omitzero"`      // due time of its next run; zero: not computed yet
	Begun   int       `json:"begun,omitempty"`   // runs started
	Skipped int       `json:"skipped,omitempty"` // runs that were due and did not start
	Runs    []Run     `json:"runs,omitempty"`    // the last runs, started or skipped, in the order of their due times
}

// Run is a run of a schedule.
type Run struct {
	Due    time.Time `json:"due"`
	Group  string    `json:"group,omitempty"`  // group of the run; empty: skipped
	Why    string    `json:"why,omitempty"`    // reason for skipping it, a sentence
	Missed int       `json:"missed,omitempty"` // earlier due times that passed while the server was down
}

// RunsKept is the number of runs of a schedule that are kept.
const RunsKept = 100

// RunSettled: a run of a schedule has started or was skipped. With neither, the schedule has learned its next due
// time. The event has the move. Skipped is the reason if something other than the planner skipped the run.
type RunSettled struct {
	Group   string `json:"group"`
	Run     string `json:"run,omitempty"`
	Skipped string `json:"skipped,omitempty"`
}

func (RunSettled) Fact() string { return "run_settled" }

func init() { reads[RunSettled]() }

// RunOf returns the name of the n-th run of a schedule, from 1. User-given names contain no dot.
func RunOf(schedule string, n int) string { return schedule + ".r" + strconv.Itoa(n) }

// Submitted returns the group that a user submitted. For a run that is its schedule, which owns the work folder and
// the secrets.
func Submitted(group string) string {
	name, _, _ := strings.Cut(group, ".")
	return name
}

// NextRun returns the event that opens the next run of a schedule.
func (g *Group) NextRun() *GroupOpened {
	t := *g.Terms.Run
	t.Owner, t.Parent, t.Member = g.Terms.Owner, g.Name, g.Terms.Member
	return &GroupOpened{Group: RunOf(g.Name, g.Schedule.Begun+1), Terms: t}
}

// opening returns the opening of a new group that an event contains.
func (s *State) opening(e *Event, group string) GroupOpened {
	if b, ok := e.Body.(Proposed); ok && b.Group != group {
		return *s.groups[b.Group].NextRun()
	}
	return e.Body.(GroupOpened)
}

// settlesRun records that a run of a schedule started or was skipped.
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
	panic("state: the event has no run")
}
