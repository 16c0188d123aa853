package waste

import (
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
}{
	{"a machine without a task", func(in *Input) {
		r := on("i-idle", work(0, 50*time.Hour))
		r.Idle = true
		in.add(r)
		in.IdleMachines = []Leftover{{Instance: "i-idle", Since: start}}
		in.Machines = []Machine{{Instance: "i-idle", Idle: true}}
	}, IdleMachine, Stop, "i-idle", "100", "200", "no task since 2026-10-01"},
	{"machines that wait too long between jobs", func(in *Input) {
		r := on("i-gone", work(0, 50*time.Hour))
		r.Idle = true
		in.add(r)
		in.IdleMachines = []Leftover{{Instance: "i-gone", Since: start, Until: start.Add(50 * time.Hour)}}
	}, IdleTime, Shrink, "machines between jobs", "124", "", "62.0 h of 302.0 h (20 %)"},
	{"a machine whose agent is silent", func(in *Input) {
		in.add(on("i-mute", work(0, 20*time.Hour)))
		in.Rows[len(in.Rows)-1].End, in.Rows[len(in.Rows)-1].Time = end, end.Sub(start)
		in.Rows[len(in.Rows)-1].Amount = dollars("720")
		in.Machines = []Machine{{Instance: "i-mute", Job: "mute", Silent: end.Add(-3 * time.Hour)}}
	}, SilentMachine, Stop, "i-mute", "6", "12", "nothing for 3.0 h"},
	{"a machine that its engine does not list", func(in *Input) {
		in.add(on("i-lost", work(15*24*time.Hour-4*time.Hour, 4*time.Hour)))
		in.Machines = []Machine{{Instance: "i-lost", Silent: end.Add(-4 * time.Hour), Missing: true}}
	}, SilentMachine, Stop, "i-lost", "8", "16", "has not listed it"},
	{"a machine that no job requested", func(in *Input) {
		in.add(on("i-wild", work(0, 30*time.Hour)))
		in.Machines = []Machine{{Instance: "i-wild", Unknown: true}}
	}, UnknownMachine, Stop, "i-wild", "60", "120", "no job of this server"},
	{"a machine of an earlier incarnation", func(in *Input) {
		in.add(on("i-old", work(0, 30*time.Hour)))
		in.Machines = []Machine{{Instance: "i-old", Unknown: true, Undecided: true}}
	}, UnknownMachine, Stop, "i-old", "60", "120", "earlier incarnation"},
	{"a volume whose machine is gone", func(in *Input) {
		r := on("i-disk", work(0, 100*time.Hour))
		r.Storage, r.Time, r.Amount = true, 0, dollars("12.5")
		in.add(r)
		in.Volumes = []Leftover{{Instance: "i-disk", Since: start}}
	}, OrphanVolume, Delete, "i-disk", "12.5", "25", "machine is gone"},
	{"a volume that outlived its machine", func(in *Input) {
		r := on("i-disk", work(0, 100*time.Hour))
		r.Storage, r.Time, r.Amount = true, 0, dollars("12.5")
		in.add(r)
		in.Volumes = []Leftover{{Instance: "i-disk", Since: start, Until: start.Add(100 * time.Hour)}}
	}, OrphanVolume, Keep, "i-disk", "12.5", "", "and is gone"},
	{"a reservation with unused hours", func(in *Input) {
		in.add(Row{Begin: start, End: end, Amount: dollars("60"), Currency: "USD", Team: "vision", Instance: "held", Reserved: true})
	}, UnusedReservation, Schedule, "held", "90", "", "30 % of what"},
	{"a reservation that nearly nobody uses", func(in *Input) {
		in.add(Row{Begin: start, End: end, Amount: dollars("150"), Currency: "USD", Team: "vision", Instance: "held", Reserved: true})
	}, UnusedReservation, Shrink, "held", "180", "360", "Renew less"},
	{"GPUs that are used a third", func(in *Input) { in.recurring("third", "big", 0.33, 10, 30<<30) },
		Oversized, Shrink, "third on big, on-demand", "80", "88", "half at USD 0.9"}, // (80 - 40 x 0.9) x 2
	{"GPUs that are not used at all", func(in *Input) { in.recurring("none", "big", 0, 10, 30<<30) },
		Oversized, Shrink, "none on big, on-demand", "80", "120", "plain at USD 0.5"}, // (80 - 40 x 0.5) x 2
	{"GPUs that are used little, and no smaller machine holds the memory", func(in *Input) { in.recurring("fat", "big", 0.4, 10, 60<<30) },
		Oversized, Shrink, "fat on big, on-demand", "80", "", "no smaller machine"},
	{"memory and processors that are not used", func(in *Input) { in.recurring("slim", "plain", 0, 1.2, 2<<30) },
		Oversized, Shrink, "slim on plain, on-demand", "80", "156", "tiny at USD 0.05"}, // (80 - 40 x 0.05) x 2
	{"a schedule whose runs fail", func(in *Input) {
		r := work(0, 5*time.Hour)
		r.Group, r.Job = "nightly.r3", "nightly.r3.fit"
		in.add(r)
		in.Schedules = []Recurring{{Name: "nightly", Open: true, Failed: 3, Groups: map[string]bool{"nightly.r3": true}}}
	}, FailingSchedule, Stop, "nightly", "10", "20", "last 3 runs did not succeed"},
	{"a job without a team", func(in *Input) {
		r := work(0, 5*time.Hour)
		r.Team, r.Project, r.Job = "", "", "mine"
		in.add(r)
	}, Untagged, Keep, "no team, by ann", "10", "", "5.0 h of machine time"},
	{"a job without a project", func(in *Input) {
		r := work(0, 5*time.Hour)
		r.Project, r.Job = "", "mine"
		in.add(r)
	}, Untagged, Keep, "no project, by ann", "10", "", "5.0 h of machine time"},
}

