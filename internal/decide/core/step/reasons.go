package step

// LimitSpent is the reason for stopping a job because a limit of its submitter is spent, whatever is left of the
// job's own budget.
const LimitSpent = "limit_spent"

// Reasons for cancelling a held job.
const (
	Rejected        = "rejected"
	ApprovalExpired = "approval_expired" // nobody reviewed it in time
)

// Reasons for pausing or ending a trial.
const (
	PausedBySearch = "paused_by_search"  // resumes when the searcher wants it
	Pruned         = "pruned"            // the searcher never resumes it
	SearchOver     = "search_over"       // its search has ended, for whatever reason
	TrainedInFull  = "trained_in_full"   // it has reached the end of its fidelity
	ResumedFor     = "resumed_by_search" // the searcher wants it trained further
)

// Reasons why a group gets no more members.
const (
	ClosedByUser     = "closed_by_user"
	AllOver          = "all_over"          // all of its members have ended
	BudgetSpent      = "budget_spent"      // its budget leaves nothing for another member
	TimeSpent        = "time_spent"        // its wall-clock limit is reached
	HoursSpent       = "gpu_hours_spent"   // its limit on GPU-hours is reached
	Plateau          = "plateau"           // another dollar is not expected to gain enough
	SearchDone       = "search_done"       // the searcher has no further trials
	NoValues         = "no_values"         // several trials have ended, and none has reported a value of the metric
	DependencyFailed = "dependency_failed" // a dependency did not succeed
)
