package fair_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/decide/fair"
)

// The counts are those of a plain list: every job of the last 31/32 of the window counts, and none older than the window.
func TestDeadlines_CountTheJobsOfTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := time.Duration(rapid.Int64Range(int64(fair.LeastHalfLife), int64(fair.MostHalfLife)).Draw(t, "window"))
		var d fair.Deadlines
		var ends []time.Time
		now := start
		for range rapid.IntRange(0, 60).Draw(t, "jobs") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(window)/8).Draw(t, "gap")))
			before := slices.Clone(d)
			next := d.Add(now, window, len(ends)%3 > 0, 1)
			if !reflect.DeepEqual(before, slices.Clone(d)) {
				t.Fatal("Add has changed what a snapshot shares with it")
			}
			d, ends = next, append(ends, now)
		}
		now = now.Add(time.Duration(rapid.Int64Range(0, int64(window)*2).Draw(t, "later")))
		var least, most [2]int // missed, met
		for i, at := range ends {
			k := min(i%3, 1)
			if at.After(now.Add(-window + window/32)) {
				least[k]++
			}
			if !at.Before(now.Add(-window)) {
				most[k]++
			}
		}
		met, missed := d.In(now, window)
		if met < least[1] || met > most[1] || missed < least[0] || missed > most[0] {
			t.Fatalf("%d met and %d missed, want %v to %v", met, missed, least, most)
		}
		if len(d) > 34 {
			t.Fatalf("%d counts for a window of 32 parts", len(d))
		}
	})
}

// A job that goes on after its end no longer counts, and no count falls below zero.
func TestDeadlines_TakeBackAJobThatGoesOn(t *testing.T) {
	d := fair.Deadlines(nil).Add(start, time.Hour, false, 1).Add(start, time.Hour, false, -1).Add(start, time.Hour, false, -1)
	d = d.Add(start.Add(time.Minute*30), time.Hour, true, -1)
	if met, missed := d.In(start, time.Hour); met != 0 || missed != 0 {
		t.Errorf("%d met, %d missed", met, missed)
	}
}

// A job that ended before its deadline without success neither met nor missed it.
func TestOutcome_OfEachEnd(t *testing.T) {
	for _, c := range []struct {
		deadline, ended time.Time
		succeeded       bool
		met, ok         bool
	}{
		{time.Time{}, start, true, false, false},
		{start, start, true, true, true},
		{start, start.Add(1), true, false, true},
		{start, start.Add(1), false, false, true},
		{start, start.Add(-1), false, false, false},
	} {
		if met, ok := fair.Outcome(c.deadline, c.ended, c.succeeded); ok != c.ok || ok && met != c.met {
			t.Errorf("%+v: %v, %v", c, met, ok)
		}
	}
}

// The share is unknown where no job had a deadline, and not zero.
func TestMissShare_IsUnknownWithoutDeadlines(t *testing.T) {
	for _, c := range []struct {
		met, missed int
		want        float64
		ok          bool
	}{{0, 0, 0, false}, {3, 0, 0, true}, {3, 1, 0.25, true}, {0, 2, 1, true}} {
		x := fair.Share{Use: fair.Use{Met: c.met, Missed: c.missed}}
		if got, ok := x.MissShare(); got != c.want || ok != c.ok {
			t.Errorf("%d met, %d missed: %v, %v", c.met, c.missed, got, ok)
		}
	}
}
