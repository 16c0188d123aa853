//go:build race

package enginetest

// Raced reports whether this is built with the race detector, which does not see the programs that a test starts.
const Raced = true
