package pipeline

import (
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"scrimp/internal/test/must"
)

// rated is a pipeline whose last stage deploys behind gates on the figures of the first.
func rated(t testing.TB, gates ...Gate) *Spec {
	t.Helper()
	s, err := New(ratedStages(gates...))
	must.Do(t, err)
	return s
}

func ratedStages(gates ...Gate) []Stage {
	return []Stage{
		{Name: "evaluate", Deps: []string{"data"}, Outs: []string{"report.json", "each.csv"}, Metrics: []string{"report.json"}, Examples: "each.csv"},
		{Name: "deploy", Deps: []string{"report.json"}, Outs: []string{"live"}, Gates: gates},
	}
}

func judged(s *Spec, value, base string) ([]Verdict, error) {
	var d *Deployed
	if base != "" {
		d = &Deployed{Version: 7, Run: "r-7", Metrics: map[string]map[string]string{"evaluate": {"acc": base}}}
	}
	return s.Judge(1, func(int) map[string]string { return map[string]string{"acc": value} }, d)
}

// thousandths is a whole number of thousandths as people write it, with or without zeros at its end.
func thousandths(n int, long bool) string {
	text := new(big.Rat).SetFrac64(int64(n), 1000).FloatString(3)
	if !long {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// A gain passes exactly if it is at least the limit, in whole numbers; minimize turns it around, relative scales it.
func TestJudge_PassesExactlyFromTheLimitOn(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	edge := 0
	for n := range 4000 {
		value, base, gain := rng.IntN(1001), rng.IntN(1001), rng.IntN(60)
		if n%2 == 0 && base+gain <= 1000 {
			value = base + gain + rng.IntN(3) - 1 // at the limit, or one off it
			value = max(0, min(1000, value))
		}
		g := Gate{Metric: "evaluate.acc", MinGain: thousandths(gain, n%3 == 0)}
		if n%5 == 0 { // the same as a percentage
			g.MinGain = new(big.Rat).SetFrac64(int64(gain), 10).FloatString(1) + "%"
		}
		better := value - base
		if n%7 == 0 {
			g.Goal, better = Minimize, base-value
		}
		want := better >= gain
		if n%11 == 0 {
			if g.Relative = true; base == 0 {
				continue
			}
			g.MinGain = fmt.Sprint(gain, "%")
			want = better*100 >= gain*base
		}
		v, err := judged(rated(t, g), thousandths(value, n%2 == 0), thousandths(base, n%4 == 0))
		if err != nil || len(v) != 1 || v[0].Pass != want || v[0].Version != 7 || v[0].Run != "r-7" {
			t.Fatalf("%+v of %d against %d: %+v, %v, want %v", g, value, base, v, err, want)
		}
		if better == gain {
			edge++
		}
		if v[0].Gain != thousandths(better, false) {
			t.Errorf("%d against %d is a gain of %s", value, base, v[0].Gain)
		}
	}
	if edge < 200 {
		t.Errorf("only %d were at the limit", edge)
	}
}

// The same input gives the same verdict, and the example of the documents is as it says.
func TestJudge_OfWrittenDecimals(t *testing.T) {
	for _, c := range []struct {
		gate        Gate
		value, base string
		pass        bool
		why         string
	}{
		{Gate{MinGain: "0.5%", Against: "deployed"}, "0.905", "0.900", true, "acc of evaluate is 0.905 against 0.900 of version 7, which is deployed: gain 0.005 reaches the required 0.005"},
		{Gate{MinGain: "0.5%"}, "0.9049999999999999999", "0.900", false, "is below the required 0.005"},
		{Gate{MinGain: "0.5%", Relative: true}, "0.9045", "0.9", true, "gain 0.0045 reaches the required 0.0045"},
		{Gate{MinGain: "1%", Relative: true}, "120", "-100", true, "the required 1"},
		{Gate{MinGain: "0", Goal: Minimize}, "12.0", "12", true, "gain 0 reaches the required 0"},
		{Gate{MinGain: "0", Goal: Minimize}, "12.1", "12", false, "gain -0.1 is below the required 0"},
		{Gate{MinGain: "0.01", Against: "0.89"}, "0.9", "0.99", true, "0.9 against 0.89: gain 0.01 reaches"},
		{Gate{MinGain: "0.01"}, "0.9", "", true, "acc of evaluate is 0.9; nothing is deployed yet"},
		{Gate{MinGain: "0", Min: "0.95"}, "0.9", "0.1", false, "below the min of 0.95"},
		{Gate{MinGain: "2"}, "92", "90", true, "gain 2 reaches the required 2"},
	} {
		c.gate.Metric = "acc"
		v, err := judged(rated(t, c.gate), c.value, c.base)
		again, _ := judged(rated(t, c.gate), c.value, c.base)
		if err != nil || v[0].Pass != c.pass || !strings.Contains(v[0].Why, c.why) || fmt.Sprint(v) != fmt.Sprint(again) {
			t.Errorf("%+v: %+v, %v, want %v, %q", c.gate, v, err, c.pass, c.why)
		}
	}
}

// What cannot be compared is no verdict: the stage fails.
func TestJudge_FailsWhereNothingCanBeCompared(t *testing.T) {
	for _, c := range []struct {
		gate              Gate
		value, base, want string
	}{
		{Gate{MinGain: "0.5%"}, "92", "90", "means points of a fraction from 0 to 1, and 90 is none: write relative: true"},
		{Gate{MinGain: "0.5%"}, "1.2", "0.9", "and 1.2 is none"},
		{Gate{MinGain: "0.5%", Relative: true}, "0.1", "0", "a share of the value compared with, which is 0"},
		{Gate{MinGain: "0.5%", Relative: true}, "0.1", "0", "or write against: and a number for one run"},
		{Gate{MinGain: "1%"}, "0.9", "12", "and 12 is none: write relative: true, or min_gain in units of the metric; or write against:"},
		{Gate{MinGain: "1%"}, "12", "", "and 12 is none"}, // the first version: no later one could be compared with it
		{Gate{MinGain: "1%", Relative: true}, "0", "", "which is 0"},
		{Gate{MinGain: "1%", Confidence: "95%"}, "12", "", "and 12 is none"},
		{Gate{MinGain: "0"}, "many", "0.1", "no decimal"},
	} {
		c.gate.Metric = "evaluate.acc"
		if _, err := judged(rated(t, c.gate), c.value, c.base); !errors.Is(err, ErrMetric) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.gate, err, c.want)
		}
	}
	s := rated(t, Gate{Metric: "acc", MinGain: "0"})
	_, err := s.Judge(1, func(int) map[string]string { return map[string]string{"acc": "1"} }, &Deployed{Version: 2})
	if !errors.Is(err, ErrMetric) || !strings.Contains(err.Error(), "version 2, which is deployed, has not reported it") {
		t.Errorf("against a version without the metric: %v", err)
	}
}

