package serving_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"scrimp/internal/market/catalog"
	"scrimp/internal/work/serving"
	"scrimp/internal/work/serving/load"
	"scrimp/internal/work/serving/simulation"
)

// waves is a Poisson trace of ten minutes that doubles its rate for 200 seconds and halves it again.
func waves(seed uint64) load.Trace {
	r := rand.New(rand.NewPCG(seed, 3))
	var t load.Trace
	for at := 0.0; ; {
		at += r.ExpFloat64() / (4 * (1 + 0.8*float64(int(at)/200%2)))
		if at >= 600 {
			t.Window = 600 * time.Second
			return t
		}
		t.At = append(t.At, time.Duration(at*1e9))
	}
}

// With a batch and a wait fixed by hand, no kind of rule rents machines for a shorter time than the search over all of them finds.
func TestSearch_FindsNoDearerRuleThanABatchFixedByHand(t *testing.T) {
	for seed := range uint64(3) {
		trace := waves(seed)
		e := serving.Engine{Service: load.Measured{{Batch: 1, Seconds: 1}, {Batch: 8, Seconds: 2.2}, {Batch: 64, Seconds: 9}},
			Slots: 1, Batch: 64}
		opts := serving.Options{Targets: []simulation.Target{{PerMille: 990, Limit: 8 * time.Second}, {PerMille: 500, Limit: 4 * time.Second}},
			Kinds: simulation.Kinds, Machines: 64, Cold: 20 * time.Second, Keep: 30 * time.Second, Poll: 5 * time.Second,
			Warm: load.Hours{From: 0, To: 1}}
		found := map[simulation.Kind]time.Duration{}
		all, ok := serving.Search(trace, e, opts)
		if !ok {
			t.Fatal("nothing meets the targets")
		}
		for _, o := range all {
			found[o.Rule.Kind] = o.Rented()
		}
		for _, batch := range []int{1, 2, 4, 8, 16, 32, 64} {
			for _, wait := range []time.Duration{0, 400 * ms, 1600 * ms} {
				by := opts
				by.Batches, by.Waits = []int{batch}, []time.Duration{wait}
				list, ok := serving.Search(trace, e, by)
				for _, o := range list {
					best, is := found[o.Rule.Kind]
					if o.Rule.Min == o.Rule.Max { // its last answer may be earlier, with no machine less
						best -= time.Second
					}
					if ok && (!is || o.Rented() < best) {
						t.Errorf("%v rents %v, and the search over all rents %v", o.Rule, o.Rented(), best)
					}
				}
			}
		}
	}
}

// A choice is certain where the slow end of its estimate meets the targets, played here again; certain ones come first.
func TestChoices_PlaySlowEndOfEachRuleAndPutCertainOnesFirst(t *testing.T) {
	model := named(t, "llama-3-8b")
	targets := []simulation.Target{{PerMille: 990, Limit: 12 * time.Second}}
	ask := serving.Ask{Trace: chat(60, 300, 60), Model: &model, Formats: load.Formats,
		Options: serving.Options{Targets: targets, Cold: time.Second}}
	list := play(t, []catalog.Listing{listing("a", "cheap", "L4", 1, "1"), listing("a", "dear", "H100-SXM-80GB", 1, "9")}, ask).Choices()
	counts := map[bool]int{}
	var fixed []string
	for i, c := range list {
		slow := simulation.NewSimulation(ask.Trace, c.Engine.Slow, c.Engine.Slots, nil).Run(c.Outcome.Rule)
		if c.Sure != slow.Meets(targets) || !c.Met {
			t.Errorf("%v on %s: certain is %v, and the slow end has a p99 of %v", c.Outcome.Rule, c.Name(), c.Sure, slow.Quantiles[990])
		}
		if counts[c.Sure]++; i > 0 && c.Sure && !list[i-1].Sure {
			t.Errorf("%v on %s is certain, and comes after an uncertain one", c.Outcome.Rule, c.Name())
		}
	}
	for _, c := range list { // the fewest machines that surely do, counted up here
		if c.Outcome.Rule.Kind != simulation.Fixed || !c.Sure {
			continue
		}
		fewest := 1
		for ; ; fewest++ {
			rule := simulation.Rule{Batch: 1, Min: fewest, Max: fewest}
			if simulation.NewSimulation(ask.Trace, c.Engine.Slow, c.Engine.Slots, nil).Run(rule).Meets(targets) {
				break
			}
		}
		if c.Outcome.Rule.Max != fewest {
			t.Errorf("%d machines are certain on %s, and %d are enough", c.Outcome.Rule.Max, c.Name(), fewest)
		}
		fixed = append(fixed, c.Name())
	}
	if len(fixed) != 2 {
		t.Errorf("offers with certain fixed machines: %q", fixed)
	}
	if counts[true] == 0 || counts[false] == 0 {
		t.Errorf("%v: the case needs certain and uncertain ones", counts)
	}
}

// The same request costs the same whether the trace ends with it or a day later: a machine is paid until its stop.
func TestScaleToZero_PaysTheLastKeepAlive(t *testing.T) {
	rule := simulation.Rule{Kind: simulation.ScaleToZero, Batch: 1, Max: 2, Cold: 90 * time.Second, Keep: 5 * time.Minute}
	for _, window := range []time.Duration{0, 24 * time.Hour} {
		trace := load.Trace{At: []time.Duration{0}, Window: window}
		o := simulation.NewSimulation(trace, flat(2*time.Second), 1, nil).Run(rule)
		if o.Rented() != 392*time.Second { // 90 s to start, 2 s to answer, 300 s kept
			t.Errorf("window of %v: %v", window, o.Rented())
		}
	}
}
