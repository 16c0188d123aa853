package runs

// Recompute is how much of the forward pass is discarded and recomputed.
type Recompute int

// What activation checkpointing keeps.
const (
	KeepAll  Recompute = iota
	KeepSome           // the products of every other matrix: half
	KeepEnds           // only the input of each layer
)
