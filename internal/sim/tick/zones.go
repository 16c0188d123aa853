package tick

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/policy/place"
	"scrimp/internal/lib/money"
)

// The public benchmark with several zones: one V100, ticks of 195 s, on-demand
// at $3.06 an hour in every zone, 50 GB to carry between regions at $0.02/GB and
// about 4.4 Gbit/s.
const (
	zonesTick     = 195 * time.Second
	zonesTransfer = 90 * time.Second
)

var (
	zonesOnDemand = money.Rate(3_060_000_000_000)
	zonesCarry    = money.Picos(1_000_000_000_000)
	zonesJobs     = []struct{ work, deadline time.Duration }{{48 * time.Hour, 52 * time.Hour},
		{24 * time.Hour, 36 * time.Hour}, {24 * time.Hour, 48 * time.Hour}}
	zonesRestarts = []time.Duration{3 * time.Minute, 12 * time.Minute}
	zonesGroups   = [][]string{
		{"us-east-1a", "us-east-1c"},
		{"us-east-2a", "us-west-2a"},
		{"us-east-1a", "us-east-2b", "us-west-2c"},
		{"us-east-1a", "us-east-1c", "us-east-1d"},
		{"us-east-1a", "us-east-1f", "us-west-2a", "us-west-2b", "us-east-2b"},
		{"us-east-2a", "us-west-2c", "us-east-1d", "us-east-2b", "us-west-2a", "us-east-1f", "us-east-1a", "us-west-2b",
			"us-east-1c"},
		{"us-west-2a", "us-west-2b"},
		{"us-west-2a", "us-west-2b", "us-west-2c"},
		{"us-west-2a", "us-east-2a"},
		{"us-west-2a", "us-west-2b", "us-west-2c", "us-east-2a", "us-east-2b"},
	}
)

// A ZoneRun is one job over one group of zones in one window.
type ZoneRun struct {
	Job    place.Job
	Traces []*ZoneTrace // by zone of the job
	Window int
	Group  int
	Nodes  int     // machines that the job has at once; 0: one
	Alone  []Alone // what they lose besides, by zone of the job; nil: nothing
}

// AloneAt is which nodes are lost in a zone at the start of tick t, while spot is there.
func (r *ZoneRun) AloneAt(zone, t int) uint8 {
	if r.Alone == nil {
		return 0
	}
	return r.Alone[zone].At(t)
}

// ZoneRuns returns the runs of one form of the benchmark in a fixed order, and
// how many pairs of group and window were left out because the window lacks a
// zone of the group. A window shorter than a job's ticks is an error.
func ZoneRuns(windows []ZoneWindow, looks bool) (runs []ZoneRun, leftOut int, err error) {
	for g, group := range zonesGroups {
		for _, w := range windows {
			var zones []place.Zone
			var traces []*ZoneTrace
			for _, name := range group {
				if t := w.Zones[name]; t != nil {
					zones = append(zones, place.Zone{Name: name, Region: Region(name), OnDemand: zonesOnDemand})
					traces = append(traces, t)
				}
			}
			if len(zones) < len(group) {
				leftOut++
				continue
			}
			for _, size := range zonesJobs {
				for _, restart := range zonesRestarts {
					r := ZoneRun{Window: w.Number, Group: g, Traces: traces, Job: place.Job{
						Zones: zones, Tick: zonesTick, Work: size.work, Deadline: size.deadline,
						Restart: restart, Transfer: zonesTransfer, Carry: zonesCarry, Looks: looks,
					}}
					for i, t := range traces {
						if n := r.Job.Ticks(); len(t.Up) < n {
							return nil, 0, fmt.Errorf("line %d: ticks: window %d of %s ends after %d, and a job of %.0f h needs %d; "+
								"give a longer window", t.Line, w.Number, group[i], len(t.Up), size.deadline.Hours(), n)
						}
					}
					runs = append(runs, r)
				}
			}
		}
	}
	if len(runs) == 0 {
		return nil, leftOut, fmt.Errorf("no window has all zones of a group, such as %s: all %d pairs of group and "+
			"window are left out", strings.Join(zonesGroups[0], " and "), leftOut)
	}
	return runs, leftOut, nil
}