// A gain that lies outside the interval of its own examples is refused: the two are of different things.
func TestSettle_RefusesAGainOutsideItsInterval(t *testing.T) {
	for _, c := range []struct {
		gain, low, high string
		fine            bool
	}{
		{"-0.4", "0.48", "0.62", false}, {"0.7", "0.48", "0.62", false}, {"0.48", "0.48", "0.62", true}, {"0.62", "0.48", "0.62", true},
		{"0.00000000000000004", "0", "0", true}, {"0", "0.005", "0.005", false}, {"0.0049999", "0.005", "0.005", true},
	} {
		v := Verdict{Metric: "acc", Stage: "evaluate", Value: "0.4", Base: "0.4", Gain: c.gain, Limit: "0", Open: true}
		low, err := Decimal(c.low)
		must.Do(t, err)
		err = v.Settle(Interval{Low: c.low, High: c.high, Confidence: "95%"}, low)
		if (err == nil) != c.fine || c.fine && !v.Pass || !c.fine && (v.Pass || !strings.Contains(err.Error(), "with more digits")) {
			t.Errorf("a gain of %s within %s to %s: %+v, %v", c.gain, c.low, c.high, v, err)
		}
	}
}

// With a confidence the verdict is open until its interval is known; the lower bound then decides, at the limit too.
func TestSettle_TakesTheLowerBound(t *testing.T) {
	for low, pass := range map[string]bool{"0.005": true, "0.0050000001": true, "0.0049999": false, "-1": false} {
		v, err := judged(rated(t, Gate{Metric: "acc", MinGain: "0.5%", Confidence: "95%"}), "0.92", "0.9")
		if err != nil || !v[0].Open || v[0].Pass || Fails(v) != nil {
			t.Fatalf("%+v, %v", v, err)
		}
		bound, _ := Decimal(low)
		if err := v[0].Settle(Interval{Confidence: "95%", Low: low, High: "1"}, bound); err != nil || v[0].Open || v[0].Pass != pass {
			t.Errorf("with a lower bound of %s: %+v, %v", low, v[0], err)
		}
		if (Fails(v) == nil) != pass {
			t.Errorf("with a lower bound of %s the gate fails: %v", low, !pass)
		}
	}
}

