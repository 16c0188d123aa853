package budget

import (
	"slices"
	"testing"
	"time"
)

// One place is free every hour: the jobs in the queue begin after 1 h, 2 h and 3 h, and a limit on running jobs makes
// its jobs wait for each other.
func TestBegins_TurnsFollowThePlaces(t *testing.T) {
	t.Parallel()
	now := time.Unix(1.77e9, 0).UTC()
	hour := func(id, team string, runs bool) Course {
		c := Course{ID: id, Runs: runs, Rate: 1e12, Lasts: time.Hour, Quick: time.Hour, Slow: time.Hour, Known: true}
		c.Owner.Team = team
		return c
	}
	list := []Course{hour("r", "a", true), hour("x", "a", false), hour("y", "a", false), hour("z", "b", false)}
	exact := func(d time.Duration) [3]time.Duration { return [3]time.Duration{d, d, d} }
	got := Begins(nil, list, 1, now)
	for i, id := range []string{"x", "y", "z"} {
		if want := exact(time.Duration(i+1) * time.Hour); got[id] != want {
			t.Errorf("%s begins after %v, by hand %v", id, got[id], want)
		}
	}
	one := Limit{Scope: "team:a", Window: Month, Running: new(1)}
	got = Begins([]Limit{one}, list, 10, now)
	for id, want := range map[string]time.Duration{"x": time.Hour, "y": 2 * time.Hour, "z": 0} {
		if got[id] != exact(want) {
			t.Errorf("under the limit %s begins after %v, by hand %v", id, got[id], want)
		}
	}
	list[0].Known = false
	if got = Begins(nil, list, 1, now); len(got) > 0 {
		t.Errorf("nobody knows when the only place is free, and the turns are %v", got)
	}
}

// With a spread, the median of the turns is the median of the jobs before, and the quantiles are in order.
func TestBegins_QuantilesEncloseTheMedian(t *testing.T) {
	t.Parallel()
	now := time.Unix(1.77e9, 0).UTC()
	list := []Course{{ID: "r", Runs: true, Rate: 1e12, Quick: time.Hour, Lasts: 2 * time.Hour, Slow: 4 * time.Hour, Known: true},
		{ID: "x", Rate: 1e12, Known: true}}
	v := Begins(nil, list, 1, now)["x"]
	if !slices.IsSorted(v[:]) || v[1] != 2*time.Hour || (v[0]-time.Hour).Abs() > 10*time.Minute ||
		(v[2]-4*time.Hour).Abs() > 20*time.Minute {
		t.Errorf("%v, and the job before lasts 1 h to 4 h, and 2 h in the median", v)
	}
}
