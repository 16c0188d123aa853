package waste

import (
	"cmp"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/lib/money"
)

var (
	start = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	end   = start.AddDate(0, 0, 15)
)

func dollars(text string) money.Amount {
	a, err := money.Parse(text)
	if err != nil {
		panic(err)
	}
	return a
}

func rate(text string) money.Rate {
	r, err := money.ParseRate(text)
	if err != nil {
		panic(err)
	}
	return r
}

// work is machine time of the team vision at $2 an hour.
func work(from, long time.Duration) Row {
	return Row{Begin: start.Add(from), End: start.Add(from + long), Time: long, Amount: rate("2").Until(long), Currency: "USD",
		Team: "vision", Project: "p", User: "ann", Provider: "aws", Region: "r", SKU: "big", Capacity: "on-demand"}
}

// healthy is a team that wastes nothing: jobs of two hours all day, on machines that wait for a few minutes and are used
// well, with volumes, transfer and a reservation.
func healthy() Input {
	in := Input{Since: start, Until: end, Began: start.AddDate(0, -2, 0), HasTeams: true,
		Offers: []Offer{
			{Name: "big", SKU: "big", CPUs: 32, Memory: 128 << 30, Accelerator: "A100", Accelerators: 8, Rate: rate("2")},
			{Name: "half", SKU: "half", CPUs: 16, Memory: 64 << 30, Accelerator: "A100", Accelerators: 4, Rate: rate("0.9")},
			{Name: "other", SKU: "other", CPUs: 16, Memory: 64 << 30, Accelerator: "T4", Accelerators: 4, Rate: rate("0.1")},
			{Name: "plain", SKU: "plain", CPUs: 16, Memory: 64 << 30, Rate: rate("0.5")},
			{Name: "tiny", SKU: "tiny", CPUs: 2, Memory: 4 << 30, Rate: rate("0.05")},
		},
		Reservations: []Reservation{{Offer: "held", Paid: dollars("300"), Until: end.AddDate(0, 3, 0)}}}
	for i := range in.Offers {
		o := &in.Offers[i]
		o.Provider, o.Region, o.Capacity, o.Currency = "aws", "r", "on-demand", "USD"
	}
	for i := range 15 * 8 {
		at := time.Duration(3*i) * time.Hour
		r := work(at, 2*time.Hour)
		r.Job, r.Instance, r.Series = fmt.Sprintf("job-%d", i), fmt.Sprintf("i-%d", i), "train"
		idle := work(at+2*time.Hour, 6*time.Minute)
		idle.Instance, idle.Idle = r.Instance, true
		volume := work(at, 2*time.Hour)
		volume.Job, volume.Instance, volume.Storage, volume.Time, volume.Amount = r.Job, r.Instance, true, 0, dollars("0.01")
		in.Rows = append(in.Rows, r, idle, volume)
		in.Runs = append(in.Runs, run(r.Job, "train", 0.9, 20, 80<<30))
	}
	unused := Row{Begin: start, End: start.Add(time.Hour), Amount: dollars("30"), Currency: "USD", Team: "vision", Project: "p", Instance: "held",
		Reserved: true}
	in.Rows = append(in.Rows, unused)
	return in
}

// run is measured on 8 GPUs with 80 GiB each, whose memory is used like their time.
func run(job, series string, gpu, cores, memory float64) Run {
	held := gpu * 8 * (80 << 30)
	return Run{GPUMemory: &held, GPUEach: 80 << 30, Job: job, Team: "vision", Series: series, SKU: "big", Capacity: "on-demand", Seconds: 7200, GPUs: 8, GPU: &gpu, Cores: &cores,
		Memory: &memory}
}

// add adds rows that a plant wastes.
func (in *Input) add(rows ...Row) { in.Rows = append(in.Rows, rows...) }

func on(instance string, r Row) Row { r.Instance = instance; return r }

// recurring adds 4 runs of 10 hours each of a job with the measured use.
func (in *Input) recurring(series, sku string, gpu, cores, memory float64) {
	for i := range 4 {
		r := work(time.Duration(i)*24*time.Hour, 10*time.Hour)
		r.Job, r.Series, r.SKU, r.Instance = fmt.Sprintf("%s-%d", series, i), series, sku, "s-"+series
		in.add(r)
		v := run(r.Job, series, gpu, cores, memory)
		if v.SKU = sku; sku == "plain" {
			v.GPUs, v.GPU, v.GPUMemory, v.GPUEach = 0, nil, nil, 0
		}
		in.Runs = append(in.Runs, v)
	}
}

