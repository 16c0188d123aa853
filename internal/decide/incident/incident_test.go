package incident

import (
	"slices"
	"testing"
	"time"

	"scrimp/internal/test/lane"
)

// Each incident is planted into a fleet of its own. The alert must be early: the money lost before it is at most a
// twentieth of what a detector loses that is a day late.
func TestFind_FindsWhatWasPlanted(t *testing.T) {
	ours, late := 0.0, 0.0
	for i, c := range incidents {
		for seed := range uint64(lane.Pick(1, 10)) {
			f := newFleet(seed*100+uint64(i), 17)
			at := f.start.AddDate(0, 0, 14).Add(time.Duration(f.IntN(24*60)) * time.Minute)
			grows := flat
			if c.plant == nil {
				f.days = 34
				at = f.start.AddDate(0, 0, 20)
				grows = func(day int) float64 { return 1 + 0.02*float64(max(0, day-19)) }
			}
			f.usual("a", 1, grows)
			f.usual("b", 0.7, flat)
			if c.plant != nil {
				c.plant(f, at)
			} else {
				for _, r := range f.rows {
					if day := int(r.Begin.Sub(f.start).Hours() / 24); r.Team == "a" && r.Series != "" && day >= 20 {
						f.extra = append(f.extra, loss{r.Begin, r.End, r.Amount.Float() * (1 - 1/grows(day))})
					}
				}
			}
			var hit *Alert
			for _, a := range Find(f.rows) {
				switch {
				case hit == nil && a.Team == "a" && slices.Contains(c.kinds, a.Kind) && !a.Found.Before(at):
					hit = &a
				default:
					t.Logf("%s, seed %d: also %s of %s at %s: %s", c.name, seed, a.Kind, a.Team, a.Found.Sub(at), a.Why)
				}
			}
			if hit == nil {
				t.Errorf("%s, seed %d: no alert", c.name, seed)
				continue
			}
			lost, day := f.lost(hit.Found), f.lost(at.Add(24*time.Hour))
			ours, late = ours+lost, late+day
			t.Logf("%s, seed %d: %s after %s, lost %.2f of %.2f: %s", c.name, seed, hit.Kind, hit.Found.Sub(at), lost, day, hit.Why)
		}
	}
	t.Logf("lost before the alerts: %.1f %% of a day", 100*ours/late)
	if ours > 0.05*late {
		t.Errorf("%.0f was lost before the alerts, and a day late it is %.0f", ours, late)
	}
}

func TestFind_IsQuietOnQuietFleets(t *testing.T) {
	months, alerts := 0.0, 0
	for seed := range uint64(lane.Pick(1, 20)) {
		f := newFleet(1000+seed, 45)
		for _, team := range []string{"a", "b", "c", "d"} {
			f.usual(team, 0.4+0.8*f.Float64(), flat)
			months += 1.5
		}
		for _, a := range Find(f.rows) {
			alerts++
			t.Logf("seed %d: %s of %s, %s, day %.1f: %s", seed, a.Kind, a.Team, a.About, a.Found.Sub(f.start).Hours()/24, a.Why)
		}
	}
	t.Logf("%d alerts in %.0f months of a team", alerts, months)
	if float64(alerts) > months {
		t.Errorf("%d alerts in %.0f months of a team", alerts, months)
	}
}

func TestFind_IgnoresAPlannedRun(t *testing.T) {
	for seed := range uint64(lane.Pick(1, 20)) {
		f := newFleet(2000+seed, 30)
		f.usual("a", 1, flat)
		before := len(Find(f.rows))
		f.planned(f.start.AddDate(0, 0, 20).Add(9 * time.Hour))
		if got := Find(f.rows); len(got) > before {
			for _, a := range got {
				t.Errorf("seed %d: %s, %s, day %.1f: %s", seed, a.Kind, a.About, a.Found.Sub(f.start).Hours()/24, a.Why)
			}
		}
	}
}
