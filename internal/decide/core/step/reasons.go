package step

// LimitSpent is why a job is stopped that its submitter's limits stop, whatever is left of its own.
const LimitSpent = "limit_spent"

// Why a held job is cancelled.
const (
	Rejected        = "rejected"
	ApprovalExpired = "approval_expired" // nobody has reviewed it in time
)

// Why a trial of a study is paused, or over.
const (
	PausedBySearch = "paused_by_search"  // it goes on when the searcher wants it
	Pruned         = "pruned"            // the searcher never comes back to it
	SearchOver     = "search_over"       // its search has ended, by whatever reason
	TrainedInFull  = "trained_in_full"   // it has come to the end of its fidelity
	ResumedFor     = "resumed_by_search" // the searcher wants it trained further
)

// Why a group gets no more members.
const (
	ClosedByUser     = "closed_by_user"
	AllOver          = "all_over"          // all of its members are
	BudgetSpent      = "budget_spent"      // nothing is left of its budget for another
	TimeSpent        = "time_spent"        // its wall clock is over
	SearchDone       = "search_done"       // the searcher wants nothing more
	DependencyFailed = "dependency_failed" // what it was to come after did not succeed
)
