package market

// Choice is what a job runs on, or what a policy wants it to run on: nothing, an interruptible machine, or an
// uninterruptible one, which is on-demand or reserved. Capacity, in contrast, is how one offer is bought.
type Choice uint8

// The choices.
const (
	ChoiceNone Choice = iota // wait
	ChoiceSpot
	ChoiceOnDemand
)

// String returns "none", "spot" or "on-demand".
func (c Choice) String() string { return [...]string{"none", "spot", "on-demand"}[c] }
