package show_test

import (
	"fmt"
	"strings"
	"testing"

	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/comparison"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/golden"
	"scrimp/internal/work/ab"
)

// compared returns a comparison with the pairs of the design. The first pairs are complete, with the given gains.
func compared(d ab.Design, gains ...float64) comparison.Comparison {
	v := comparison.Comparison{Group: "train-ab", Baseline: "train", Metric: d.Metric, Design: d, State: "over", Closed: true, Currency: money.USD,
		Arms: [2]comparison.Arm{{Name: "baseline"}, {Name: "change"}}}
	for i := range d.Pairs {
		for k := range v.Arms {
			r := comparison.Run{Seed: i + 1, State: "waiting"}
			if i < len(gains) {
				cost, _ := money.Estimated([]float64{0.812, 0.497}[k])
				r = comparison.Run{Seed: i + 1, Job: fmt.Sprintf("train-ab.%s-%d", v.Arms[k].Name, i+1), State: "succeeded", Closed: true, Cost: cost,
					Times:  map[string]float64{comparison.PerRun: 300, comparison.PerEpoch: []float64{41.2, 24.9}[k]},
					Memory: map[string]float64{comparison.OfGPU: []float64{11.8e9, 7.02e9}[k]},
					Value:  new([]float64{0.904 + 0.0011*float64(i%4), 0.904 + 0.0011*float64(i%4) + gains[i]}[k])}
			}
			v.Arms[k].Runs = append(v.Arms[k].Runs, r)
			v.Spent = v.Spent.Add(r.Cost)
		}
	}
	v.Sum()
	return v
}

func TestAB_FitsItsTerminal(t *testing.T) {
	d := ab.Design{Metric: "accuracy", Maximize: true, Tolerance: 0.002, Relative: true, Pairs: 6, First: 1, Set: []string{"env.PRECISION=bf16"}}
	three, plain := d, ab.Design{Pairs: 2, First: 1, Set: d.Set}
	three.Pairs = 3
	broken := compared(d, -0.0001)
	broken.Arms[1].Runs[1].State, broken.Arms[1].Runs[1].Closed, broken.Arms[1].Runs[1].Why = "failed", true, "out of memory\x1b[2J"
	broken.Sum()
	silent := compared(d, 0)
	silent.Arms[0].Runs[0].Value, silent.Arms[0].Runs[0].Reported = nil, []string{"loss"}
	silent.Sum()
	nan := compared(d, 0)
	nan.Arms[1].Runs[0].Value, nan.Arms[1].Runs[0].NoNumber = nil, true
	nan.Sum()
	whole, one := compared(d, 0), d
	delete(whole.Arms[1].Runs[0].Times, comparison.PerEpoch)
	whole.Sum()
	one.Pairs = 1
	list := []comparison.Comparison{
		compared(d, -0.0001, -0.0002, 0.0001, -0.0003, -0.0004, 0.0001), compared(d, -0.005, 0.004), compared(three, 0, 0.001, 0.0002),
		compared(plain, 0, 0), compared(d), broken, silent, compared(d, -0.01, -0.02, -0.01, -0.015, -0.02, -0.03), nan, whole,
	}
	budget := money.Picos(4_000_000_000_000)
	plans := []comparison.Plan{{Name: "train-ab", Baseline: "train", Design: d, Runs: 12, Budget: new("$4"), Each: [2]*[3]float64{{0.8, 0.9, 1}, {0.4, 0.5, 0.6}},
		Notes: []string{"outputs of the runs are not kept"}}, {Name: "train-ab", Baseline: "train", Design: three, Runs: 6}, {Name: "a", Baseline: "b", Design: plain, Runs: 4},
		{Name: "a", Baseline: "b", Design: one, Runs: 2}}
	for width, name := range map[int]string{100: "100", 80: "80", 60: "60", 0: "piped"} {
		p, text := show.Place{Width: width, Now: now}, ""
		for _, v := range list {
			text += v.Text(p) + v.Progress() + "\n\n"
		}
		for i := range plans {
			plans[i].Total(&budget)
			text += plans[i].Text(p) + "\n"
		}
		golden.Check(t, fmt.Sprintf("ab.%s.txt", name), text)
		for line := range strings.Lines(text) {
			if n := draw.Width(strings.TrimRight(line, "\n")); width > 0 && n > width && !strings.Contains(line, " over, ") {
				t.Errorf("%d columns: %d in %q", width, n, line)
			}
		}
		if strings.Contains(text, "\x1b") {
			t.Error("a reason steers the terminal")
		}
	}
	text := strings.Join(strings.Fields(list[1].Text(show.Place{})+nan.Text(show.Place{})+whole.Text(show.Place{})+plans[3].Text(show.Place{})), " ")
	for _, want := range []string{"284 more pairs would probably tell, and cost about $371.76. A comparison has at most 50: a larger",
		"the accuracy that train-ab.change-1 has reported is not a number, but nan or infinite", "time of whole runs: not all of them reported epochs, or steps, over",
		"1 pair of two runs, with seed 1; both", "no verdict: 1 pair never tells with"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says %q:\n%s", want, text)
		}
	}
	for i, want := range []ab.Verdict{ab.NoWorse, ab.CannotTell, ab.CannotTell, "", ab.CannotTell, ab.CannotTell, ab.CannotTell, ab.Worse} {
		if got := list[i].Verdict; got == nil && want != "" || got != nil && *got != want {
			t.Errorf("comparison %d is %v, want %s", i, got, want)
		}
		if v := list[i]; v.Complete == 0 && v.Design.Pairs == 6 && (v.Saving != nil || v.Arms[0].Cost != nil || v.Arms[0].Mean != nil) {
			t.Errorf("without a complete pair something is known: %+v", v)
		}
	}
	if !list[5].Failed || !list[6].Failed || list[5].MorePairs != nil {
		t.Errorf("what has failed: %+v", list[5])
	}
}
