package plan

// Reason says why an option was taken or not. It is a metric label and a column
// of `scrimp explain`, so the set is small and closed.
type Reason string

// Why an option was taken.
const (
	Cheapest   Reason = "cheapest"           // least per unit of work of all that the mode allows
	Stays      Reason = "stays"              // it is held, and moving would not pay
	SlackGone  Reason = "slack_gone"         // only capacity that cannot be interrupted is in time
	ByRule     Reason = "by_rule"            // the job or its policy asks for capacity that cannot be interrupted
	BehindPace Reason = "behind_pace"        // no spot, and waiting would use up the slack
	WaitsMore  Reason = "waiting_costs_more" // waiting for spot is expected to cost more than on-demand
	WaitsSpot  Reason = "waits_spot"         // spot is expected in time
	NoOffer    Reason = "no_offer"           // nothing on the market fits the job
	NoCapacity Reason = "no_capacity"        // what fits cannot be had now
	Prepaid    Reason = "already_paid"       // it is reserved, and costs nothing more
	Beside     Reason = "beside"             // a part of a machine is free that runs another job of the same user
	Warm       Reason = "warm"               // a machine of the same user waits there: no new one has to be started
	Cleaning   Reason = "cleaning"           // it takes a machine that is being cleaned after its last task
	Probing    Reason = "looking"            // whether an offer can be had is asked first
	Weighing   Reason = "weighing"           // the table that says what each choice costs is being built
	SavesNone  Reason = "saves_nothing"      // what a spot interruption destroys would be done anew from its start
	BudgetGone Reason = "budget_gone"        // no option starts within the budget
	BudgetWait Reason = "waits_budget"       // what can be had costs more than the budget, something cheaper would not
	OutOfMoney Reason = "budget_short"       // not even the cheapest would
	TimeGone   Reason = "time_gone"          // its wall-clock is used up
	HoursGone  Reason = "hours_gone"         // its GPU-hours are used up
)

// Why an option was not taken.
const (
	CostsMore   Reason = "costs_more"        // it would do, and is beaten on price
	Unavailable Reason = "unavailable"       // cannot be had now
	Untried     Reason = "untried"           // nobody knows whether it can be had
	Unpriced    Reason = "unpriced"          // its price is unknown, which is not zero
	LaterRung   Reason = "later_rung"        // of the ladder, which is not reached yet, or rests
	WrongGPU    Reason = "wrong_accelerator" // none, another, or too few
	TooSmall    Reason = "too_small"         // fewer processors or less memory than the job asks for
	WrongPlace  Reason = "wrong_place"       // not in a zone or region that the job allows
	WrongKind   Reason = "wrong_kind"        // a kind of capacity that the job does not allow
	OverPrice   Reason = "over_max_price"
	OverBudget  Reason = "over_budget" // its first minutes would pass the budget, or what is left of the work would
	OverQuota   Reason = "over_quota"  // has more GPUs than a quota has left
	TooRisky    Reason = "too_risky"   // could be interrupted, and there is no slack for that
	NotYet      Reason = "not_yet"     // waiting is expected to cost less, and there is time for that
	Promised    Reason = "promised"    // reserved, and kept for a job that would pay more elsewhere or is more urgent
	EndsSoon    Reason = "ends_soon"   // reserved for too short a time to go there
	CoolingOff  Reason = "cooling_off" // refused a launch a moment ago
	NotWeighed  Reason = "not_weighed" // enough can be had that costs less
	Moving      Reason = "moving"      // cheaper, but not by more than the move costs
)
