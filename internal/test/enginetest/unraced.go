//go:build !race

package enginetest

// Raced says that this is built with the race detector, which sees nothing of the programs that a test starts.
const Raced = false