func TestNew_RefusesGatesThatCannotBeJudged(t *testing.T) {
	for want, gates := range map[string][]Gate{
		"min_gain -1 is negative":                                {{Metric: "acc", MinGain: "-1"}},
		"min_gain: \"more\" is no decimal number":                {{Metric: "acc", MinGain: "more"}},
		"min_gain: \"\" is no decimal number":                    {{Metric: "acc", MinGain: "%"}},
		"min_gain 0.5 with relative: true may mean percent":      {{Metric: "acc", MinGain: "0.5", Relative: true}},
		"goal \"best\" is unknown":                               {{Metric: "acc", MinGain: "1", Goal: "best"}},
		"against stands without min_gain":                        {{Metric: "acc", Against: "deployed"}},
		"goal stands without min_gain":                           {{Metric: "acc", Goal: "minimize"}},
		"there is no min_gain":                                   {{Metric: "acc", Min: "1", Against: "0.9"}},
		"confidence is that of a gain":                           {{Metric: "acc", Min: "1", Confidence: "95%"}},
		"against: \"0.9%\" is no decimal number":                 {{Metric: "acc", MinGain: "0", Against: "0.9%"}},
		"and 90 is none":                                         {{Metric: "acc", MinGain: "1%", Against: "90"}},
		"which is 0: write relative: false":                      {{Metric: "acc", MinGain: "1%", Against: "0", Relative: true}},
		"confidence 0% is out of bounds: write 50% to 99.9%":     {{Metric: "acc", MinGain: "0", Confidence: "0%"}},
		"confidence 100% is out of bounds: write 50% to 99.9%":   {{Metric: "acc", MinGain: "0", Confidence: "100%"}},
		"confidence \"0.95\" is no percentage":                   {{Metric: "acc", MinGain: "0", Confidence: "0.95"}},
		"two gates judge acc of evaluate":                        {{Metric: "acc", Min: "0"}, {Metric: "evaluate.acc", MinGain: "0"}},
		"the stage deploy reports no metrics: write its metrics": {{Metric: "deploy.acc", Min: "0"}},
		"there are 21 gates":                                     make([]Gate, 21),
	} {
		_, err := New(ratedStages(gates...))
		var p *Problem
		if !errors.As(err, &p) || p.Field != "gate" || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", gates, err, want)
		}
	}
	gate := Gate{Metric: "evaluate.acc", MinGain: "0"}
	for want, change := range map[string]func([]Stage) []Stage{
		"no stage deploys one: write deploy: true": func(s []Stage) []Stage { s[1].Name = "push"; return s },
		"after deploy has replaced that": func(s []Stage) []Stage {
			return append(s[:1:1], Stage{Name: "deploy", Deps: []string{"report.json"}, Outs: []string{"live"}},
				Stage{Name: "tell", Deps: []string{"live"}, Gate: &gate})
		},
		"deploy deploys too": func(s []Stage) []Stage {
			s[1].Deploy = true
			return append(s, Stage{Name: "push", Deploy: true, After: []string{"deploy"}})
		},
		"give one of the two":          func(s []Stage) []Stage { s[1].Gate = &gate; return s },
		"each.csv is none of its outs": func(s []Stage) []Stage { s[0].Outs = s[0].Outs[:1]; return s },
		"leads out of the work folder": func(s []Stage) []Stage { s[0].Examples = "../each.csv"; return s },
		"write examples: FILE in evaluate, or leave": func(s []Stage) []Stage {
			s[0].Examples, s[1].Gates[0].Confidence = "", "95%"
			return s
		},
	} {
		if _, err := New(change(ratedStages(gate))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// The stage named deploy deploys unless another says that it does.
func TestDeploys_IsTheStageThatSaysSo(t *testing.T) {
	for _, c := range []struct {
		stages []Stage
		want   string
	}{
		{[]Stage{{Name: "a"}, {Name: "deploy"}}, "deploy"}, {[]Stage{{Name: "a", Deploy: true}, {Name: "deploy"}}, "a"},
		{[]Stage{{Name: "deploys"}, {Name: "deploy@eu"}}, ""},
	} {
		s, err := New(c.stages)
		must.Do(t, err)
		got := ""
		if n := s.Deploys(); n >= 0 {
			got = s.Stages[n].Name
		}
		if got != c.want {
			t.Errorf("%+v: %q deploys, want %q", c.stages, got, c.want)
		}
	}
}

// What words say of a gate is what it asks for.
func TestText_SaysWhatAGateAsksFor(t *testing.T) {
	for want, g := range map[string]Gate{
		"acc at least 0.9 at most 1":                                 {Min: "0.9", Max: "1"},
		"acc at least 0.9, at least 0.005 higher than deployed":      {Min: "0.9", MinGain: "0.5%"},
		"acc at least 0.5% higher than deployed":                     {MinGain: "0.5%", Relative: true},
		"acc no worse (lower is better) than 12 with 90% confidence": {MinGain: "0", Goal: Minimize, Against: "12", Confidence: "90%"},
	} {
		if g.Metric = "acc"; g.Text() != want {
			t.Errorf("%q, want %q", g.Text(), want)
		}
	}
}
