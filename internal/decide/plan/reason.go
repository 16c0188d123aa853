package plan

import "scrimp/internal/decide/policy"

// Reason says why an option was taken or not. It is a metric label and a column of `scrimp explain`, so the set is
// small and closed.
type Reason string

// Reasons for taking an option.
const (
	Cheapest   Reason = "cheapest"           // lowest price per unit of work that the mode allows
	Stays      Reason = "stays"              // the job holds it, and a move would not pay
	SlackGone  Reason = "slack_gone"         // only on-demand meets the deadline
	ByRule     Reason = "by_rule"            // the job or its policy requires on-demand
	BehindPace Reason = "behind_pace"        // no spot, and waiting would use up the slack
	Uncounted  Reason = "work_unknown"       // no spot, and the time left for waiting is unknown
	WaitsMore  Reason = "waiting_costs_more" // waiting for spot is expected to cost more than on-demand
	WaitsSpot  Reason = "waits_spot"         // spot is expected in time
	NoOffer    Reason = "no_offer"           // no offer meets the job's requirements
	NoCapacity Reason = "no_capacity"        // every matching offer is unavailable
	Prepaid    Reason = "already_paid"       // reserved: using it costs nothing more
	Beside     Reason = "beside"             // room on a machine that runs another job of the same user
	Warm       Reason = "warm"               // an idle machine of the same user: no new one has to start
	// a running job leaves a machine of its own for room on another, because that saves more than the move costs
	Consolidates Reason = "consolidates"
	Cleaning     Reason = "cleaning"   // a machine that is being cleaned after its last task
	Probing      Reason = "looking"    // scrimp probes whether the offer has capacity
	NextRound    Reason = "next_round" // the next round assigns what is reserved and free
	// the server's limit of jobs with machines is reached (scrimp serve --running)
	ServerFull Reason = "server_full"
	Weighing   Reason = "weighing"      // the table with the cost of each choice is being built
	SavesNone  Reason = "saves_nothing" // no checkpoints: a spot interruption would repeat all the work
	BudgetGone Reason = "budget_gone"   // no option starts within the budget
	BudgetWait Reason = "waits_budget"  // no available offer finishes within the budget; a cheaper one would
	OutOfMoney Reason = "budget_short"  // not even the cheapest offer finishes within the budget
	Closed     Reason = "window_closed" // the hours in which it may run have not come, or leave too little time
	TimeGone   Reason = "time_gone"     // its wall-clock limit is used up
	HoursGone  Reason = "hours_gone"    // its GPU-hours are used up
)

// stops relates the reasons that end a job to the words for a run that ends while it has a machine. The two sets differ
// otherwise: a reason says what a decision found, a stop what ended a program, and both are words of the log.
var stops = map[Reason]policy.Stop{BudgetGone: policy.BudgetSpent, OutOfMoney: policy.BudgetShort,
	TimeGone: policy.WallClock, HoursGone: policy.GPUHoursSpent}

// Stop returns the stop of a job that holds no machine, and false if the job may wait.
func (r Reason) Stop() (policy.Stop, bool) {
	stop, ends := stops[r]
	return stop, ends
}

// Reasons for not taking an option.
const (
	CostsMore   Reason = "costs_more"        // suitable, but another costs less
	Unavailable Reason = "unavailable"       // has no capacity now
	Untried     Reason = "untried"           // not probed yet
	Unpriced    Reason = "unpriced"          // its price is unknown, which is not zero
	LaterRung   Reason = "later_rung"        // allowed on a ladder rung that is not open yet, or rests
	WrongGPU    Reason = "wrong_accelerator" // no accelerator, another type, or too few
	TooSmall    Reason = "too_small"         // fewer processors or less memory than the job asks for
	DoesNotFit  Reason = "does_not_fit"      // the job's estimated model does not fit its memory
	TooLarge    Reason = "too_large"         // more processors, memory or accelerators than the job may have
	TooFew      Reason = "too_few_machines"  // fewer machines than the job needs at once
	NoImages    Reason = "takes_no_image"    // its machines run no container image, and the job names one
	WrongPlace  Reason = "wrong_place"       // not in a zone or region that the job allows
	WrongKind   Reason = "wrong_kind"        // a kind of capacity that the job does not allow
	OverPrice   Reason = "over_max_price"    // its price is above max_price
	UnknownFare Reason = "unknown_fare"      // what reading the job's data there costs is unknown, which is not zero
	OverBudget  Reason = "over_budget"       // its first minutes, or the remaining work, would exceed the budget
	OverQuota   Reason = "over_quota"        // has more GPUs, or costs more an hour, than a quota has left
	TooRisky    Reason = "too_risky"         // may be interrupted, and there is no slack for that
	NotYet      Reason = "not_yet"           // waiting is expected to cost less, and there is time to wait
	// reserved for another job: a round gives it to the job that would pay more elsewhere
	Promised   Reason = "promised"
	EndsSoon   Reason = "ends_soon"       // reserved for too short a time to move there
	ShortLived Reason = "lives_too_short" // its machines end before the work is done, and the job saves nothing
	CoolingOff Reason = "cooling_off"     // refused a launch a moment ago
	NotWeighed Reason = "not_weighed"     // enough cheaper offers are available
	Moving     Reason = "moving"          // cheaper, but not by more than the move costs
)