func TestFind_NothingIsInventedForAHealthyTeam(t *testing.T) {
	if r := Find(healthy()); len(r.Findings) != 0 || len(r.Totals) != 0 || r.Short || r.Measured != 120 {
		t.Errorf("%+v", r)
	}
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
			!strings.Contains(f.Evidence, p.says) || f.Command == "" || *f.Monthly != f.Cost.Times(2) {
			t.Errorf("%s: %+v saves %q", p.name, f, saving)
		}
		if slices.Contains([]Kind{IdleMachine, FailingSchedule}, f.Kind) != (f.Effect != "") {
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
		cost, saving := new(big.Int), new(big.Int)
		for _, f := range r.Findings {
			cost.Add(cost, f.Cost.Big())
			if f.Saving != nil {
				saving.Add(saving, f.Saving.Big())
				if f.Saving.Sign() <= 0 || f.Saving.Cmp(*f.Monthly) > 0 {
					t.Errorf("seed %d: saves more than it costs: %+v", seed, f)
				}
			}
		}
		if cost.Cmp(ledger) > 0 || len(r.Totals) != 1 || r.Totals[0].Cost.Big().Cmp(cost) != 0 || r.Totals[0].Findings != len(r.Findings) ||
			r.Totals[0].Saving != nil && r.Totals[0].Saving.Big().Cmp(saving) != 0 || r.Totals[0].Monthly.Big().Cmp(new(big.Int).Mul(cost, big.NewInt(2))) != 0 {
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

func TestFind_UnknownIsNotZero(t *testing.T) {
	in := healthy()
	plants[0].plant(&in)
	in.Began = in.Until.Add(-LeastSpan + time.Second)
	r := Find(in)
	if !r.Short || r.Since != in.Began || r.Findings[0].Monthly != nil || r.Findings[0].Saving != nil || r.Totals[0].Monthly != nil ||
		r.Totals[0].Saving != nil || r.Totals[0].Unknown != 1 || r.Totals[0].Cost.IsZero() {
		t.Errorf("%+v", r)
	}
	in.Began = in.Until.Add(-LeastSpan)
	if r := Find(in); r.Findings[0].Monthly.Cmp(r.Findings[0].Cost.Times(30)) != 0 {
		t.Errorf("%+v", r)
	}
	in.Began = time.Time{}
	if r := Find(in); len(r.Findings) != 0 {
		t.Errorf("%+v", r)
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
	groups := map[string]string{"nightly.r1": "nightly", "nightly.r2": "nightly", "weekly.r1": "weekly"}
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
	idle := on("i-1", work(0, time.Hour))
	idle.Idle = true
	p = Promise{Kind: IdleMachine, About: "i-1", Currency: "USD", Monthly: &monthly}
	if o := Measure(p, start, end, []Row{idle, on("i-1", work(0, time.Hour))}, nil); o.Cost.String() != "2" || o.Saved.String() != "148" {
		t.Errorf("%+v", o)
	}
}

// Fewer GPUs are advised only if the measured GPU memory fits them with a margin.
func TestFind_KeepsTheGPUsThatTheMemoryNeeds(t *testing.T) {
	held := func(bytes float64) *float64 { return &bytes }
	for name, c := range map[string]struct {
		gpu    float64
		memory *float64
		saving string // "": unknown
	}{
		"memory that fits 4 of 8 GPUs":            {0.2, held(250 << 30), "88"}, // 250 x 1.25 = 312.5 of 320 GiB
		"memory that is too much for 4":           {0.2, held(260 << 30), ""},   // 325
		"memory that was not measured":            {0.2, nil, ""},
		"no use, no memory":                       {0, held(0), "120"},
		"no use, and memory that the program has": {0, held(100 << 30), "88"},
		"no use, and memory that is unknown":      {0, nil, ""},
	} {
		in := healthy()
		in.recurring("fit", "big", c.gpu, 10, 30<<30)
		for i := range in.Runs[len(in.Runs)-4:] {
			in.Runs[len(in.Runs)-1-i].GPUMemory = c.memory
		}
		r := Find(in)
		if len(r.Findings) != 1 {
			t.Fatalf("%s: %+v", name, r.Findings)
		}
		f, saving := r.Findings[0], ""
		if f.Saving != nil {
			saving = f.Saving.String()
		}
		if saving != c.saving || strings.Contains(f.Evidence, "fits with a margin") != (saving != "") ||
			!strings.Contains(f.Evidence, "its GPUs were used") {
			t.Errorf("%s: saves %q: %s", name, saving, f.Evidence)
		}
	}
}
