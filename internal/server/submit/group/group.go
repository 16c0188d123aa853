// Package group returns the terms of a submitted array, study or pipeline, and checks that job files fit them.
package group

import (
	"errors"

	"scrimp/internal/decide/core"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/groups"
)

// Terms returns the terms of the submitted group, without those in its job file.
func Terms(b api.Submission) (t core.GroupTerms, field string, err error) {
	switch {
	case (b.Study != nil || b.Pipeline != nil) && b.Array != "" || b.Study != nil && b.Pipeline != nil:
		return t, "array", errors.New("the submission has more than one of array, study and pipeline: send one of them")
	case b.Pipeline != nil:
		return ofPipeline(b.Pipeline)
	case b.Study != nil:
		return ofStudy(b.Study)
	}
	t.Kind = groups.Array
	t.Array, t.AtOnce, err = groups.ParseIndexes(b.Array)
	return t, "array", err
}
