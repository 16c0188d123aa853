package pipeline

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"scrimp/internal/work/pipeline/workpath"
)

// Sample is a run on parts of the data before the run on all of it.
type Sample struct {
	Parts []string `json:"parts"`           // fractions as decimals, one or two, the smaller first
	Data  []string `json:"data,omitempty"`  // the paths of which it takes a part; empty: those that look like data
	Gates []Gate   `json:"gates,omitempty"` // on metrics of the last part; if one does not pass, the rest does not begin
}

// Base is the name of the stage in the file: that of the stage itself, or that of the stage whose sample it is.
func (s *Stage) Base() string {
	return cmp.Or(s.Of, s.Name)
}

// Sampled returns the pipeline with its stages on each part of the data before its stages on all of it. The stage that
// deploys and what needs it have none. Samples have no gates and no drift, and run each before the next. A stage that
// needs no other begins once the last part is done, if its gates pass. The error is a *Problem of the whole.
func (s *Spec) Sampled(x Sample) (*Spec, error) {
	wrong := func(format string, a ...any) (*Spec, error) {
		return nil, &Problem{"", "sample", fmt.Errorf(format, a...)}
	}
	data, err := workpath.CleanAll(x.Data)
	switch {
	case len(x.Gates) > maxGates:
		return wrong("there are %d gates: write at most %d", len(x.Gates), maxGates)
	case err != nil:
		return wrong("data: %w", err)
	}
	twins := s.twins()
	if len(twins) == 0 {
		return wrong("no stage comes before the one that deploys, which has no sample: leave sample out")
	}
	if n := len(s.Stages) + len(x.Parts)*len(twins); n > MaxStages {
		return wrong("with it there are %d stages: write at most %d", n, MaxStages)
	}
	out := &Spec{Data: data}
	var leaves []int
	for k, part := range x.Parts {
		leaves = out.addTwins(s, twins, sampleName(k), part, leaves)
	}
	gates, err := s.gatesOf(x, sampleName(len(x.Parts)-1))
	if err != nil {
		return wrong("gate: %w", err)
	}
	first := len(out.Stages)
	for _, full := range s.Stages {
		full.Needs = shifted(full.Needs, first)
		if len(full.Needs) == 0 {
			full.Needs, full.Gates = slices.Clone(leaves), gates
		}
		out.Stages = append(out.Stages, full)
	}
	err = out.checkSampled()
	return out, err
}

// shifted returns positions moved by n.
func shifted(list []int, n int) []int {
	list = slices.Clone(list)
	for i := range list {
		list[i] += n
	}
	return list
}

// sampleName is the first word of the names of the stages on the part k.
func sampleName(k int) string {
	if k == 0 {
		return "sample."
	}
	return fmt.Sprintf("sample-%d.", k+1)
}

// twins returns the positions of the stages that have a sample.
func (s *Spec) twins() (list []int) {
	without := make([]bool, len(s.Stages))
	for i, deploys := 0, s.Deploys(); i < len(s.Stages); i++ {
		without[i] = i == deploys || slices.ContainsFunc(s.Stages[i].Needs, func(n int) bool { return without[n] })
		if !without[i] {
			list = append(list, i)
		}
	}
	return list
}

// addTwins adds the stages of full on a part of the data. Those that need no other need the stages before. It returns
// the positions of those that no other needs.
func (s *Spec) addTwins(full *Spec, twins []int, name, part string, before []int) (leaves []int) {
	at, needed := map[int]int{}, map[int]bool{}
	for _, i := range twins {
		x := full.Stages[i]
		x.Name, x.Of, x.Sample, x.After = name+x.Name, x.Name, part, nil
		x.Gate, x.Gates, x.Drift = nil, nil, nil
		var needs []int
		for _, n := range x.Needs {
			needs, needed[at[n]] = append(needs, at[n]), true
		}
		if x.Needs = needs; len(needs) == 0 {
			x.Needs = slices.Clone(before)
		}
		at[i] = len(s.Stages)
		s.Stages = append(s.Stages, x)
	}
	for _, i := range twins {
		if !needed[at[i]] {
			leaves = append(leaves, at[i])
		}
	}
	return leaves
}

// gatesOf returns the gates of a sample with the names of the stages on its last part.
func (s *Spec) gatesOf(x Sample, name string) (list []Gate, err error) {
	for _, g := range x.Gates {
		stage, metric, err := s.Reported(g.Metric)
		switch {
		case err != nil:
			return nil, err
		case g.MinGain != "" || g.Against != "" || g.Confidence != "" || g.Goal != "" || g.Relative:
			return nil, errors.New("a gate of the sample has min and max only: leave min_gain, against, goal, relative and " +
				"confidence out")
		}
		g.Metric = name + s.Stages[stage].Name + "." + metric
		list = append(list, g)
	}
	return list, nil
}

// checkSampled reports what is wrong with a pipeline with samples.
func (s *Spec) checkSampled() error {
	labels, needs := map[string]string{}, 0
	for i := range s.Stages {
		x := &s.Stages[i]
		if other, twice := labels[x.Label()]; twice {
			return &Problem{"", "sample", fmt.Errorf("its stage %s has the name of the stage %s: rename one",
				x.Name, other)}
		}
		labels[x.Label()] = x.Name
		if needs += len(x.Needs); needs > MaxNeeds || len(x.Name) > maxName {
			return &Problem{"", "sample", fmt.Errorf("with it, %.100s has too long a name, or stages need others more than "+
				"%d times: shorten the name, or let one stage gather what many make", x.Name, MaxNeeds)}
		}
	}
	if wrong, ok := errors.AsType[*Problem](s.checkGates()); ok {
		return &Problem{"", "sample", fmt.Errorf("gate: %w", wrong.Err)}
	}
	return nil
}

// JudgedOf returns the metrics of a stage that gates judge: those of the stages by, or of all stages.
func (s *Spec) JudgedOf(stage int, by ...int) (metrics []string) {
	names := s.names()
	for i := range s.Stages {
		all := s.Stages[i].All()
		if len(all) == 0 || len(by) > 0 && !slices.Contains(by, i) {
			continue
		}
		before := s.before(i)
		for _, g := range all {
			if found, name := s.judged(i, &g, names, before); len(found) == 1 && found[0] == stage {
				metrics = append(metrics, name)
			}
		}
	}
	return metrics
}
