package market

// Hold is what a job runs on, or what a policy wants it to: nothing, a machine that can be
// interrupted, or one that cannot. Reserved capacity is held as on-demand is.
type Hold uint8

// The holds.
const (
	HoldNone Hold = iota // wait
	HoldSpot
	HoldOnDemand
)

// String returns "none", "spot" or "on-demand".
func (h Hold) String() string { return [...]string{"none", "spot", "on-demand"}[h] }
