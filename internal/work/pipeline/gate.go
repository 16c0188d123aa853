package pipeline

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
)

// checkGates finds the stages whose metrics the gates judge.
func (s *Spec) checkGates() error {
	names := s.names()
	var above [][]uint64 // by stage, a bit for each predecessor; computed once, because there may be many stages
	for i := range s.Stages {
		if s.Stages[i].Gate == nil {
			continue
		}
		err := s.checkGate(i, names, func(n int) bool {
			if above == nil {
				above = s.above()
			}
			return above[i][n/64]>>(n%64)&1 == 1
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// above returns for each stage a bit for each direct or indirect predecessor.
func (s *Spec) above() [][]uint64 {
	all := make([][]uint64, len(s.Stages))
	for i := range s.Stages {
		bits := make([]uint64, (len(s.Stages)+63)/64)
		for _, n := range s.Stages[i].Needs {
			for w, b := range all[n] {
				bits[w] |= b
			}
			bits[n/64] |= 1 << (n % 64)
		}
		all[i] = bits
	}
	return all
}

// checkGate returns an error for an invalid gate of a stage; before reports the stage's predecessors.
func (s *Spec) checkGate(i int, names map[string]int, before func(n int) bool) error {
	x := &s.Stages[i]
	g := x.Gate
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
	switch found, name := s.judged(i, names, before); {
	case len(found) == 0:
		return wrong("no stage that comes before %s reports metrics: write metrics of that stage, and its name before the "+
			"metric's, such as evaluate.%s", x.Name, g.Metric)
	case len(found) > 1:
		names := []string{s.Stages[found[0]].Name, s.Stages[found[1]].Name}
		return wrong("%s may be a metric of %s: write its stage before it, such as %s.%s", g.Metric,
			strings.Join(names, " and of "), names[1], g.Metric)
	case name == "":
		return wrong("%s names no metric: write it behind the stage, such as %saccuracy", g.Metric, g.Metric)
	}
	return nil
}

// judged returns the stage whose metric a gate judges, and the metric's name there. A gate without a stage judges any
// predecessor that reports metrics; only one may exist.
func (s *Spec) judged(i int, names map[string]int, before func(n int) bool) (stages []int, metric string) {
	g := s.Stages[i].Gate
	if n := named(s.Stages, names, g); n >= 0 && n != i {
		return []int{n}, g.Metric[len(s.Stages[n].Name)+1:]
	}
	for n := range i {
		if len(s.Stages[n].Metrics) > 0 && len(stages) < 2 && before(n) {
			stages = append(stages, n)
		}
	}
	return stages, g.Metric
}

// names returns the positions of the stages.
func (s *Spec) names() map[string]int {
	all := make(map[string]int, len(s.Stages))
	for i := range s.Stages {
		all[s.Stages[i].Name] = i
	}
	return all
}

// named returns the stage in the name of a gate's metric, or -1. The longest name counts, because names may contain
// dots.
func named(list []Stage, byName map[string]int, g *Gate) int {
	stage := -1
	for at := 0; g != nil && at < min(len(g.Metric), maxName+1); at++ {
		if n, there := byName[g.Metric[:at]]; there && g.Metric[at] == '.' && len(list[n].Metrics) > 0 {
			stage = n
		}
	}
	return stage
}

// before returns a function that reports direct and indirect predecessors by position.
func (s *Spec) before(i int) func(n int) bool {
	seen := make([]bool, len(s.Stages))
	for todo := slices.Clone(s.Stages[i].Needs); len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !seen[n] {
			seen[n] = true
			todo = append(todo, s.Stages[n].Needs...)
		}
	}
	return func(n int) bool { return seen[n] }
}

// Judge reports whether a stage may start by its gate, from the metrics of each stage by name, as written decimals. why
// is the comparison in words. The error is ErrMetric if nobody has reported the metric.
func (s *Spec) Judge(i int, metrics func(stage int) map[string]string) (pass bool, why string, err error) {
	g := s.Stages[i].Gate
	if g == nil {
		return true, "", nil
	}
	found, name := s.judged(i, s.names(), s.before(i))
	if len(found) != 1 {
		return false, "", fmt.Errorf("%w: no one stage before %s reports %s", ErrMetric, s.Stages[i].Name, g.Metric)
	}
	stage := found[0]
	text, there := metrics(stage)[name]
	if !there {
		return false, "", fmt.Errorf("%w: the metrics of %s have no number %s", ErrMetric, s.Stages[stage].Name, name)
	}
	v, err := Decimal(text)
	if err != nil {
		return false, "", fmt.Errorf("%w: %s of %s: %w", ErrMetric, name, s.Stages[stage].Name, err)
	}
	for _, b := range []struct {
		bound, words string
		fails        int
	}{{g.Min, "below the min of", -1}, {g.Max, "above the max of", 1}} {
		if b.bound == "" {
			continue
		}
		bound, err := Decimal(b.bound)
		if err != nil {
			return false, "", err
		}
		if v.Cmp(bound) == b.fails {
			return false, fmt.Sprintf("%s of %s is %s, %s %s", name, s.Stages[stage].Name, text, b.words, b.bound), nil
		}
	}
	return true, fmt.Sprintf("%s of %s is %s", name, s.Stages[stage].Name, text), nil
}

// ErrMetric reports that a gate has no metric to judge.
var ErrMetric = errors.New("the gate has nothing to judge")

// maxDigits bounds a decimal.
const maxDigits = 100

// Decimal parses a decimal exactly: 0.5, -3, 1e-4.
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
