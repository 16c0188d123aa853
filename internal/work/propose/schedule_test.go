package propose

import (
	"testing"
	"time"

	"scrimp/internal/work/groups"
	"scrimp/internal/work/schedule"
)

func TestMoves_OfASchedule(t *testing.T) {
	due := time.Date(2026, 11, 26, 3, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		spec schedule.Spec
		due  time.Time
		late time.Duration // now minus due
		runs int
		open int
		do   groups.Do
		last time.Duration // due time of the last run minus due
	}{
		{"nobody knows when it is due", schedule.Spec{}, time.Time{}, 0, 0, 0, groups.Await, 0},
		{"it is not due yet", schedule.Spec{}, due, -time.Second, 0, 0, "", 0},
		{"it is due", schedule.Spec{}, due, 0, 0, 0, groups.Start, 0},
		{"a run is open", schedule.Spec{}, due, 0, 1, 1, groups.Skip, 0},
		{"the server was down", schedule.Spec{}, due, 150 * time.Minute, 1, 0, groups.Start, 2 * time.Hour},
		{"the server was down, without catch-up", schedule.Spec{NoCatchUp: true}, due, 150 * time.Minute, 1, 0, groups.Skip, 2 * time.Hour},
		{"it is late by seconds, without catch-up", schedule.Spec{NoCatchUp: true}, due, 59 * time.Second, 1, 0, groups.Start, 0},
		{"it is late by more than a minute, without catch-up", schedule.Spec{NoCatchUp: true}, due, 61 * time.Second, 1, 0, groups.Skip, 0},
		{"all runs have begun", schedule.Spec{Runs: 2}, due, 0, 2, 0, groups.Finish, 0},
		{"all runs have begun, one is open", schedule.Spec{Runs: 2}, due, 0, 2, 1, "", 0},
		{"it is due after its end", schedule.Spec{Until: due.Add(-time.Hour)}, due, 0, 1, 0, groups.Finish, 0},
	} {
		c.spec.Cron = "0 * * * *"
		now := due.Add(c.late)
		moves := Moves(groups.Snapshot{Kind: groups.Schedule, Schedule: &c.spec, Due: c.due, Now: now, Runs: c.runs, Open: c.open})
		if c.do == "" {
			if len(moves) > 0 {
				t.Errorf("%s: %+v, want no move", c.name, moves)
			}
			continue
		}
		if len(moves) != 1 || moves[0].Do != c.do {
			t.Errorf("%s: %+v, want %s", c.name, moves, c.do)
			continue
		}
		r := moves[0].Run
		if c.do == groups.Start || c.do == groups.Skip {
			if want := due.Add(c.last); !r.Due.Equal(want) || !r.Next.After(now) || !r.Saw.Equal(c.due) || r.Missed != int(c.last/time.Hour) {
				t.Errorf("%s: %+v, want one due at %s", c.name, r, want)
			}
		}
	}
}