// plants are what is hidden in the ledger of a healthy team, and what must be found. Cost and saving are worked out by
// hand: cost is of 15 days, saving of a month.
var plants = []struct {
	name         string
	plant        func(in *Input)
	kind         Kind
	action       Action
	about        string
	cost, saving string // saving "": unknown
	says         string
	month        string // cost of a month; "": twice the cost, "-": unknown
	wasted       string // "": the cost, "-": unknown
}{
	{"a machine without a task", func(in *Input) {
		r := on("i-idle", work(0, 50*time.Hour))
		r.Idle = true
		in.add(r)
		in.IdleMachines = []Leftover{{Instance: "i-idle", Since: start}}
		in.Machines = []Machine{{Instance: "i-idle", Idle: true, Rate: rate("2"), Keep: end.Add(90 * time.Minute)}}
	}, UnusedMachine, Stop, "i-idle", "100", "3", "no task since 2026-10-01", "-", ""}, // 1.5 h x $2, once
	{"machines that wait too long between jobs", func(in *Input) {
		r := on("i-gone", work(0, 50*time.Hour))
		r.Idle = true
		in.add(r)
		in.IdleMachines = []Leftover{{Instance: "i-gone", Since: start, Until: start.Add(50 * time.Hour)}}
	}, IdleTime, Shrink, "machines between jobs", "124", "", "62.0 h of 302.0 h (20 %)", "", ""},
	{"a machine whose agent is silent", func(in *Input) {
		in.add(on("i-mute", work(0, 20*time.Hour)))
		in.Rows[len(in.Rows)-1].End, in.Rows[len(in.Rows)-1].Time = end, end.Sub(start)
		in.Rows[len(in.Rows)-1].Amount = dollars("720")
		in.Machines = []Machine{{Instance: "i-mute", Job: "mute", Silent: end.Add(-3 * time.Hour)}}
	}, SilentMachine, Stop, "i-mute", "6", "1440", "nothing for 3.0 h", "1440", ""},
	{"a machine that its engine does not list", func(in *Input) {
		in.add(on("i-lost", work(15*24*time.Hour-4*time.Hour, 4*time.Hour)))
		in.Machines = []Machine{{Instance: "i-lost", Silent: end.Add(-4 * time.Hour), Missing: true}}
	}, SilentMachine, Stop, "i-lost", "8", "1440", "has not listed it", "1440", ""},
	{"a machine that no job requested", func(in *Input) {
		in.add(on("i-wild", work(0, 30*time.Hour)))
		in.Machines = []Machine{{Instance: "i-wild", Unknown: true}}
	}, UnknownMachine, Stop, "i-wild", "60", "120", "no job of this server", "", ""},
	{"a machine of an earlier incarnation", func(in *Input) {
		in.add(on("i-old", work(0, 30*time.Hour)))
		in.Machines = []Machine{{Instance: "i-old", Unknown: true, Undecided: true}}
	}, UnknownMachine, Keep, "i-old", "60", "", "adopt or release", "", "-"},
	{"a volume whose machine is gone", func(in *Input) {
		r := on("i-disk", work(0, 100*time.Hour))
		r.Storage, r.Time, r.Amount = true, 0, dollars("12.5")
		in.add(r)
		in.Volumes = []Leftover{{Instance: "i-disk", Since: start}}
	}, OrphanVolume, Delete, "i-disk", "12.5", "25", "machine is gone", "", ""},
	{"a volume that outlived its machine", func(in *Input) {
		r := on("i-disk", work(0, 100*time.Hour))
		r.Storage, r.Time, r.Amount = true, 0, dollars("12.5")
		in.add(r)
		in.Volumes = []Leftover{{Instance: "i-disk", Since: start, Until: start.Add(100 * time.Hour)}}
	}, OrphanVolume, Keep, "i-disk", "12.5", "", "and is gone", "-", ""},
	{"a reservation with unused hours", func(in *Input) {
		in.add(Row{Begin: start, End: end, Amount: dollars("60"), Currency: "USD", Team: "vision", Instance: "held", Reserved: true})
	}, UnusedReservation, Schedule, "held", "90", "", "30 % of what", "", ""},
	{"a reservation that nearly nobody uses", func(in *Input) {
		in.add(Row{Begin: start, End: end, Amount: dollars("150"), Currency: "USD", Team: "vision", Instance: "held", Reserved: true})
	}, UnusedReservation, Shrink, "held", "180", "360", "Renew less", "", ""},
	{"GPUs that are used a third", func(in *Input) { in.recurring("third", "big", 0.33, 10, 30<<30) },
		Oversized, Shrink, "third on big, on-demand", "80", "88", "half at USD 0.9", "", "44"}, // (80 - 40 x 0.9) x 2
	{"GPUs that are not used at all", func(in *Input) { in.recurring("none", "big", 0, 10, 30<<30) },
		Oversized, Shrink, "none on big, on-demand", "80", "120", "plain at USD 0.5", "", "60"}, // (80 - 40 x 0.5) x 2
	{"GPUs that are used little, and no smaller machine holds the memory", func(in *Input) { in.recurring("fat", "big", 0.4, 10, 60<<30) },
		Oversized, Shrink, "fat on big, on-demand", "80", "", "no smaller machine", "", "-"},
	{"memory and processors that are not used", func(in *Input) { in.recurring("slim", "plain", 0, 1.2, 2<<30) },
		Oversized, Shrink, "slim on plain, on-demand", "80", "156", "tiny at USD 0.05", "", "78"}, // (80 - 40 x 0.05) x 2
	{"a schedule whose runs fail", func(in *Input) {
		good, r := work(0, time.Hour), work(time.Hour, 4*time.Hour)
		good.Group, good.Job, r.Group, r.Job = "nightly.r0", "nightly.r0.fit", "nightly.r3", "nightly.r3.fit"
		in.add(good, r)
		in.Schedules = []Recurring{{Name: "nightly", Open: true, Failed: 3, Groups: map[string]bool{"nightly.r0": true, "nightly.r3": true},
			Bad: map[string]bool{"nightly.r3": true}}}
	}, FailingSchedule, Stop, "nightly", "10", "20", "last 3 runs did not succeed", "", "8"},
	{"a job without a team", func(in *Input) {
		r := work(0, 5*time.Hour)
		r.Team, r.Project, r.Job = "", "", "mine"
		in.add(r)
	}, Untagged, Keep, "no team, by ann", "10", "", "5.0 h of machine time", "", "0"},
	{"a job without a project", func(in *Input) {
		r := work(0, 5*time.Hour)
		r.Project, r.Job = "", "mine"
		in.add(r)
	}, Untagged, Keep, "no project, by ann", "10", "", "5.0 h of machine time", "", "0"},
}

