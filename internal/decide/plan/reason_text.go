package plan

// reasonTexts explains why an option was taken, or none.
var reasonTexts = map[Reason]string{
	Cheapest:     "cheapest",
	Stays:        "stays: a move would not pay for itself",
	SlackGone:    "slack gone: only on-demand meets the deadline",
	Uncounted:    "what is left is unknown, so that nobody can say whether there is time to wait for spot",
	BehindPace:   "behind schedule: waiting for spot would use up the slack",
	WaitsMore:    "waiting for spot is expected to cost more",
	ByRule:       "required by the job or its policy",
	Prepaid:      "reserved: already paid, and free",
	Beside:       "shared: a machine of the same user or team has room",
	Warm:         "warm: an idle machine of the same user is ready",
	Consolidates: "consolidates: room on a shared machine saves more than moving there costs",
	Cleaning:     "waits: its machine is being cleaned after the last task",
	NextRound:    "waits: the next round assigns the reserved and free machines",
	Probing:      "probes whether the offer has capacity",
	Weighing:     "waits: the table of its policy is being computed",
	Closed:       "waits: the hours in which it may run have not come, or are too few to start and save",
	TimeGone:     "the wall-clock budget is used up",
	HoursGone:    "the GPU-hour budget is used up",
	WaitsSpot:    "waits: spot is expected in time",
	NoOffer:      "no matching offers",
	NoCapacity:   "no capacity: every matching offer is unavailable",
	SavesNone:    "no checkpoints: an interruption would repeat all the work",
	BudgetGone:   "budget exhausted: the job can start on no offer within it",
	BudgetWait:   "waits: no available offer finishes within the budget, a cheaper one would",
	OutOfMoney:   "budget too small: not even the cheapest offer finishes within it",
}

// Text returns the reason for people, without a full stop; "" if there is none.
func (r Reason) Text() string { return reasonTexts[r] }
