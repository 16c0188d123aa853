package market

// Choice is what a job runs on, or what a policy wants it to run on: nothing, a machine that can
// be interrupted, or one that cannot, which is on-demand or reserved. Capacity is how one offer is bought.
type Choice uint8

// The choices.
const (
	ChoiceNone Choice = iota // wait
	ChoiceSpot
	ChoiceOnDemand
)

// String returns "none", "spot" or "on-demand".
func (c Choice) String() string { return [...]string{"none", "spot", "on-demand"}[c] }
