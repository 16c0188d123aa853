package state

import (
	"maps"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
)

// Thousands of waiting jobs may come from one file or one user. A job shares the memory of the values that equal those
// of the previous job. Shared values are never changed in place.

// shares makes r share the values that equal those of the previous job.
func (s *State) shares(r *JobRecord) {
	share(&r.Tenant, r.Terms.Owner.Tenant)
	share(&r.Terms.Name, r.ID)
	share(&r.Terms.Owner.Job, r.ID)
	if len(s.inOrder) == 0 {
		return
	}
	before := &s.inOrder[len(s.inOrder)-1].r
	share(&r.Tenant, before.Tenant)
	share(&r.By, before.By)
	share(&r.Why, before.Why)
	share(&r.Detail, before.Detail)
	share(&r.Terms.JobKind, before.Terms.JobKind)
	share(&r.Terms.Currency, before.Terms.Currency)
	share(&r.Terms.Need.Accelerator, before.Terms.Need.Accelerator)
	share(&r.Terms.Need.Image, before.Terms.Need.Image)
	sharesOwner(&r.Terms.Owner, &before.Terms.Owner)
	if r.Last != nil && before.Last != nil && r.Last.Equal(before.Last) {
		r.Last = before.Last
	}
}

func sharesOwner(o, before *ledger.Owner) {
	share(&o.Tenant, before.Tenant)
	share(&o.Team, before.Team)
	share(&o.Project, before.Project)
	share(&o.Environment, before.Environment)
	share(&o.ModelVersion, before.ModelVersion)
	share(&o.Group, before.Group)
	if o.Tags != nil && before.Tags != nil && maps.Equal(o.Tags, before.Tags) {
		o.Tags = before.Tags
	}
}

// share makes *to use the memory of with if both texts are equal.
func share[T ~string](to *T, with T) {
	if *to == with {
		*to = with
	}
}

// sharedDecision returns d, or the newest decision of any job if that is equal.
func (s *State) sharedDecision(d *plan.Decision) *plan.Decision {
	if s.decision == nil || !d.Equal(s.decision) {
		s.decision = d
	}
	return s.decision
}
