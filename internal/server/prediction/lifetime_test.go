package prediction

import (
	"slices"
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/decide/plan"
	"scrimp/internal/job/spec"
	"scrimp/internal/test/must"
)

// lasting returns an on-demand machine with a maximum lifetime.
func lasting(zone string, life time.Duration) api.Listing {
	l := onDemand("hpc", zone, 100_000_000_000)
	l.Offer.MaxLifetime = life
	return l
}

// A program that saves does ten hours of work on two machines with a lifetime of six, one after the other. One that
// does not save gets a dearer machine that lasts long enough; without one the plan gives the reason and no figures.
func TestPlan_MachinesWithMaximumLifetime(t *testing.T) {
	t.Parallel()
	const saving, unsaving = "checkpoint: {dir: c}\n", ""
	dear := onDemand("hpc", "gpu", 300_000_000_000)
	for _, c := range []struct {
		name, text string
		sale       []api.Listing
		take       string
		feasible   bool
	}{
		{"it saves", saving, []api.Listing{lasting("short", 6*time.Hour), dear}, "hpc/short/m/on-demand", true},
		{"it saves nothing", unsaving, []api.Listing{lasting("short", 6*time.Hour), dear}, "hpc/gpu/m/on-demand", true},
		{"long enough", unsaving, []api.Listing{lasting("short", 11*time.Hour), dear}, "hpc/short/m/on-demand", true},
		{"nothing lives long enough", unsaving, []api.Listing{lasting("short", 6*time.Hour)}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			j, _, err := spec.Parse(spec.Run, "job.yaml", []byte("command: a\nwork: {steps: 1000, time: 10h}\n"+c.text), "", now)
			must.Do(t, err)
			m := api.Market{Clock: api.MarketClock{Name: "m", Speed: 1, Now: now}, Offers: c.sale}
			v := api.Server{Market: m.Clock,
				Engines: []api.Engine{{Name: "hpc", Timing: api.EngineTiming{Detect: 30, Boot: 60, Consistency: 10}}}}
			p, _ := Of(j, m, v, testRuns(), nil)
			if p.Take != c.take || p.Feasible != c.feasible {
				t.Errorf("it begins on %q (%s), feasible %v", p.Take, p.Why, p.Feasible)
			}
			switch {
			case !c.feasible:
				said := slices.ContainsFunc(p.Reasons, func(s string) bool { return strings.Contains(s, "checkpoint.dir") })
				if p.CostUSD != nil || p.FinishS != nil || p.OnDemandUSD != nil || !said {
					t.Errorf("cost %v, finish %v, on-demand %v: %q", p.CostUSD, p.FinishS, p.OnDemandUSD, p.Reasons)
				}
			case p.CostUSD == nil || p.CostUSD[2] > 1.1*10*map[bool]float64{true: 0.1, false: 0.3}[strings.Contains(c.take, "short")]:
				t.Errorf("cost %v: ten hours at its rate, and a tenth more at most", p.CostUSD)
			}
		})
	}
}

// A job of five machines is not planned on four, only on five. A job of two to five is planned on both.
func TestPlan_NeedsAllMachinesOfJob(t *testing.T) {
	t.Parallel()
	four, five := onDemand("hpc", "four", 100_000_000_000), onDemand("hpc", "five", 300_000_000_000)
	four.Offer.Machines, five.Offer.Machines = 4, 5
	own := ofOwn(4, 0)
	for _, c := range []struct {
		nodes string
		sale  []api.Listing
		take  string
	}{
		{"5", []api.Listing{four, five}, "hpc/five/m/on-demand"},
		{"2..5", []api.Listing{four, five}, "hpc/four/m/on-demand"},
		{"4", []api.Listing{four, five}, "hpc/four/m/on-demand"},
		{"5", []api.Listing{four, own}, ""},
	} {
		p := plannedOn(t, "nodes: "+c.nodes+"\n", c.sale...)
		if p.Take != c.take || p.Feasible != (c.take != "") {
			t.Errorf("%s machines begin on %q (%s), feasible %v: %+v", c.nodes, p.Take, p.Why, p.Feasible, p.Rejected)
		}
		if c.take == "" && !slices.ContainsFunc(p.Rejected, func(r api.PlanRefusal) bool { return r.Why == string(plan.TooFew) }) {
			t.Errorf("it does not say why: %+v", p.Rejected)
		}
	}
}

// Unknown work never counts as too long.
func TestPlan_UnknownWorkIgnoresLifetime(t *testing.T) {
	t.Parallel()
	j, _, err := spec.Parse(spec.Run, "job.yaml", []byte("command: a\n"), "", now)
	must.Do(t, err)
	m := api.Market{Clock: api.MarketClock{Name: "m", Speed: 1, Now: now}, Offers: []api.Listing{lasting("short", 10*time.Minute)}}
	v := api.Server{Market: m.Clock,
		Engines: []api.Engine{{Name: "hpc", Timing: api.EngineTiming{Detect: 30, Boot: 60, Consistency: 10}}}}
	if p, _ := Of(j, m, v, testRuns(), nil); p.Take != "hpc/short/m/on-demand" || !p.Feasible {
		t.Errorf("it begins on %q (%s): %v", p.Take, p.Why, p.Rejected)
	}
}

