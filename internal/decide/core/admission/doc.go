// Package admission decides whether a job is admitted or gets other terms: limits, budgets, required tags,
// approvals and the holds of groups. It tracks what all of them have taken, and finds jobs that have used up
// theirs.
package admission

import (
	"scrimp/internal/decide/core/accounting"
	"scrimp/internal/decide/core/step"
)

// Admission checks jobs against the limits in force.
type Admission struct {
	*step.Context
	books *accounting.Books

	Usage    []*Usage           // what each limit has taken, in the order of the limits
	Soon     *Sums              // the same for limits that are being prepared; nil: none
	unsummed []Change           // jobs that this step changes
	Parts    map[string]*Parts  // what the parts of each group with a budget take
	Weighed  map[string]Verdict // verdicts for events that were admitted and not stepped yet
}

// New returns an Admission without sums.
func New(c *step.Context, b *accounting.Books) *Admission {
	return &Admission{Context: c, books: b, Weighed: map[string]Verdict{}}
}
