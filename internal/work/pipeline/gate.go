package pipeline

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// checkGate finds the stage whose metric a gate judges.
func (s *Spec) checkGate(i int) error {
	x := &s.Stages[i]
	g := x.Gate
	if g == nil {
		return nil
	}
	wrong := func(format string, a ...any) error { return &Problem{x.Name, "gate", fmt.Errorf(format, a...)} }
	if g.Metric == "" || len(g.Metric) > MaxText {
		return wrong("name the metric that it judges, such as metric: evaluate.accuracy")
	}
	if g.Min == "" && g.Max == "" {
		return wrong("give min, max or both")
	}
	var bounds []*big.Rat
	for _, text := range []string{g.Min, g.Max} {
		if text == "" {
			continue
		}
		v, err := Decimal(text)
		if err != nil {
			return wrong("%w", err)
		}
		bounds = append(bounds, v)
	}
	if len(bounds) == 2 && bounds[0].Cmp(bounds[1]) > 0 {
		return wrong("min %s is above max %s", g.Min, g.Max)
	}
	stage, _ := s.judged(i)
	if stage < 0 {
		return wrong("no stage that comes before %s reports metrics: write metrics of that stage, and its name before the "+
			"metric's, such as evaluate.%s", x.Name, g.Metric)
	}
	return nil
}

// judged is the stage whose metric the gate of another judges, and the metric's name there; -1: there is none.
func (s *Spec) judged(i int) (stage int, name string) {
	g := s.Stages[i].Gate
	var reports []int
	for _, n := range s.before(i) {
		if len(s.Stages[n].Metrics) > 0 {
			reports = append(reports, n)
		}
	}
	for _, n := range reports {
		if rest, found := strings.CutPrefix(g.Metric, s.Stages[n].Name+"."); found {
			return n, rest
		}
	}
	if len(reports) == 0 {
		return -1, ""
	}
	return reports[len(reports)-1], g.Metric
}

// before are all stages that come before one, directly or not, by position.
func (s *Spec) before(i int) []int {
	seen := map[int]bool{}
	for todo := slices.Clone(s.Stages[i].Needs); len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[n] {
			seen[n] = true
			todo = append(todo, s.Stages[n].Needs...)
		}
	}
	list := make([]int, 0, len(seen))
	for n := range seen {
		list = append(list, n)
	}
	slices.Sort(list)
	return list
}

// Judge says whether a stage may begin by its gate, from the metrics of each stage by name, as written decimals. Why is
// the comparison in words. ErrMetric: nobody has reported the metric.
func (s *Spec) Judge(i int, metrics func(stage int) map[string]string) (pass bool, why string, err error) {
	g := s.Stages[i].Gate
	if g == nil {
		return true, "", nil
	}
	stage, name := s.judged(i)
	text, there := metrics(stage)[name]
	if !there {
		return false, "", fmt.Errorf("%w: %s has reported no %s", ErrMetric, s.Stages[stage].Name, name)
	}
	v, err := Decimal(text)
	if err != nil {
		return false, "", fmt.Errorf("%w: %s of %s: %w", ErrMetric, name, s.Stages[stage].Name, err)
	}
	for _, b := range []struct {
		bound, is, words string
		fails            int
	}{{g.Min, g.Min, "below the min of", -1}, {g.Max, g.Max, "above the max of", 1}} {
		if b.bound == "" {
			continue
		}
		bound, err := Decimal(b.bound)
		if err != nil {
			return false, "", err
		}
		if v.Cmp(bound) == b.fails {
			return false, fmt.Sprintf("%s of %s is %s, %s %s", name, s.Stages[stage].Name, text, b.words, b.is), nil
		}
	}
	return true, fmt.Sprintf("%s of %s is %s", name, s.Stages[stage].Name, text), nil
}

// ErrMetric says that a gate has nothing to judge.
var ErrMetric = errors.New("the gate has nothing to judge")

// maxDigits bounds a decimal.
const maxDigits = 100

// Decimal reads a number as it is written, exactly: 0.5, -3, 1e-4.
func Decimal(text string) (*big.Rat, error) {
	if len(text) > maxDigits || strings.ContainsAny(text, "/_xXpPoObB") {
		return nil, fmt.Errorf("%.60q is no decimal number", text)
	}
	if _, exp, found := strings.Cut(strings.ToLower(text), "e"); found {
		if len(strings.TrimLeft(exp, "+-0")) > 3 {
			return nil, fmt.Errorf("%.60q is out of all bounds", text)
		}
	}
	v, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, fmt.Errorf("%.60q is no decimal number", text)
	}
	return v, nil
}