func TestFind_NothingIsInventedForAHealthyTeam(t *testing.T) {
	if r := Find(healthy()); len(r.Findings) != 0 || len(r.Totals) != 0 || r.Short || r.Measured != 120 {
		t.Errorf("%+v", r)
	}
}

// text returns an amount as text, and a dash where it is unknown.
func text(a *money.Amount) string {
	if a == nil {
		return "-"
	}
	return a.String()
}

func TestFind_NamesEachPlantAlone(t *testing.T) {
	for _, p := range plants {
		in := healthy()
		p.plant(&in)
		r := Find(in)
		if len(r.Findings) != 1 {
			t.Errorf("%s: %+v", p.name, r.Findings)
			continue
		}
		f := r.Findings[0]
		saving := ""
		if f.Saving != nil {
			saving = f.Saving.String()
		}
		if f.Kind != p.kind || f.Action != p.action || f.About != p.about || f.Cost.String() != p.cost || saving != p.saving ||
			!strings.Contains(f.Evidence, p.says) || f.Command == "" || text(f.Monthly) != cmp.Or(p.month, f.Cost.Times(2).String()) ||
			text(f.Needless) != cmp.Or(p.wasted, p.cost) {
			t.Errorf("%s: %+v saves %q", p.name, f, saving)
		}
		if slices.Contains([]Kind{UnusedMachine, FailingSchedule}, f.Kind) != (f.Effect != "") {
			t.Errorf("%s: effect %q", p.name, f.Effect)
		}
	}
}

