package pipeline

import (
	"fmt"
	"slices"

	"scrimp/internal/work/pipeline/workpath"
)

// Warm is the warm start of a stage: it begins with a file or folder that the deployed version of its pipeline has
// made. While no version is deployed, it begins with what the work folder has at To.
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
	from, err := workpath.Clean(s.Warm.From)
	if err != nil {
		return fmt.Errorf("from: %w", err)
	}
	to, err := workpath.Clean(s.Warm.To)
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
	if !slices.ContainsFunc(s.Stages, func(x Stage) bool { return x.Warm != nil }) {
		return nil
	}
	made, err := makersOf(s.Stages)
	if err != nil {
		return err
	}
	deploys := s.Deploys()
	before := s.before(max(deploys, 0))
	for i := range s.Stages {
		w := s.Stages[i].Warm
		if w == nil {
			continue
		}
		wrong := func(format string, a ...any) error { return s.Stages[i].wrong("warm_start", format, a...) }
		maker, others := made.maker(w.From), made.of(w.To)
		switch {
		case deploys < 0:
			return wrong("it begins with the deployed version, and no stage deploys one: write deploy: true in the stage " +
				"that puts the model in place")
		case maker < 0:
			return wrong("no stage makes %s: name an output of a stage before %s", w.From, s.Stages[deploys].Name)
		case !before(maker):
			return wrong("%s, which makes %s, does not come before %s: name an output of a stage that does",
				s.Stages[maker].Name, w.From, s.Stages[deploys].Name)
		case len(others) > 0:
			return wrong("%s is made by %s: give a path that no stage makes", w.To, s.Stages[others[0]].Name)
		}
	}
	return nil
}
