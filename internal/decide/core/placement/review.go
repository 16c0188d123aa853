package placement

import (
	"math/bits"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// A step reviews so many jobs at most because the market moved, and as many whose time has
// come, and no more once it has weighed so many offers: a few milliseconds. Others follow in
// short steps of their own.
const (
	ReviewsAtOnce = 16
	WeighedAtOnce = 10_000
)

// Backlog is the jobs that hold a machine and are going to be reviewed, in passes. What moves
// meanwhile makes another pass follow, so that nobody waits for more than two.
type Backlog struct {
	Jobs []*state.Job // in the order of their turns
	Next []*state.Job // those of the next pass, each once in both
}

// Left reports whether somebody waits to be reviewed.
func (r *Backlog) Left() bool { return len(r.Jobs)+len(r.Next) > 0 }

// Add has j reviewed, where it is not going to be.
func (r *Backlog) Add(j *state.Job) {
	if p := LookoutOf(j); !p.Due {
		p.Due = true
		r.Next = append(r.Next, j)
	}
}

// kinOf is near for jobs that may share a table. It decides nothing.
func kinOf(p policy.Progress) int64 {
	k := plan.Kin(p)
	tick := int64(bits.Len64(uint64(max(0, k[0]))))
	return tick<<56 | min(max(0, k[1]), 1<<40-1)<<16 | min(max(0, k[2]), 1<<16-1)
}

// AnswerTime is how long an answer to a probe is waited for, and how long it counts.
func (dc *Decider) AnswerTime(offer market.OfferID) time.Duration {
	return max(dc.market.timingAt(offer).Detect, time.Nanosecond)
}

// Awaits reports whether j waits for the answer to a probe.
func (dc *Decider) Awaits(j *state.Job) bool {
	if j.ProbeOf() == "" || dc.Now().Sub(j.Probed()) >= dc.AnswerTime(j.ProbeOf()) {
		return false
	}
	l := dc.State.Listing(j.ProbeOf())
	return l != nil && (l.Quote().Untried || l.Quote().At.Before(j.Probed()))
}