// Below each threshold there is no finding.
func TestFind_IsSilentBelowItsThresholds(t *testing.T) {
	for name, plant := range map[string]func(in *Input){
		"idle, not yet an incident": func(in *Input) {
			r := on("i-idle", work(0, 40*time.Minute))
			r.Idle = true
			in.add(r)
			in.Machines = []Machine{{Instance: "i-idle", Idle: true}}
		},
		"silent for nine minutes": func(in *Input) {
			in.add(on("i-mute", work(0, time.Hour)))
			in.Machines = []Machine{{Instance: "i-mute", Silent: end.Add(-9 * time.Minute)}}
		},
		"19 % of a reservation unused": func(in *Input) {
			in.add(Row{Begin: start, End: end, Amount: dollars("29"), Currency: "USD", Team: "vision", Instance: "held", Reserved: true})
		},
		"busy GPUs, and host memory that nothing needs": func(in *Input) { in.recurring("busy", "big", 0.95, 1, 3<<20) },
		"GPUs of unknown use, and host memory that nothing needs": func(in *Input) {
			in.recurring("dark", "big", 0.1, 1, 3<<20)
			for i := range in.Runs[len(in.Runs)-4:] {
				in.Runs[len(in.Runs)-1-i].GPU = nil
			}
		},
		"GPUs used half": func(in *Input) { in.recurring("half", "big", 0.5, 20, 80<<30) },
		"two runs": func(in *Input) {
			in.recurring("two", "big", 0.1, 20, 80<<30)
			in.Runs = in.Runs[:len(in.Runs)-2]
		},
		"unknown use": func(in *Input) {
			in.recurring("dark", "big", 0.1, 1, 1<<30)
			for i := range in.Runs[len(in.Runs)-4:] {
				r := &in.Runs[len(in.Runs)-1-i]
				r.GPU, r.Cores, r.Memory = nil, nil, nil
			}
		},
		"a part of a machine": func(in *Input) {
			in.recurring("part", "big", 0.1, 1, 1<<30)
			for i := range in.Rows[len(in.Rows)-4:] {
				in.Rows[len(in.Rows)-1-i].Part = true
			}
		},
		"two failed runs": func(in *Input) {
			r := work(0, time.Hour)
			r.Group = "nightly.r3"
			in.add(r)
			in.Schedules = []Recurring{{Name: "nightly", Open: true, Failed: 2, Groups: map[string]bool{"nightly.r3": true}}}
		},
		"no team, where there are none": func(in *Input) {
			r := work(0, time.Hour)
			r.Team, r.Project = "", ""
			in.add(r)
			in.HasTeams = false
		},
		"a machine that costs nothing": func(in *Input) {
			r := on("i-free", work(0, time.Hour))
			r.Amount = money.Amount{}
			in.add(r)
			in.Machines = []Machine{{Instance: "i-free", Unknown: true}}
		},
	} {
		in := healthy()
		plant(&in)
		if r := Find(in); len(r.Findings) != 0 {
			t.Errorf("%s: %+v", name, r.Findings)
		}
	}
}

