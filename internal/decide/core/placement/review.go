package placement

import (
	"math/bits"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// Bounds of the reviews in a step: the number of jobs, separately for market changes and for jobs that are due, and
// the number of offers weighed, which takes a few milliseconds. The others follow in short steps of their own.
const (
	ReviewsAtOnce = 16
	WeighedAtOnce = 10_000
)

// Backlog is the jobs with a machine that need a review, in passes. Changes during a pass start another pass, so no
// job waits for more than two.
type Backlog struct {
	Jobs []*state.Job // in the order of review
	Next []*state.Job // jobs of the next pass; no job is in either list twice
}

// Left reports whether a job waits for a review.
func (r *Backlog) Left() bool { return len(r.Jobs)+len(r.Next) > 0 }

// Add schedules a review of j, unless one is scheduled.
func (r *Backlog) Add(j *state.Job) {
	if p := LookoutOf(j); !p.Due {
		p.Due = true
		r.Next = append(r.Next, j)
	}
}

// tableKeyOf returns close numbers for jobs that may share a table. No decision depends on it.
func tableKeyOf(p policy.Progress) int64 {
	k := plan.TableKey(p)
	tick := int64(bits.Len64(uint64(max(0, k[0]))))
	return tick<<56 | min(max(0, k[1]), 1<<40-1)<<16 | min(max(0, k[2]), 1<<16-1)
}

// AnswerTime is how long a job waits for the answer to a probe, and how long the answer counts.
func (dc *Decider) AnswerTime(offer market.OfferID) time.Duration {
	return max(dc.market.timingAt(offer).Detect, time.Nanosecond)
}

// Awaits reports whether j waits for the answer to a probe, or leaves a seat to the job that preempted it.
func (dc *Decider) Awaits(j *state.Job) bool {
	if dc.Yields(j) {
		return true
	}
	if j.ProbeOf() == "" || dc.Now().Sub(j.Probed()) >= dc.AnswerTime(j.ProbeOf()) {
		return false
	}
	l := dc.State.Listing(j.ProbeOf())
	return l != nil && (l.Quote().Untried || l.Quote().At.Before(j.Probed()))
}
