package multizone

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/policy/zonechoice"
	"scrimp/internal/lib/money"
)

// Sight is what a policy sees of the zones.
type Sight string

// The sights.
const (
	SeesAll  Sight = "A" // all zones
	SeesOne  Sight = "B" // the held zone, and one that it polls in each tick
	SeesNone Sight = "C" // the held zone, and what it tries to rent
)

// Protocol defines a benchmark with several zones: the jobs, the groups of zones, and the rules. The benchmark plays
// all combinations.
type Protocol struct {
	Tick        time.Duration
	Jobs        []Size
	Restarts    []time.Duration
	Checkpoints []Checkpoint
	MoveTime    time.Duration // of any checkpoint, to another region
	Sights      []Sight
	Fee         time.Duration // for sight C: see zonechoice.Job
	PerTick     int
	Latch       bool
	Groups      [][]zonechoice.Zone // the order matters
}

// Size is a job's work and deadline.
type Size struct{ Work, Deadline time.Duration }

// Checkpoint is a checkpoint size with its egress cost: Carry between any two regions, except for the routes of Egress.
type Checkpoint struct {
	GB     float64
	Carry  money.Amount
	Egress zonechoice.Egress
}

// Setting is one combination of a protocol.
type Setting struct {
	Group      []zonechoice.Zone
	Size       Size // as in the protocol: the jobs of Runs have their work rounded up
	Restart    time.Duration
	Checkpoint Checkpoint
	Sight      Sight
	Runs       []Run // by window; empty if no window has all zones of the group
}

// job returns the job of a setting. Its work is rounded up to the grid of the optimum.
func (p *Protocol) job(s *Setting) zonechoice.Job {
	j := zonechoice.Job{
		Zones: s.Group, Tick: p.Tick, Deadline: s.Size.Deadline, Restart: s.Restart, Transfer: p.MoveTime,
		Carry: s.Checkpoint.Carry, Egress: s.Checkpoint.Egress, Looks: s.Sight != SeesAll, Latch: p.Latch,
	}
	if s.Sight == SeesNone {
		j.Tries, j.Fee, j.PerTick = true, p.Fee, p.PerTick
	}
	grid := Grid(&j)
	j.Work = (s.Size.Work + grid - 1) / grid * grid
	return j
}

// Work returns the work of the setting's jobs: the protocol's, rounded up.
func (s *Setting) Work() time.Duration {
	if len(s.Runs) == 0 {
		return s.Size.Work
	}
	return s.Runs[0].Job.Work
}

// Grid returns the time unit of the setting's optimum; 0 without runs.
func (s *Setting) Grid() time.Duration {
	if len(s.Runs) == 0 {
		return 0
	}
	return Grid(&s.Runs[0].Job)
}

// SameButSight reports whether two settings of a protocol have the same runs, apart from what a policy sees.
func (s *Setting) SameButSight(o *Setting) bool {
	return s.Sight != o.Sight && s.Size == o.Size && s.Restart == o.Restart && s.Checkpoint.GB == o.Checkpoint.GB &&
		slices.Equal(s.Group, o.Group) && len(s.Runs) == len(o.Runs)
}

// Settings returns all combinations with their runs, and the number of pairs of group and window that were left out
// because the window lacks a zone of the group. A window shorter than a job is an error.
func (p *Protocol) Settings(windows []Window) (list []Setting, leftOut int, err error) {
	some := false
	for _, group := range p.Groups {
		var full []int // windows that have all zones of the group
		for i, w := range windows {
			if slices.ContainsFunc(group, func(z zonechoice.Zone) bool { return w.Zones[z.Name] == nil }) {
				leftOut++
				continue
			}
			full = append(full, i)
			some = true
		}
		for _, s := range p.combine(group) {
			j := p.job(&s)
			for _, i := range full {
				r, err := windows[i].run(j)
				if err != nil {
					return nil, 0, err
				}
				s.Runs = append(s.Runs, r)
			}
			list = append(list, s)
		}
	}
	if !some {
		return nil, leftOut, fmt.Errorf("no window has all zones of a group, such as %s: all %d pairs of group and "+
			"window are left out", strings.Join(Names(p.Groups[0]), " and "), leftOut)
	}
	return list, leftOut, nil
}

