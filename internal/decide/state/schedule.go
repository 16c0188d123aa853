package state

import (
	"strconv"
	"strings"
	"time"

	"scrimp/internal/work/retrain"
)

// Schedule is the state of a schedule.
type Schedule struct {
	Due     time.Time `json:"due,omitzero"`      // due time of its next run; zero: not computed yet
	Begun   int       `json:"begun,omitempty"`   // runs started
	Skipped int       `json:"skipped,omitempty"` // runs that were due and did not start
	Runs    []Run     `json:"runs,omitempty"`    // the last runs, started or skipped, in the order of their due times
	// If a run waits for a price, Since is when it was due, Waits the condition, and Due the time of the next check;
	// Since is zero if none waits.
	Since time.Time       `json:"since,omitzero"`
	Waits []retrain.Check `json:"waits,omitempty"`
	// Mark is the state of the data of on_data that the last run used.
	Mark retrain.Mark `json:"mark,omitzero"`
	// Last is when the last run began.
	Last time.Time `json:"last,omitzero"`
	// Archived counts the archived runs by how they ended.
	Archived Outcomes `json:"archived,omitzero"`
}

// Run is a run of a schedule.
type Run struct {
	// Due is when it was due; a run that has waited for a price began later.
	Due    time.Time `json:"due"`
	Group  string    `json:"group,omitempty"`  // group of the run; empty: skipped
	Why    string    `json:"why,omitempty"`    // reason for skipping it, a sentence
	Missed int       `json:"missed,omitempty"` // earlier due times that passed while the server was down
	// Checks are what the conditions of the schedule compared.
	Checks []retrain.Check `json:"checks,omitempty"`
	// Same counts the skipped runs of the same day before this one that the same condition skipped.
	Same int `json:"same,omitempty"`
}

// failed returns the condition that skipped a run; "": none did.
func (r *Run) failed() string {
	for i := range r.Checks {
		if !r.Checks[i].Pass {
			return r.Checks[i].Condition
		}
	}
	return ""
}

// repeats reports whether a run was skipped by the same condition as the run before it, on the same day.
func (r *Run) repeats(before *Run) bool {
	y, m, d := r.Due.UTC().Date()
	by, bm, bd := before.Due.UTC().Date()
	return r.Group == "" && before.Group == "" && r.failed() != "" && r.failed() == before.failed() &&
		y == by && m == bm && d == bd
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
		since := y.Since
		y.Due, y.Since, y.Waits = v.Run.Next, v.Run.Since, nil
		if v.Run.Due.IsZero() {
			y.Waits = v.Run.Checks
			return
		}
		r := Run{Due: v.Run.Due, Group: f.Run, Missed: v.Run.Missed, Checks: v.Run.Checks}
		if !since.IsZero() { // it has waited for a price since then, and the move has only the last check
			r.Due = since
		}
		if f.Run != "" {
			y.Begun++
			y.Last = e.At
			for _, c := range r.Checks {
				if c.Data != nil {
					y.Mark = c.Data.Mark
				}
			}
		} else if y.Skipped++; f.Skipped != "" {
			r.Why = f.Skipped
		} else {
			r.Why = v.Why
		}
		if n := len(y.Runs); n > 0 && r.repeats(&y.Runs[n-1]) {
			r.Same = y.Runs[n-1].Same + 1
			y.Runs = append(append([]Run(nil), y.Runs[:n-1]...), r) // a snapshot may share the list
			return
		}
		if y.Runs = append(y.Runs, r); len(y.Runs) > RunsKept {
			y.Runs = append([]Run(nil), y.Runs[len(y.Runs)-RunsKept:]...)
		}
		return
	}
	panic("state: the event has no run")
}
