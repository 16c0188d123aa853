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
	deploys := s.Deploys()
	before := func(i, n int) bool {
		if above == nil {
			above = s.above()
		}
		return above[i][n/64]>>(n%64)&1 == 1
	}
	for i := range s.Stages {
		x := &s.Stages[i]
		switch {
		case x.Deploy && i != deploys:
			return &Problem{x.Name, "deploy", fmt.Errorf("%s deploys too: a pipeline puts one version in place",
				s.Stages[deploys].Name)}
		case x.Gate != nil && len(x.Gates) > 0:
			return &Problem{x.Name, "gate", errors.New("it has gate and gates: give one of the two")}
		case len(x.Gates) > maxGates:
			return &Problem{x.Name, "gate", fmt.Errorf("there are %d gates: write at most %d", len(x.Gates), maxGates)}
		}
		if err := s.checkGatesOf(i, deploys, names, func(n int) bool { return before(i, n) }); err != nil {
			return err
		}
	}
	return nil
}

// checkGatesOf reports what is wrong with the gates of a stage; before says which stages come before it.
func (s *Spec) checkGatesOf(i, deploys int, names map[string]int, before func(n int) bool) error {
	var seen [][2]string // the stages and metrics that are judged
	for _, g := range s.Stages[i].All() {
		stage, metric, err := s.checkGate(i, &g, names, before)
		if err != nil {
			return err
		}
		on := [2]string{s.Stages[stage].Name, metric}
		if slices.Contains(seen, on) {
			return &Problem{s.Stages[i].Name, "gate", fmt.Errorf("two gates judge %s of %s: write one, with all that it asks "+
				"for", metric, on[0])}
		}
		seen = append(seen, on)
		if g.versus() == AgainstDeployed && (deploys < 0 || before(deploys)) {
			return s.nothingDeploys(i, deploys)
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

// judged is the stage whose metric a gate judges, and the metric's name there. Where the gate names no stage it is any
// that comes before and reports metrics; only one may.
func (s *Spec) judged(i int, g *Gate, names map[string]int, before func(n int) bool) (stages []int, metric string) {
	if n := named(s.Stages, names, g); n >= 0 && n != i {
		return []int{n}, g.Metric[len(s.Stages[n].Name)+1:]
	}
	for n := range i {
		if len(s.Stages[n].Metrics) > 0 && s.Stages[n].Sample == s.Stages[i].Sample && len(stages) < 2 && before(n) {
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

// ErrMetric says that a gate has nothing to judge.
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

// Reported returns the stage that reports a metric, STAGE.NAME or NAME alone where one stage reports metrics, and the
// metric's name there. NAME alone has no dot: what stands before a dot must be a stage with metrics, or a misspelt
// stage would pass as a metric that never comes.
func (s *Spec) Reported(metric string) (stage int, name string, err error) {
	if n := named(s.Stages, s.names(), &Gate{Metric: metric}); n >= 0 && len(metric) <= MaxText {
		if name = metric[len(s.Stages[n].Name)+1:]; name != "" {
			return n, name, nil
		}
	}
	if at := strings.IndexByte(metric, '.'); at >= 0 && len(metric) <= MaxText {
		return 0, "", fmt.Errorf("%.60q is a metric of no stage: %.60q is no stage with metrics; write the stage first, as "+
			"evaluate.accuracy", metric, metric[:at])
	}
	stage = -1
	for n := range s.Stages {
		if len(s.Stages[n].Metrics) == 0 || s.Stages[n].Sample != "" {
			continue
		}
		if stage >= 0 {
			return 0, "", fmt.Errorf("%.60q may be a metric of %s or of %s: write its stage before it", metric,
				s.Stages[stage].Name, s.Stages[n].Name)
		}
		stage = n
	}
	if stage < 0 || metric == "" || len(metric) > MaxText {
		return 0, "", fmt.Errorf("%.60q is a metric of no stage: write metrics in that stage, and evaluate.accuracy here",
			metric)
	}
	return stage, metric, nil
}
