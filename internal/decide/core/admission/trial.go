package admission

import (
	"errors"
	"fmt"

	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/groups"
)

// checkStudy returns an error if the terms of a study are invalid.
func checkStudy(t *state.GroupTerms) error {
	if (t.Kind == groups.Study && t.Member != nil) != (t.Study != nil) {
		return errors.New("a study needs a job and a search")
	}
	if t.Study == nil {
		return nil
	}
	if !t.HasBudget || t.Budget.IsZero() {
		return errors.New("a study needs a budget above zero")
	}
	if t.Study.Resumes() && !t.Member.Saves {
		return fmt.Errorf("the searcher %s resumes trials: the job needs checkpoint.dir, or take the searcher "+
			"asha-stop", t.Study.Searcher)
	}
	field, err := t.Study.Check()
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

// BySearch reports whether the searcher of its study has paused a job. It has no hold until it is resumed.
func BySearch(j *state.Job) bool { return j.State() == state.Paused && j.Why() == step.PausedBySearch }

// MayEndSooner reports whether a job may end before its work is done, by its metric or by its search.
func (ad *Admission) MayEndSooner(j *state.Job) bool {
	t := j.Terms()
	g, _ := ad.State.StudyOf(j)
	return t.Metric.HasGoal || t.Metric.Patience > 0 || g != nil
}

// Takes counts what this step gives to members of a group.
func (w *Weighing) Takes(group string, a money.Amount) {
	if w.Taken == nil {
		w.Taken = map[string]money.Amount{}
	}
	w.Taken[group] = w.Taken[group].Add(a)
}