// Any set of plants is found together, in any order of rows, and totals are the sums of the findings.
func TestFind_FindsAnySetOfPlantsInAnyOrder(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		in, whole := healthy(), Input{}
		for _, i := range rng.Perm(len(plants))[:1+rng.IntN(6)] {
			in.IdleMachines, in.Machines, in.Volumes, in.Schedules = nil, nil, nil, nil
			plants[i].plant(&in)
			whole.IdleMachines = append(whole.IdleMachines, in.IdleMachines...)
			whole.Machines = append(whole.Machines, in.Machines...)
			whole.Volumes = append(whole.Volumes, in.Volumes...)
			whole.Schedules = append(whole.Schedules, in.Schedules...)
		}
		in.IdleMachines, in.Machines, in.Volumes, in.Schedules = whole.IdleMachines, whole.Machines, whole.Volumes, whole.Schedules
		r := Find(in)
		ledger := new(big.Int)
		for _, row := range in.Rows {
			ledger.Add(ledger, row.Amount.Big())
		}
		cost, saving, wasted, month := new(big.Int), new(big.Int), new(big.Int), new(big.Int)
		for _, f := range r.Findings {
			cost.Add(cost, f.Cost.Big())
			for sum, a := range map[*big.Int]*money.Amount{saving: f.Saving, wasted: f.Needless, month: f.Monthly} {
				if a != nil {
					sum.Add(sum, a.Big())
				}
			}
			if f.Saving != nil && (f.Saving.Sign() <= 0 || f.Monthly != nil && f.Saving.Cmp(*f.Monthly) > 0) ||
				f.Needless != nil && f.Needless.Cmp(f.Cost) > 0 {
				t.Errorf("seed %d: saves or wastes more than it costs: %+v", seed, f)
			}
		}
		if cost.Cmp(ledger) > 0 || len(r.Totals) != 1 || r.Totals[0].Cost.Big().Cmp(cost) != 0 || r.Totals[0].Findings != len(r.Findings) ||
			r.Totals[0].Saving != nil && r.Totals[0].Saving.Big().Cmp(saving) != 0 ||
			r.Totals[0].Needless != nil && r.Totals[0].Needless.Big().Cmp(wasted) != 0 ||
			r.Totals[0].Monthly != nil && r.Totals[0].Monthly.Big().Cmp(month) != 0 {
			t.Errorf("seed %d: %v of %v, %+v", seed, cost, ledger, r.Totals)
		}
		rng.Shuffle(len(in.Rows), func(i, j int) { in.Rows[i], in.Rows[j] = in.Rows[j], in.Rows[i] })
		again := Find(in)
		for i := range again.Findings {
			again.Findings[i].Jobs, again.Findings[i].Command = r.Findings[i].Jobs, r.Findings[i].Command // the newest job of the order
			again.Findings[i].saved = r.Findings[i].saved
		}
		if !reflect.DeepEqual(again, r) {
			t.Errorf("seed %d: another order, another report:\n%+v\n%+v", seed, again, r)
		}
	}
}

// Row i costs 2^i, so the cost of a finding shows which rows it has: no two findings share one.
func TestFind_CountsNoDollarTwice(t *testing.T) {
	flip := func(rng *rand.Rand) bool { return rng.IntN(2) == 0 }
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		in := Input{Since: start, Until: end, Began: start, HasTeams: flip(rng), Reservations: []Reservation{{Offer: "i-0", Paid: money.Picos(1)}}}
		for i := range 5 {
			name := fmt.Sprintf("i-%d", i)
			if flip(rng) {
				in.Machines = append(in.Machines, Machine{Instance: name, Idle: flip(rng), Unknown: flip(rng), Missing: flip(rng), Silent: start.Add(-1)})
			}
			if flip(rng) {
				in.IdleMachines = append(in.IdleMachines, Leftover{Instance: name, Since: start})
				in.Volumes = append(in.Volumes, Leftover{Instance: name, Since: start.Add(-time.Hour)})
			}
		}
		in.Schedules = []Recurring{{Name: "s", Open: flip(rng), Failed: 3, Groups: map[string]bool{"g-0": true}}}
		in.recurring("any", "big", 0.1, 1, 1)
		in.Rows = nil
		for i := range 60 {
			r := work(time.Duration(i)*time.Hour, 2*time.Hour)
			r.Amount = money.Picos(1 << i)
			r.Idle, r.Storage, r.Reserved = flip(rng), flip(rng), rng.IntN(5) == 0
			r.Instance, r.Group, r.Series = fmt.Sprintf("i-%d", rng.IntN(6)), fmt.Sprintf("g-%d", rng.IntN(2)), []string{"", "any"}[rng.IntN(2)]
			if r.Job = fmt.Sprint("j", i); flip(rng) {
				r.Team, r.Project = []string{"", "vision"}[rng.IntN(2)], ""
			}
			in.add(r)
		}
		seen := int64(0)
		r := Find(in)
		for _, f := range r.Findings {
			bits := f.Cost.Big().Int64()
			if seen&bits != 0 {
				t.Fatalf("seed %d: %+v has a row of another finding", seed, f)
			}
			seen |= bits
		}
		if len(r.Findings) == 0 {
			t.Fatalf("seed %d: nothing found", seed)
		}
	}
}

