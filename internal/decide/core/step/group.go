package step

// Why a group gets no more members.
const (
	ClosedByUser     = "closed_by_user"
	AllOver          = "all_over"          // all of its members are
	BudgetSpent      = "budget_spent"      // nothing is left of its budget for another
	TimeSpent        = "time_spent"        // its wall clock is over
	SearchDone       = "search_done"       // the searcher wants nothing more
	DependencyFailed = "dependency_failed" // what it was to come after did not succeed
)
