// Package policy decides when to buy what: the deadline policy, the checkpoint interval and the guardrails.
package policy

import (
	"math/bits"
	"time"
)

// Mode is how much of the slack is left, as shown by `scrimp explain`.
type Mode string

// Modes, from the cheapest to the safest.
const (
	Patient Mode = "patient" // ahead of the straight line to the deadline: waiting is possible
	Steady  Mode = "steady"  // behind the line
	Certain Mode = "certain" // the guard applies: only non-preemptible capacity is in time
)

// Progress is the input of the deadline policy. All durations are market time.
type Progress struct {
	Now      time.Time
	Began    time.Time // submission of the job
	Deadline time.Time // zero: none
	// Left is the work that no verified checkpoint has, on the machine that the job would move to. Known is false
	// if it is unknown.
	Left  time.Duration
	Known bool
	// Uncounted is set if the program's own count is not the job's, so that Left stays unknown.
	Uncounted bool
	// Done is the work in verified checkpoints.
	Done time.Duration
	// Restart is the time of a move to another machine: the save before it, boot and restore.
	Restart time.Duration
	// Reserve is extra time to keep back, because restarts may take longer than the last one.
	Reserve time.Duration
	// Margin is how much longer than Left the work may take, within the promise.
	Margin time.Duration
	// Detect is how long a loss can go unnoticed.
	Detect time.Duration
	// Poll is the longest time between two decisions; 0 if the job is decided whenever it asks.
	Poll time.Duration
}

// Slack is the time to spare if the job ran without interruption from now on, after one restart if it does not run
// now. ok is false without a deadline or if the remaining work is unknown.
func (p Progress) Slack(running bool) (slack time.Duration, ok bool) {
	if p.Deadline.IsZero() || !p.Known {
		return 0, false
	}
	slack = p.Deadline.Sub(p.Now) - p.Left
	if !running {
		slack -= p.Restart
	}
	return slack, true
}

// Guard reports whether the slack is used up, so that only non-preemptible capacity is still in time. No policy and
// no estimate overrides it.
//
//	deadline − now − left < restart + reserve + detect + margin          on spot that works
//	deadline − now − left < restart + reserve + detect + margin + look   otherwise
//
// A working machine loses at most what no checkpoint has, and left already counts that: one restart and the time to
// notice are enough. A job that waits, or whose machine does not work yet, also loses the time until the next poll.
//
// Example: with left=3 h, restart=reserve=6 min and detect=1 min, the guard applies from 3 h 13 min before the
// deadline. TestMode_TurnsCertainAtTheGuard checks it.
func (p Progress) Guard(working bool) bool {
	slack, ok := p.Slack(true)
	return ok && slack < p.need(working)
}

// need is the slack below which the guard applies.
func (p Progress) need(working bool) time.Duration {
	need := p.Restart + p.Reserve + p.Detect + p.Margin
	if !working {
		need += p.Poll
	}
	return need
}

// GuardAt returns when the guard will apply if no more work gets done, so that the shell can wake the job then. ok
// is false if it never does.
func (p Progress) GuardAt(working bool) (at time.Time, ok bool) {
	slack, ok := p.Slack(true)
	if !ok {
		return time.Time{}, false
	}
	return p.Now.Add(max(0, slack-p.need(working)+1)), true
}

// Behind reports whether less work is done than a straight line from the submission to the deadline requires, at
// the time ahead from now:
//
//	done · (deadline − began) < (now + ahead − began) · (done + left)
//
// This is the pace of Uniform Progress (Wu et al., "Can't Be Late", NSDI 2024), compared exactly. ok is false
// without a deadline or if the work is unknown.
func (p Progress) Behind(ahead time.Duration) (behind, ok bool) {
	if p.Deadline.IsZero() || !p.Known {
		return false, false
	}
	whole := p.Deadline.Sub(p.Began)
	passed := p.Now.Sub(p.Began) + ahead
	return less(p.Done, whole, passed, p.Done+p.Left), true
}

// Ahead reports whether more work is done than the line requires, at the time ahead from now.
func (p Progress) Ahead(ahead time.Duration) (is, ok bool) {
	if p.Deadline.IsZero() || !p.Known {
		return false, false
	}
	return less(p.Now.Sub(p.Began)+ahead, p.Done+p.Left, p.Done, p.Deadline.Sub(p.Began)), true
}

// BehindAt returns the first time at which the job is behind if no more work gets done.
func (p Progress) BehindAt() (at time.Time, ok bool) {
	if p.Deadline.IsZero() || !p.Known || p.Left < 0 || p.Done+p.Left <= 0 {
		return time.Time{}, false
	}
	whole := p.Deadline.Sub(p.Began)
	if whole <= 0 {
		return p.Now, true
	}
	// passed > done·whole/(done+left), so one more than the quotient
	hi, lo := bits.Mul64(uint64(max(0, p.Done)), uint64(whole))
	passed, _ := bits.Div64(hi, lo, uint64(p.Done+p.Left)) // done ≤ done+left, so the quotient is at most whole
	at = p.Began.Add(time.Duration(passed) + 1)
	if at.Before(p.Now) {
		at = p.Now
	}
	return at, true
}

// Mode returns how much of the slack is left.
func (p Progress) Mode(working bool) Mode {
	if p.Guard(working) {
		return Certain
	}
	if behind, ok := p.Behind(0); ok && behind {
		return Steady
	}
	return Patient
}

// less compares a·b with c·d in 128 bits. Negative factors count as zero.
func less(a, b, c, d time.Duration) bool {
	h1, l1 := bits.Mul64(uint64(max(0, a)), uint64(max(0, b)))
	h2, l2 := bits.Mul64(uint64(max(0, c)), uint64(max(0, d)))
	return h1 < h2 || h1 == h2 && l1 < l2
}