// A month is the cost since something was first seen, scaled; what was seen too briefly, or does not recur, has none.
func TestFind_ScalesFromTheFirstTimeItWasSeen(t *testing.T) {
	nightly := func(begin time.Duration) Input {
		in := healthy()
		r := work(15*24*time.Hour-begin, begin)
		r.Group, r.Job, r.Amount = "nightly.r1", "fit", dollars("15.66")
		in.add(r)
		in.Schedules = []Recurring{{Name: "nightly", Open: true, Failed: 3, Groups: map[string]bool{"nightly.r1": true}}}
		return in
	}
	untagged := func(begin time.Duration) Input {
		in := healthy()
		r := work(15*24*time.Hour-begin, begin)
		r.Project, r.Amount = "", dollars("15.66")
		in.add(r)
		return in
	}
	for name, c := range map[string]struct {
		in            Input
		month, saving string
	}{
		"a schedule of 8 hours":     {nightly(8 * time.Hour), "1409.4", "1409.4"}, // x 720 / 8
		"a schedule of an hour":     {nightly(time.Hour), "11275.2", "11275.2"},
		"a schedule of 59 minutes":  {nightly(59 * time.Minute), "-", "-"},
		"jobs of a day":             {untagged(24 * time.Hour), "469.8", "-"}, // x 30
		"jobs of less than a day":   {untagged(24*time.Hour - time.Second), "-", "-"},
		"the whole span":            {untagged(15 * 24 * time.Hour), "31.32", "-"},
		"seen before the span also": {nightly(8 * time.Hour), "31.32", "31.32"},
	} {
		if strings.HasPrefix(name, "seen before") {
			r := work(-30*24*time.Hour, time.Hour)
			r.Group = "nightly.r1"
			c.in.Before = []Row{r}
		}
		r := Find(c.in)
		if len(r.Findings) != 1 || text(r.Findings[0].Monthly) != c.month || text(r.Findings[0].Saving) != c.saving ||
			text(r.Totals[0].Monthly) != c.month || text(r.Totals[0].Saving) != c.saving {
			t.Errorf("%s: %+v", name, r)
		}
	}
	in := nightly(8 * time.Hour)
	in.Began = in.Until.Add(-4 * time.Hour)
	if r := Find(in); !r.Short || r.Since != in.Began {
		t.Errorf("%+v", r)
	}
	in.Began = time.Time{}
	if r := Find(in); len(r.Findings) != 0 {
		t.Errorf("%+v", r)
	}
}

// What a minimum charge makes due in any case is no waste, and a machine saves only what is left until it is terminated.
func TestFind_CountsIdleTimeBeyondTheMinimumCharge(t *testing.T) {
	idle := func(paid, keep time.Duration) Input { // idle in the last 10 hours, at $2
		in := healthy()
		r := on("i-idle", work(15*24*time.Hour-10*time.Hour, 10*time.Hour))
		r.Idle = true
		in.add(r)
		in.IdleMachines = []Leftover{{Instance: "i-idle", Since: r.Begin}}
		in.Machines = []Machine{{Instance: "i-idle", Idle: true, Rate: rate("2"), Keep: end.Add(keep)}}
		in.Paid = map[string]time.Time{"i-idle": end.Add(paid)}
		return in
	}
	for name, c := range map[string]struct {
		in           Input
		cost, saving string // "": no finding
	}{
		"within its minimum":       {idle(time.Hour, 5*time.Hour), "", ""},
		"at the end of it":         {idle(0, 5*time.Hour), "", ""},
		"four hours beyond":        {idle(-4*time.Hour, 5*time.Hour), "8", "10"},
		"kept for 11 s more":       {idle(-4*time.Hour, 11*time.Second), "8", "0.006111111111"},
		"kept for a year":          {idle(-4*time.Hour, 365*24*time.Hour), "8", "1440"},
		"due to be terminated":     {idle(-4*time.Hour, -time.Second), "", ""},
		"without a minimum at all": {idle(-400*time.Hour, 5*time.Hour), "20", "10"},
	} {
		r := Find(c.in)
		if len(r.Findings) == 0 && c.cost == "" {
			continue
		}
		if len(r.Findings) != 1 || c.cost == "" {
			t.Errorf("%s: %+v", name, r.Findings)
			continue
		}
		if f := r.Findings[0]; f.Cost.String() != c.cost || text(f.Saving) != c.saving || f.Monthly != nil || f.Kind != UnusedMachine {
			t.Errorf("%s: %+v", name, f)
		}
	}
	// A job of 1.5 hours on a machine with a minimum of 6 hours costs $6 with and without the time it waits.
	in := Input{Since: start, Until: end, Began: start, Paid: map[string]time.Time{"i-min": start.Add(6 * time.Hour)}}
	job, wait := on("i-min", work(0, 90*time.Minute)), on("i-min", work(90*time.Minute, 4*time.Hour+30*time.Minute))
	wait.Idle = true
	in.add(job, wait)
	if r := Find(in); len(r.Findings) != 0 {
		t.Errorf("%+v", r.Findings)
	}
	in.Paid = nil
	if r := Find(in); len(r.Findings) != 1 || r.Findings[0].Kind != IdleTime || r.Findings[0].Cost.String() != "9" {
		t.Errorf("%+v", r.Findings)
	}
}

