package plan

// Reason says why an option was taken or not. It is a metric label and a column
// of `scrimp explain`, so the set is small and closed.
type Reason string

// Why an option was taken.
const (
	Cheapest   Reason = "cheapest"           // least per unit of work of all that the mode allows
	Stays      Reason = "stays"              // it is held, and moving would not pay
	SlackGone  Reason = "slack_gone"         // only on-demand meets the deadline
	ByRule     Reason = "by_rule"            // the job or its policy requires on-demand
	BehindPace Reason = "behind_pace"        // no spot, and waiting would use up the slack
	Uncounted  Reason = "work_unknown"       // no spot, and nobody can say whether there is time to wait for it
	WaitsMore  Reason = "waiting_costs_more" // waiting for spot is expected to cost more than on-demand
	WaitsSpot  Reason = "waits_spot"         // spot is expected in time
	NoOffer    Reason = "no_offer"           // no offer matches what the job requires
	NoCapacity Reason = "no_capacity"        // every matching offer is unavailable
	Prepaid    Reason = "already_paid"       // it is reserved, and costs nothing more
	Beside     Reason = "beside"             // a part of a machine is free that runs another job of the same user
	Warm       Reason = "warm"               // a machine of the same user waits there: no new one has to be started
	Cleaning   Reason = "cleaning"           // it takes a machine that is being cleaned after its last task
	Probing    Reason = "looking"            // probes whether the offer has capacity
	NextRound  Reason = "next_round"         // the next round says who gets what is reserved and free
	ServerFull Reason = "server_full"        // as many jobs hold machines as the server lets (scrimp serve --running)
	Weighing   Reason = "weighing"           // the table that says what each choice costs is being built
	SavesNone  Reason = "saves_nothing"      // no checkpoints: a spot interruption would repeat all the work
	BudgetGone Reason = "budget_gone"        // no option starts within the budget
	BudgetWait Reason = "waits_budget"       // no available offer finishes within the budget, a cheaper one would
	OutOfMoney Reason = "budget_short"       // not even the cheapest offer finishes within the budget
	TimeGone   Reason = "time_gone"          // its wall-clock is used up
	HoursGone  Reason = "hours_gone"         // its GPU-hours are used up
)

// Why an option was not taken.
const (
	CostsMore   Reason = "costs_more"        // it would do, and is beaten on price
	Unavailable Reason = "unavailable"       // has no capacity now
	Untried     Reason = "untried"           // not probed yet
	Unpriced    Reason = "unpriced"          // its price is unknown, which is not zero
	LaterRung   Reason = "later_rung"        // of the ladder, which is not reached yet, or rests
	WrongGPU    Reason = "wrong_accelerator" // none, another, or too few
	TooSmall    Reason = "too_small"         // fewer processors or less memory than the job asks for
	DoesNotFit  Reason = "does_not_fit"      // its memory does not hold the job's model, by the estimate
	TooLarge    Reason = "too_large"         // more processors, memory or accelerators than the job may have
	TooFew      Reason = "too_few_machines"  // it has fewer machines than the job needs at once
	NoImages    Reason = "takes_no_image"    // its machines run no container image, and the job names one
	WrongPlace  Reason = "wrong_place"       // not in a zone or region that the job allows
	WrongKind   Reason = "wrong_kind"        // a kind of capacity that the job does not allow
	OverPrice   Reason = "over_max_price"    // its price is above max_price
	OverBudget  Reason = "over_budget"       // its first minutes would pass the budget, or what is left of the work would
	OverQuota   Reason = "over_quota"        // has more GPUs than a quota has left
	TooRisky    Reason = "too_risky"         // could be interrupted, and there is no slack for that
	NotYet      Reason = "not_yet"           // waiting is expected to cost less, and there is time for that
	Promised    Reason = "promised"          // reserved, and for others: a round gives it to who would pay more elsewhere
	EndsSoon    Reason = "ends_soon"         // reserved for too short a time to go there
	ShortLived  Reason = "lives_too_short"   // its machines are taken before the work is done, and nothing is saved
	CoolingOff  Reason = "cooling_off"       // refused a launch a moment ago
	NotWeighed  Reason = "not_weighed"       // enough can be had that costs less
	Moving      Reason = "moving"            // cheaper, but not by more than the move costs
)