// If machines may be interrupted, the plan of a job that does not save states the cost of an interruption.
func TestPlan_StatesCostOfInterruptionWithoutSaves(t *testing.T) {
	t.Parallel()
	spot := onDemand("hpc", "gpu", 100_000_000_000)
	spot.Offer.Capacity, spot.Offer.ID = api.Spot, strings.Replace(spot.Offer.ID, "on-demand", "spot", 1)
	spot.Quote.Offer = spot.Offer.ID
	for _, c := range []struct {
		text string
		sale api.Listing
		says bool
	}{{"", spot, true}, {"checkpoint: {dir: c}\n", spot, false}, {"", onDemand("hpc", "gpu", 100_000_000_000), false}} {
		j, _, err := spec.Parse(spec.Run, "job.yaml", []byte("command: a\nwork: {steps: 1000, time: 1h}\n"+c.text), "", now)
		must.Do(t, err)
		m := api.Market{Clock: api.MarketClock{Name: "m", Speed: 1, Now: now}, Offers: []api.Listing{c.sale}}
		p, _ := Of(j, m, api.Server{Market: m.Clock}, 1, nil)
		says := slices.ContainsFunc(p.Reasons, func(s string) bool { return strings.Contains(s, "every interruption repeats all of it") })
		if p.Take == "" || says != c.says {
			t.Errorf("%q on %s: begins on %q, says %q", c.text, c.sale.Offer.ID, p.Take, p.Reasons)
		}
	}
}

// The first reason of a plan that is not feasible is why it is not, and not that the job saves nothing.
func TestPlan_FirstReasonIsWhyItIsNotFeasible(t *testing.T) {
	t.Parallel()
	j, _, err := spec.Parse(spec.Run, "job.yaml", []byte("command: a\nwork: {steps: 1000, time: 10h}\ndeadline: in 5h\n"), "", now)
	must.Do(t, err)
	spot := onDemand("hpc", "gpu", 100_000_000_000)
	spot.Offer.Capacity, spot.Offer.ID = api.Spot, strings.Replace(spot.Offer.ID, "on-demand", "spot", 1)
	spot.Quote.Offer = spot.Offer.ID
	m := api.Market{Clock: api.MarketClock{Name: "m", Speed: 1, Now: now}, Offers: []api.Listing{spot}}
	p, _ := Of(j, m, api.Server{Market: m.Clock}, 1, nil)
	n := len(p.Reasons)
	if p.Feasible || n < 2 || !strings.Contains(p.Reasons[0], "in time") || !strings.Contains(p.Reasons[n-1], "every interruption repeats all of it") {
		t.Errorf("feasible %v, says %q", p.Feasible, p.Reasons)
	}
}

// A plan that begins on spot says why that is a poor choice for short work, as scrimp check does, and with its limit.
func TestPlan_SaysWhySpotIsPoor(t *testing.T) {
	t.Parallel()
	spot := onDemand("hpc", "gpu", 100_000_000_000)
	spot.Offer.Capacity, spot.Offer.ID = api.Spot, strings.Replace(spot.Offer.ID, "on-demand", "spot", 1)
	spot.Quote.Offer = spot.Offer.ID
	for _, c := range []struct {
		text string
		sale api.Listing
		says string
	}{
		{"work: {time: 20m}\n", spot, "spot is a poor choice for this job: 20m 00s of work, and spot pays above 30m 00s: it saves little " +
			"on less, and an interruption costs another start and all work since the first, as no checkpoint is kept; resources.capacity: " +
			"on-demand, or bundle several such runs into one job"},
		{"work: {time: 20m}\ncheckpoint: {dir: c}\n", spot, "an interruption costs another start; resources.capacity"},
		{"work: {time: 20m}\n", onDemand("hpc", "gpu", 100_000_000_000), ""},
		{"work: {time: 31m}\ncheckpoint: {dir: c}\n", spot, ""},
	} {
		j, _, err := spec.Parse(spec.Run, "job.yaml", []byte("command: a\n"+c.text), "", now)
		must.Do(t, err)
		m := api.Market{Clock: api.MarketClock{Name: "m", Speed: 1, Now: now}, Offers: []api.Listing{c.sale}}
		p, _ := Of(j, m, api.Server{Market: m.Clock}, 1, nil)
		said := strings.Join(p.Reasons, "\n")
		if p.Take == "" || c.says == "" && strings.Contains(said, "poor") || !strings.Contains(said, c.says) {
			t.Errorf("%q begins on %q, and says %q, not %q", c.text, p.Take, said, c.says)
		}
	}
}

// A plan for an accelerator that nobody sells names the nearest ones, and the one that a misspelt name may mean.
func TestPlan_NamesTheNearestAccelerators(t *testing.T) {
	t.Parallel()
	var sale []api.Listing
	for _, kind := range []string{"T4", "H100", "A100-80GB", "H200", "L4", ""} {
		l := onDemand("hpc"+strings.ToLower(kind), "gpu", 100_000_000_000)
		l.Offer.Accelerator, l.Offer.Accelerators = kind, min(1, len(kind))
		sale = append(sale, l)
	}
	for wanted, want := range map[string]string{
		"H10O": "no offer of this market has the accelerator H10O (did you mean H100?); the nearest for sale are H100, H200, L4, T4: scrimp market",
		"B200": "no offer of this market has the accelerator B200; the nearest for sale are H200, H100, L4, T4: scrimp market",
	} {
		j, _, err := spec.Parse(spec.Run, "job.yaml", []byte("command: a\nresources: {accelerator: '"+wanted+"'}\n"), "", now)
		must.Do(t, err)
		m := api.Market{Clock: api.MarketClock{Name: "m", Speed: 1, Now: now}, Offers: sale}
		if p, _ := Of(j, m, api.Server{Market: m.Clock}, 1, nil); p.Feasible || len(p.Reasons) == 0 || !strings.HasPrefix(p.Reasons[0], want) {
			t.Errorf("%s: %q", wanted, p.Reasons)
		}
	}
}
