package placement

import (
	"time"

	"scrimp/internal/decide/state"
)

// Rounds is where the rounds over what is reserved stand. It is not part of the state: after a
// restart a round is asked for again.
type Rounds struct {
	Due   bool         // something changed that a round depends on
	Asked time.Time    // when the newest was asked for; zero: none was
	Waits bool         // it has not come
	Again time.Time    // when time alone could change what it found; zero: never
	stood uint64       // the event after which the newest standing was taken
	Kept  []*state.Job // for which seats may be kept
}

// RoundEvery is how often a round runs at most where there are many jobs, every 15 seconds of a usual server, and
// what one that does not come is waited for is counted in.
func (rs *Bids) RoundEvery() time.Duration { return max(rs.Config().Detect/2, time.Second) }
