package step

import (
	"fmt"

	"scrimp/internal/decide/budget"
)

// Refusal is the reason why something is not admitted.
type Refusal struct {
	Job   string
	Why   RefusalReason
	Limit *budget.Refusal // set if Why is LimitReached
	Err   error           // the reason in words
}

// RefusalReason is a machine-readable reason.
type RefusalReason string

// Reasons for a refusal.
const (
	TagMissing    RefusalReason = "tag"
	LimitReached  RefusalReason = "limit"          // Limit names the limit
	NeedsApproval RefusalReason = "approval"       // the amount needs an approval, and the job runs without one
	NoDependency  RefusalReason = "after"          // a dependency does not exist or did not succeed
	ScheduleOpen  RefusalReason = "schedule_open"  // a schedule of the same name, team and project is open
	NoGroup       RefusalReason = "no_hold"        // the group does not exist, is not open, or is another's
	GroupFull     RefusalReason = "hold"           // the group has no room for the member
	NeverApproved RefusalReason = "never_approved" // nobody has approved the job
)

// Error returns the reason for the submitter.
func (r *Refusal) Error() string {
	return fmt.Sprintf("job %s is refused: %v", r.Job, r.Err)
}

// Unwrap returns the underlying error.
func (r *Refusal) Unwrap() error { return r.Err }
