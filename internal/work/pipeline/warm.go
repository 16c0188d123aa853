package pipeline

import (
	"errors"
	"fmt"
	"slices"
)

// Warm is the warm start of a stage: it begins with a file or folder that the deployed version of its pipeline has made.
// While no version is deployed, the stage begins with what the work folder has at To.
type Warm struct {
	From string `json:"from"` // an output, or a path in one, of a stage before the one that deploys
	To   string `json:"to"`   // a path that the stage reads
}

// Warmed is what a stage began with.
type Warmed struct {
	Warm
	Version int    `json:"version,omitempty"` // of the model; 0: what the work folder had, for no version was deployed
	Run     string `json:"run,omitempty"`     // the run that deployed it
	Digest  string `json:"digest,omitempty"`  // of what was put at To
}

// checkWarm reports what is wrong with the warm start of a stage by itself, and gives its paths their one form.
func (s *Stage) checkWarm() error {
	if s.Warm == nil {
		return nil
	}
	from, err := cleaned(s.Warm.From)
	if err != nil {
		return fmt.Errorf("from: %w", err)
	}
	to, err := cleaned(s.Warm.To)
	if err != nil {
		return fmt.Errorf("to: %w", err)
	}
	if !s.Takes(to) {
		return fmt.Errorf("the stage does not read %s: write it into deps, and let the command begin with it", to)
	}
	s.Warm = &Warm{From: from, To: to}
	return nil
}

// checkWarms reports what is wrong with the warm starts of a pipeline whose stages are sorted.
func (s *Spec) checkWarms() error {
	deploys := s.Deploys()
	for i := range s.Stages {
		w := s.Stages[i].Warm
		if w == nil {
			continue
		}
		wrong := func(err error) error { return &Problem{s.Stages[i].Name, "warm_start", err} }
		if deploys < 0 {
			return wrong(errors.New("it begins with the deployed version, and no stage deploys one: write deploy: true in " +
				"the stage that puts the model in place"))
		}
		maker := s.MakerOf(w.From)
		switch name := s.Stages[deploys].Name; {
		case maker < 0:
			return wrong(fmt.Errorf("no stage makes %s: name an output of a stage before %s", w.From, name))
		case !s.leads(maker, deploys):
			return wrong(fmt.Errorf("%s, which makes %s, does not come before %s: name an output of a stage that does",
				s.Stages[maker].Name, w.From, name))
		}
		for n := range s.Stages {
			if slices.ContainsFunc(s.Stages[n].Outs, func(o string) bool { return holds(o, w.To) || holds(w.To, o) }) {
				return wrong(fmt.Errorf("%s is made by %s: give a path that no stage makes", w.To, s.Stages[n].Name))
			}
		}
	}
	return nil
}

// leads reports whether the stage from comes before the stage to.
func (s *Spec) leads(from, to int) bool {
	led := make([]bool, len(s.Stages))
	led[from] = true
	for n := from + 1; n <= to; n++ { // each stage follows those that it needs
		led[n] = slices.ContainsFunc(s.Stages[n].Needs, func(need int) bool { return led[need] })
	}
	return from < to && led[to]
}

// Warmth returns the warm starts of the stages.
func (s *Spec) Warmth() (list []Warm) {
	for i := range s.Stages {
		if w := s.Stages[i].Warm; w != nil {
			list = append(list, *w)
		}
	}
	return list
}
