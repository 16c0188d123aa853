package zonechoice

import (
	"testing"
	"time"

	"scrimp/internal/decide/policy/zonechoice/hazard"
	"scrimp/internal/lib/money"
)

// The displayed probabilities are the ones used in the decision. They fall with the span if the zone is up and rise
// if it is down.
func TestChances_ShownAreThoseOfTheHazards(t *testing.T) {
	now := time.Unix(0, 0).UTC()
	j := Job{
		Zones: []Zone{{"a", "r", 3_000_000_000_000}, {"b", "r", 3_000_000_000_000}, {"c", "s", 3_000_000_000_000}},
		Tick:  3 * time.Minute, Work: 5 * time.Hour, Deadline: 9 * time.Hour, Restart: 6 * time.Minute,
	}
	past := []hazard.Record{hazard.Record{}.See(now, true), hazard.Record{}.See(now, false), {}}
	v := View{Now: now, Left: j.Work, Prices: []money.Rate{1_000_000_000_000, 1_000_000_000_000, 1_000_000_000_000}, Seen: []Sight{Up, Down, Unseen}, Past: past}
	p := &Foresight{Job: &j}
	if p.Chance(v, 0, time.Hour) != 0 {
		t.Error("a chance before anything was weighed")
	}
	p.Decide(v)
	lasts, returns := 1.0, 0.0
	for _, h := range []time.Duration{time.Minute, time.Hour, 10 * time.Hour} {
		up, back := p.Chance(v, 0, h), p.Chance(v, 1, h)
		if up >= lasts || up <= 0 || back <= returns || back >= 1 {
			t.Errorf("within %v it lasts with %.3f (shorter %.3f), comes back with %.3f (shorter %.3f)", h, up, lasts, back, returns)
		}
		lasts, returns = up, back
	}
	if c := p.Chance(v, 2, time.Hour); c <= 0 || c >= 1 {
		t.Errorf("a zone that nobody looked at is up with %.3f", c)
	}
}
