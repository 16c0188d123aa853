// Package admission decides whether a job is let in, or has other terms: limits, budgets, required tags, approvals and
// the holds of groups. It keeps what all of them have taken, and finds the jobs that have used up what they have.
package admission

import (
	"scrimp/internal/decide/core/books"
	"scrimp/internal/decide/core/step"
)

// Admission holds jobs against the limits in force.
type Admission struct {
	*step.Context
	books *books.Books

	Usage    []*Usage           // what all limits have taken, in their order
	Soon     *Sums              // the same of limits that will be set; nil: nobody prepares that
	unsummed []Change           // jobs that this step changes
	Parts    map[string]*Parts  // what the parts of holds take, by hold
	Weighed  map[string]Verdict // of the jobs of the events that were admitted and not stepped yet
}

// New is an admission that has summed nothing yet.
func New(c *step.Context, b *books.Books) *Admission {
	return &Admission{Context: c, books: b, Weighed: map[string]Verdict{}}
}
