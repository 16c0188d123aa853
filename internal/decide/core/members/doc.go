// Package members keeps groups: arrays, studies, pipelines and schedules. It asks their planners what is to happen
// next, and lets happen what still holds.
package members

import (
	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/lifecycle"
	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/core/step"
)

// Members are the groups with what is in them.
type Members struct {
	*step.Context
	admission *admission.Admission
	bids      *placement.Bids
	jobs      *lifecycle.Jobs
	launches  *lifecycle.Launches

	Proposals Proposals
}

// New is without a group.
func New(a *admission.Admission, b *placement.Bids, j *lifecycle.Jobs, l *lifecycle.Launches) *Members {
	return &Members{Context: a.Context, admission: a, bids: b, jobs: j, launches: l, Proposals: NewProposals()}
}