// The commands of a reservation that is too large work: plan has a discount or terms, and comes after its input.
func TestFind_RenewsAReservationWithCommandsThatWork(t *testing.T) {
	for want, r := range map[string]Reservation{
		"--discount 75%":     {Rate: rate("2"), OnDemand: rate("8")},
		"--terms terms.yaml": {Rate: rate("2")},
		"--terms  terms":     {},
	} {
		got := renew(r, 60, 28*24*time.Hour)
		history, plan, ok := strings.Cut(got, " && ")
		if !ok || !strings.HasSuffix(history, "> demand.csv") || !strings.HasPrefix(plan, "scrimp commit plan --demand demand.csv --") ||
			!strings.Contains(got, strings.ReplaceAll(want, "  ", " ")) {
			t.Errorf("%s: %s", want, got)
		}
	}
	if got := renew(Reservation{}, 60, 27*24*time.Hour); strings.Contains(got, "demand.csv") || !strings.Contains(got, "28 days") {
		t.Errorf("there is too little demand to plan with: %s", got)
	}
	if got := renew(Reservation{Until: end}, 100, 0); strings.Contains(got, "scrimp") || !strings.Contains(got, "do not renew it") {
		t.Errorf("there is no demand to plan with: %s", got)
	}
}

func TestFind_ShowsTheTeamThatIsAskedFor(t *testing.T) {
	in := healthy()
	plants[0].plant(&in)
	in.Team = "audio"
	if r := Find(in); len(r.Findings) != 0 || len(r.Totals) != 0 {
		t.Errorf("%+v", r)
	}
	if in.Team = "vision"; len(Find(in).Findings) != 1 {
		t.Error("the finding of the team is missing")
	}
}

// Parts of a row add up to it exactly, wherever it is cut.
func TestBetween_PartsAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 300 {
		long := time.Duration(1 + rng.Int64N(int64(100*time.Hour)))
		r := Row{Begin: start, End: start.Add(long), Time: time.Duration(rng.Int64N(int64(long))), Amount: money.Picos(rng.Int64N(1e15) - 1e14)}
		cut := start.Add(time.Duration(rng.Int64N(int64(2*long))) - long/2)
		a, _ := r.Between(start.Add(-time.Hour), cut)
		b, _ := r.Between(cut, r.End.Add(time.Hour))
		if a.Amount.Add(b.Amount) != r.Amount || a.Time+b.Time != r.Time {
			t.Fatalf("%v %v of %v", a, b, r)
		}
	}
	at := Row{Begin: start, End: start, Amount: money.Picos(7)}
	_, in := at.Between(start, end)
	if _, after := at.Between(start.Add(-time.Hour), start); !in || after {
		t.Error("a row without a length is not of the moment of its begin")
	}
}

