package step

import (
	"fmt"

	"scrimp/internal/decide/budget"
)

// Refusal is why something is not let in.
type Refusal struct {
	Job   string
	Why   RefusalReason
	Limit *budget.Refusal // where Why is LimitReached
	Err   error           // what is wrong, in words
}

// RefusalReason is why, in a word.
type RefusalReason string

// The reasons.
const (
	TagMissing    RefusalReason = "tag"
	LimitReached  RefusalReason = "limit"          // which one is in Limit
	NeedsApproval RefusalReason = "approval"       // for so much, and it runs without
	NoDependency  RefusalReason = "after"          // a job that it depends on does not exist, or did not succeed
	NoGroup       RefusalReason = "no_hold"        // it is not there, not open, or another's
	GroupFull     RefusalReason = "hold"           // it has no room for a part
	NeverApproved RefusalReason = "never_approved" // nobody has ever let it run
)

// Error says why, for whoever submits.
func (r *Refusal) Error() string {
	return fmt.Sprintf("job %s is not let in: %v", r.Job, r.Err)
}

// Unwrap is what is behind it.
func (r *Refusal) Unwrap() error { return r.Err }
