package step

// LimitSpent is why a job is stopped that its submitter's limits stop, whatever is left of its own.
const LimitSpent = "limit_spent"

// Why a held job is cancelled.
const (
	Rejected        = "rejected"
	ApprovalExpired = "approval_expired" // nobody has reviewed it in time
)