// combine returns the settings of a group, without runs.
func (p *Protocol) combine(group []zonechoice.Zone) (list []Setting) {
	for _, size := range p.Jobs {
		for _, restart := range p.Restarts {
			for _, c := range p.Checkpoints {
				for _, sight := range p.Sights {
					list = append(list, Setting{Group: group, Size: size, Restart: restart, Checkpoint: c, Sight: sight})
				}
			}
		}
	}
	return list
}

// run returns the run of a job in the window, which has all of the job's zones.
func (w *Window) run(j zonechoice.Job) (Run, error) {
	r := Run{Window: w.Number, Job: j}
	for _, z := range j.Zones {
		t := w.Zones[z.Name]
		if n := j.Ticks(); len(t.Up) < n {
			return r, fmt.Errorf("line %d: ticks: window %d of %s ends after %d, and a job of %.0f h needs %d; "+
				"give a longer window", t.Line, w.Number, z.Name, len(t.Up), j.Deadline.Hours(), n)
		}
		r.Traces = append(r.Traces, t)
	}
	return r, nil
}

// Names returns the names of zones in order.
func Names(zones []zonechoice.Zone) (names []string) {
	for _, z := range zones {
		names = append(names, z.Name)
	}
	return names
}

// Ungrouped returns the sorted zones of the windows that no group of the protocol uses.
func (p *Protocol) Ungrouped(windows []Window) []string {
	grouped := map[string]bool{}
	for _, g := range p.Groups {
		for _, z := range g {
			grouped[z.Name] = true
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

// Runs returns the runs of one form of the public benchmark in a fixed order, and the number of pairs of group and
// window that were left out.
func Runs(windows []Window, looks bool) (runs []Run, leftOut int, err error) {
	p := Public()
	p.Sights = []Sight{SeesAll}
	if looks {
		p.Sights = []Sight{SeesOne}
	}
	list, leftOut, err := p.Settings(windows)
	per := len(p.Jobs) * len(p.Restarts)
	for g := 0; g < len(list); g += per { // by group, window, job
		for w := range list[g].Runs {
			for i := range per {
				r := list[g+i].Runs[w]
				r.Group = g / per
				runs = append(runs, r)
			}
		}
	}
	return runs, leftOut, err
}

// Public returns the public benchmark: one V100, ticks of 195 s, on-demand at $3.06 an hour in every zone, and 50 GB to
// transfer between regions at $0.02/GB and about 4.4 Gbit/s.
func Public() *Protocol {
	const onDemand, carry = money.Rate(3_060_000_000_000), 1_000_000_000_000 // $3.06 an hour and $1
	p := &Protocol{
		Tick: 195 * time.Second,
		Jobs: []Size{{48 * time.Hour, 52 * time.Hour}, {24 * time.Hour, 36 * time.Hour},
			{24 * time.Hour, 48 * time.Hour}},
		Restarts: []time.Duration{3 * time.Minute, 12 * time.Minute},
		MoveTime: 90 * time.Second, Sights: []Sight{SeesAll, SeesOne},
		Checkpoints: []Checkpoint{{GB: 50, Carry: money.Picos(carry)}},
	}
	for _, names := range []string{
		"us-east-1a us-east-1c",
		"us-east-2a us-west-2a",
		"us-east-1a us-east-2b us-west-2c",
		"us-east-1a us-east-1c us-east-1d",
		"us-east-1a us-east-1f us-west-2a us-west-2b us-east-2b",
		"us-east-2a us-west-2c us-east-1d us-east-2b us-west-2a us-east-1f us-east-1a us-west-2b us-east-1c",
		"us-west-2a us-west-2b",
		"us-west-2a us-west-2b us-west-2c",
		"us-west-2a us-east-2a",
		"us-west-2a us-west-2b us-west-2c us-east-2a us-east-2b",
	} {
		var group []zonechoice.Zone
		for _, z := range strings.Fields(names) {
			group = append(group, zonechoice.Zone{Name: z, Region: Region(z), OnDemand: onDemand})
		}
		p.Groups = append(p.Groups, group)
	}
	return p
}
