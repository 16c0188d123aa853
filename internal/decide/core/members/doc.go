// Package members keeps groups: arrays, studies, pipelines and schedules. It asks their planners for the next
// moves, and applies those that are still valid.
package members

import (
	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/core/lifecycle"
	"scrimp/internal/decide/core/placement"
	"scrimp/internal/decide/core/step"
)

// Members keeps the groups and their members.
type Members struct {
	*step.Context
	admission *admission.Admission
	bids      *placement.Bids
	jobs      *lifecycle.Jobs
	launches  *lifecycle.Launches

	Proposals Proposals
	archive   laterGroups // groups that are over, and when to archive them
}

// New returns Members without groups.
func New(a *admission.Admission, b *placement.Bids, j *lifecycle.Jobs, l *lifecycle.Launches) *Members {
	return &Members{Context: a.Context, admission: a, bids: b, jobs: j, launches: l, Proposals: NewProposals()}
}
