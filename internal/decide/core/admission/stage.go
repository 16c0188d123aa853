package admission

import (
	"errors"
	"fmt"

	"scrimp/internal/decide/state"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/pipeline"
)

// checkPipeline returns an error if the terms of a pipeline are invalid.
func checkPipeline(t *state.GroupTerms) error {
	p := t.Pipeline
	if (t.Kind == groups.Pipeline && t.Member != nil) != (p != nil) {
		return errors.New("a pipeline needs a job and stages")
	}
	if p == nil {
		return nil
	}
	if !t.HasBudget || t.Budget.IsZero() {
		return errors.New("a pipeline needs a budget above zero")
	}
	if n := len(p.Stages); n == 0 || n > pipeline.MaxStages || n != len(t.Stages) {
		return fmt.Errorf("a pipeline needs from 1 to %d stages, each with a job", pipeline.MaxStages)
	}
	for i := range p.Stages {
		for _, n := range p.Stages[i].Needs {
			if n < 0 || n >= i {
				return fmt.Errorf("stage %s needs a stage that is not before it", p.Stages[i].Name)
			}
		}
	}
	return nil
}