// Ungrouped are the zones of the windows that no group of the benchmark has, by
// name: nothing is played on them.
func Ungrouped(windows []ZoneWindow) []string {
	grouped := map[string]bool{}
	for _, g := range zonesGroups {
		for _, z := range g {
			grouped[z] = true
		}
	}
	var list []string
	for _, w := range windows {
		for z := range w.Zones {
			if !grouped[z] {
				grouped[z] = true
				list = append(list, z)
			}
		}
	}
	slices.Sort(list)
	return list
}

// epoch is when every run begins; which time it is counts for nothing.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// ZoneOutcome is what one run came to.
type ZoneOutcome struct {
	Cost      money.Amount
	Moves     int // machines taken
	Carries   int // of them, those to another region
	Decisions int
	Missed    bool
}

// Play runs p through r by the rules of the benchmark and returns what it cost.
// It panics where p answers what the rules do not allow: spot in a zone that it
// does not see up.
func (r *ZoneRun) Play(p place.Policy) ZoneOutcome {
	var out ZoneOutcome
	j := &r.Job
	v := place.View{Left: j.Work, Prices: make([]money.Rate, len(j.Zones)), Seen: make([]place.Sight, len(j.Zones)),
		Past: make([]place.Record, len(j.Zones))}
	looker, _ := p.(place.Poller)
	for v.Tick = 0; v.Tick < j.Ticks(); v.Tick++ {
		r.show(&v)
		if j.Looks && looker != nil {
			if z := looker.Poll(v); z >= 0 {
				r.see(&v, z)
			}
		}
		c := j.Guard(v, p.Decide(v))
		out.Decisions++
		if c.Kind == place.Spot && v.Seen[c.Zone] != place.Up {
			panic(fmt.Sprintf("spot in %s at tick %d, which is not seen up", j.Zones[c.Zone].Name, v.Tick))
		}
		r.hold(&v, c, &out)
		if v.Left == 0 {
			out.Cost = Times(out.Cost, r.Nodes)
			return out
		}
	}
	out.Missed, out.Cost = true, Times(out.Cost, r.Nodes)
	return out
}

// see takes a look at zone z.
func (r *ZoneRun) see(v *place.View, z int) {
	up := r.Traces[z].Up[v.Tick]
	v.Seen[z] = place.Down
	if up {
		v.Seen[z] = place.Up
	}
	v.Past[z] = v.Past[z].See(v.Now, up)
}

// show fills v with what is seen at the start of its tick before any look.
func (r *ZoneRun) show(v *place.View) {
	j := &r.Job
	v.Now = epoch.Add(time.Duration(v.Tick) * j.Tick)
	v.Lost = v.Held == place.Spot && (!r.Traces[v.Zone].Up[v.Tick] || r.AloneAt(v.Zone, v.Tick) != 0)
	for z, t := range r.Traces {
		v.Prices[z] = t.Price[v.Tick]
		v.Seen[z] = place.Unseen
		if !j.Looks || v.Held == place.Spot && v.Zone == z {
			r.see(v, z)
		}
	}
	if v.Lost {
		v.Held, v.Overhead = place.None, 0
	}
}

// hold takes or keeps c for the tick, bills it and counts the work.
func (r *ZoneRun) hold(v *place.View, c place.Choice, out *ZoneOutcome) {
	j := &r.Job
	if c.Kind == place.None {
		v.Held, v.Overhead = place.None, 0
		return
	}
	region := j.Zones[c.Zone].Region
	same := c.Kind == v.Held && (c.Zone == v.Zone || c.Kind == place.OnDemand && region == j.Zones[v.Zone].Region)
	if !same {
		v.Overhead = j.Restart
		out.Moves++
		if v.Home != "" && region != v.Home {
			v.Overhead += j.Transfer
			out.Cost = out.Cost.Add(j.Carry)
			out.Carries++
		}
		v.Home = region
	}
	v.Held, v.Zone = c.Kind, c.Zone
	rate := j.Zones[c.Zone].OnDemand
	if c.Kind == place.Spot {
		rate = v.Prices[c.Zone]
	}
	out.Cost = out.Cost.Add(rate.Until(j.Tick))
	used := min(v.Overhead, j.Tick)
	v.Overhead -= used
	work := min(j.Tick-used, v.Left)
	v.Left -= work
	v.Done += work
}