// The saving so far is what the thing would have cost at its earlier pace less what it did cost.
func TestMeasure_ComparesThePromiseWithTheLedger(t *testing.T) {
	monthly, saving := dollars("300"), dollars("240")
	p := Promise{Kind: FailingSchedule, Team: "vision", About: "nightly", Currency: "USD", Monthly: &monthly, Saving: &saving}
	before, after, other := work(-time.Hour, 2*time.Hour), work(48*time.Hour, time.Hour), work(48*time.Hour, time.Hour)
	before.Group, after.Group, other.Group = "nightly.r1", "nightly.r2", "weekly.r1"
	groups := map[string]Group{"nightly.r1": {Schedule: "nightly"}, "nightly.r2": {Schedule: "nightly"}, "weekly.r1": {Schedule: "weekly"}}
	rows := []Row{before, after, other}
	o := Measure(p, start, start.AddDate(0, 0, 10), rows, groups)
	// A third of a month: $100 at the pace, half of the first row ($2) and the second ($2) since.
	if o.Over || o.Span != 240*time.Hour || o.Cost.String() != "4" || o.Due.String() != "80" || o.Saved.String() != "96" {
		t.Errorf("%+v", o)
	}
	o = Measure(p, start, start.AddDate(1, 0, 0), rows, groups)
	if !o.Over || o.Span != Month || o.Due.String() != "240" || o.Saved.String() != "296" {
		t.Errorf("%+v", o)
	}
	p.Monthly, p.Saving = nil, nil
	if o := Measure(p, start, end, rows, groups); o.Due != nil || o.Saved != nil {
		t.Errorf("unknown became %+v", o)
	}
}

// A schedule that was begun again under another name has saved nothing, and what was running when it ended is no loss.
func TestMeasure_CountsEveryRunOfTheSamePipeline(t *testing.T) {
	monthly := dollars("300")
	p := Promise{Kind: FailingSchedule, About: "nightly-2", Currency: "USD", Monthly: &monthly, Saving: &monthly, Pipeline: "vision/p/fit"}
	groups := map[string]Group{"nightly-2.r9": {"nightly-2", "vision/p/fit"}, "nightly-3.r1": {"nightly-3", "vision/p/fit"},
		"by-hand": {"", "vision/p/fit"}, "other.r1": {"other", "vision/q/fit"}}
	row := func(group string, from, long time.Duration) Row {
		r := work(from, long)
		r.Group = group
		return r
	}
	for name, c := range map[string]struct {
		rows  []Row
		saved string // after 10 days; at that pace they cost $100
	}{
		"nothing ran":           {nil, "100"},
		"renamed":               {[]Row{row("nightly-3.r1", time.Hour, 50*time.Hour)}, "0"},
		"renamed, and dearer":   {[]Row{row("nightly-3.r1", time.Hour, 60*time.Hour)}, "-20"},
		"begun by hand":         {[]Row{row("by-hand", time.Hour, 20*time.Hour)}, "60"},
		"another project":       {[]Row{row("other.r1", time.Hour, 50*time.Hour)}, "100"},
		"a run that was ending": {[]Row{row("nightly-2.r9", -time.Hour, 100*time.Hour)}, "0"},
	} {
		if o := Measure(p, start, start.AddDate(0, 0, 10), c.rows, groups); text(o.Saved) != c.saved {
			t.Errorf("%s: %+v saved %s", name, o, text(o.Saved))
		}
	}
	if o := Measure(p, start, start.Add(10*time.Second), []Row{row("nightly-2.r9", -time.Hour, 2*time.Hour)}, groups); text(o.Saved) != "0" {
		t.Errorf("in the first seconds: %s", text(o.Saved))
	}
}

// The saving of a machine that would have ended by itself comes once, and stops to grow at that time.
func TestMeasure_GrowsUntilTheMachineWouldHaveEnded(t *testing.T) {
	saving := dollars("10")
	p := Promise{Kind: UnusedMachine, About: "i-1", Currency: "USD", Saving: &saving, Begins: start, Ends: start.Add(5 * time.Hour)}
	shutting := on("i-1", work(-time.Hour, 61*time.Minute)) // another minute, at $2
	shutting.Idle = true
	for after, saved := range map[time.Duration]string{30 * time.Second: "0", time.Hour: "1.966666666666", 5 * time.Hour: "9.966666666666",
		400 * time.Hour: "9.966666666666", 9000 * time.Hour: "9.966666666666"} {
		if o := Measure(p, start, start.Add(after), []Row{shutting, on("i-1", work(0, time.Hour))}, nil); text(o.Saved) != saved {
			t.Errorf("after %v: %s of %s", after, text(o.Saved), text(o.Due))
		}
	}
	p.Begins, p.Ends = time.Time{}, time.Time{}
	if o := Measure(p, start, end, []Row{shutting}, nil); o.Due != nil || o.Saved != nil {
		t.Errorf("%+v", o)
	}
}
