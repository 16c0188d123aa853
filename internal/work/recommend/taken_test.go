package recommend_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/work/recommend"
)

const days = 24 * time.Hour

// month returns rows of each sort on both sides of a time, whose costs change there by a factor of each sort.
func month(r *rand.Rand, at time.Time, after map[string]float64) []recommend.Cost {
	var list []recommend.Cost
	add := func(sort string, c recommend.Cost, when time.Time, dollars float64) {
		if !when.Before(at) {
			dollars *= after[sort]
		}
		c.Begin, c.SKU, c.Region = when, "p5", "r"
		c.Amount, _ = money.Estimated(math.Round(dollars*1e6) / 1e6)
		list = append(list, c)
	}
	for h := range 60 * 24 {
		when := at.Add(time.Duration(h-30*24) * time.Hour)
		run := recommend.Cost{Job: fmt.Sprint("j", h/5), Series: "fit", Instance: "i", Time: time.Hour, Listed: true, List: usd("4"), Use: recommend.Useful,
			Capacity: []string{"spot", "on-demand"}[h%2]}
		if r.IntN(4) > 0 {
			add("run", run, when, 1+3*r.Float64())
		}
		for use, sort := range map[recommend.Use]string{recommend.Lost: "lost", recommend.StartUp: "start"} {
			if c := run; r.IntN(3) == 0 {
				c.Use, c.Capacity = use, "spot"
				add(sort, c, when, r.Float64())
			}
		}
		add("idle", recommend.Cost{Instance: "w", Use: recommend.Idle, Time: time.Hour}, when, r.Float64())
		add("storage", recommend.Cost{Storage: true, Use: recommend.Useful}, when, 0.1*r.Float64())
		add("reserved", recommend.Cost{Reserved: true, Use: recommend.Idle}, when, r.Float64())
	}
	return list
}

// The saving is the earlier cost of a unit, times the units since, less the cost since: added up a second way, by sums
// over the rows of each recommendation as docs/recommend.md states them.
func TestMeasure_AgreesWithASumOfTheRows(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	at := begin
	after := map[string]float64{"run": 0.7, "lost": 0.5, "start": 1.1, "idle": 0.1, "storage": 0.8, "reserved": 0.4}
	costs := month(r, at, after)
	jobs := map[string]recommend.Job{}
	for i, c := range costs {
		if c.Job != "" {
			jobs[c.Job] = recommend.Job{Saves: i%3 > 0, Deadline: i%5 == 0}
		}
	}
	useful := func(c recommend.Cost) bool { return c.Use == recommend.Useful && c.Job != "" }
	hour := func(recommend.Cost) float64 { return 1 }
	list := func(c recommend.Cost) float64 { return c.List.Float() }
	for _, x := range []struct {
		name   string
		cost   func(recommend.Cost) bool
		unit   func(recommend.Cost) bool
		weight func(recommend.Cost) float64
	}{
		{"idle stop", func(c recommend.Cost) bool { return c.Instance == "w" || c.Use == recommend.StartUp }, useful, hour},
		{"checkpoint interval", func(c recommend.Cost) bool { return c.Use == recommend.Lost && jobs[c.Job].Saves },
			func(c recommend.Cost) bool { return useful(c) && c.Capacity == "spot" && jobs[c.Job].Saves }, hour},
		{"spot share", func(c recommend.Cost) bool { return c.Job != "" && jobs[c.Job].Saves },
			func(c recommend.Cost) bool { return useful(c) && jobs[c.Job].Saves }, list},
		{"commitment", func(c recommend.Cost) bool { return c.Job != "" || c.Reserved }, useful, list},
		{"window", func(c recommend.Cost) bool { return c.Job != "" && c.Capacity == "spot" && !jobs[c.Job].Deadline },
			func(c recommend.Cost) bool { return c.Job != "" && c.Capacity == "spot" && !jobs[c.Job].Deadline }, list},
		{"retention", func(c recommend.Cost) bool { return c.Storage }, nil, nil},
		{"smaller reservation", func(c recommend.Cost) bool { return c.Reserved }, nil, nil},
		{"smaller machine", func(c recommend.Cost) bool { return c.Series == "fit" }, nil, nil},
	} {
		now := at.Add(20 * days)
		for _, now := range []time.Time{now, at.Add(40 * days)} {
			end := min(now.Sub(at), 30*days)
			var cost, unit [2]float64
			runs := [2]map[string]bool{{}, {}}
			for _, c := range costs {
				side := 0
				if !c.Begin.Before(at) {
					side = 1
				}
				if c.Begin.Sub(at) >= end {
					continue
				}
				if x.cost(c) {
					cost[side] += c.Amount.Float()
					runs[side][c.Job] = true
				}
				if x.unit != nil && x.unit(c) {
					unit[side] += x.weight(c)
				}
			}
			if x.unit == nil {
				unit = [2]float64{30, end.Hours() / 24}
			}
			if x.name == "smaller machine" {
				unit = [2]float64{float64(len(runs[0])), float64(len(runs[1]))}
			}
			alone := usd("60")
			o := recommend.Measure(&recommend.Taken{Name: x.name, Currency: money.USD, Alone: &alone, Span: 30 * days, Series: []string{"fit"}}, at, now,
				costs, jobs)
			want := cost[0]*unit[1]/unit[0] - cost[1]
			if o.Saved == nil || math.Abs(o.Saved.Float()-want) > 1e-6 || math.Abs(o.Cost.Float()-cost[1]) > 1e-6 ||
				math.Abs(o.Before.Float()-cost[0]) > 1e-6 || *o.Monthly != alone || *o.Expected != usd(fmt.Sprint(2*end.Hours()/24)) ||
				o.Days != end.Hours()/24 || o.Over != (end == 30*days) {
				t.Errorf("%s: %+v, want %g", x.name, o, want)
			}
			if recommend.UnitsOf(x.name) == "" {
				t.Errorf("%s has no units", x.name)
			}
		}
	}
}

// What is not known is not zero: without units before or since there is no saving, and a saving of a short span is
// scaled to no month.
func TestMeasure_LeavesUnknownWhatIsUnknown(t *testing.T) {
	one := ran("a", "on-demand", recommend.Useful, "1", "1", 0)
	jobs := map[string]recommend.Job{"a": {Saves: true}}
	alone := usd("5")
	for name, x := range map[string]struct {
		taken   recommend.Taken
		at, now time.Time
		costs   []recommend.Cost
	}{
		"nothing before": {recommend.Taken{Name: "spot share", Span: 30 * days}, begin, begin.Add(2 * days), []recommend.Cost{one}},
		"nothing since":  {recommend.Taken{Name: "spot share", Span: 30 * days}, begin.Add(days), begin.Add(2 * days), []recommend.Cost{one}},
		"no time since":  {recommend.Taken{Name: "retention", Span: 30 * days}, begin, begin, nil},
		"no such thing":  {recommend.Taken{Name: "other", Span: 30 * days}, begin, begin.Add(days), []recommend.Cost{one}},
		"an hour":        {recommend.Taken{Name: "spot share", Span: time.Hour, Alone: &alone}, begin, begin.Add(days), []recommend.Cost{one}},
	} {
		o := recommend.Measure(&x.taken, x.at, x.now, x.costs, jobs)
		if o.Saved != nil || o.Monthly != nil || o.Expected != nil {
			t.Errorf("%s: %+v", name, o)
		}
	}
}
