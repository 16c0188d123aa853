package step

// Why a trial of a study is paused, or over.
const (
	PausedBySearch = "paused_by_search"  // it goes on when the searcher wants it
	Pruned         = "pruned"            // the searcher never comes back to it
	SearchOver     = "search_over"       // its search has ended, by whatever reason
	TrainedInFull  = "trained_in_full"   // it has come to the end of its fidelity
	ResumedFor     = "resumed_by_search" // the searcher wants it trained further
)
