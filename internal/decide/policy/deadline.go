// Package policy says when to buy what: the deadline policy, the checkpoint
// interval and the guardrails.
package policy

import (
	"math/bits"
	"time"
)

// Mode is how much of the slack is left, as `scrimp explain` shows it.
type Mode string

// The modes, from the cheapest to the safest.
const (
	Patient Mode = "patient" // ahead of the straight line to the deadline: waiting is possible
	Steady  Mode = "steady"  // behind it
	Certain Mode = "certain" // the guard holds: only what is not interrupted is in time
)

// Progress is what the deadline policy looks at. All spans go by the market's clock.
type Progress struct {
	Now      time.Time
	Began    time.Time // when the job was submitted
	Deadline time.Time // zero: none
	// Left is the work that is not in a verified checkpoint, on the machine it
	// would move to; Known is false where nobody can say.
	Left  time.Duration
	Known bool
	// Uncounted says that the program's own count is none of the job's, so that Left stays unknown.
	Uncounted bool
	// Done is the work that is.
	Done time.Duration
	// Restart is what moving to another machine takes: boot, restore, and the
	// save before it.
	Restart time.Duration
	// Reserve is kept back besides: restarts take longer than the last one did.
	Reserve time.Duration
	// Margin is how much longer than Left the work may take, within the promise.
	Margin time.Duration
	// Detect is how long a loss can go unnoticed.
	Detect time.Duration
	// Poll is the longest time between two decisions; 0 where the job can be
	// looked at whenever it asks.
	Poll time.Duration
}

// Slack is the time to spare if the job ran without interruption from now on,
// after one restart if it does not run now. ok is false without a deadline or
// where the work left is unknown.
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

// Guard reports whether the slack is used up, so that only what is not
// interrupted is still in time. No policy and no estimate overrides it.
//
//	deadline − now − left < restart + reserve + detect + margin          on spot that works
//	deadline − now − left < restart + reserve + detect + margin + look   otherwise
//
// A machine that works loses at most what is not in a checkpoint, which left
// counts already: one restart and the time to notice are enough. Who waits, or
// whose machine does not work yet, loses the time until the next look besides.
//
// left=3 h, restart=reserve=6 min, detect=1 min: the guard holds from 3 h 13 min
// before the deadline on. Held by TestGuard.
func (p Progress) Guard(working bool) bool {
	slack, ok := p.Slack(true)
	return ok && slack < p.need(working)
}

// need is the slack below which the guard holds.
func (p Progress) need(working bool) time.Duration {
	need := p.Restart + p.Reserve + p.Detect + p.Margin
	if !working {
		need += p.Poll
	}
	return need
}

// GuardAt returns when the guard will hold if no more work gets done, so that
// the shell can wake the job then. ok is false where it never does.
func (p Progress) GuardAt(working bool) (at time.Time, ok bool) {
	slack, ok := p.Slack(true)
	if !ok {
		return time.Time{}, false
	}
	return p.Now.Add(max(0, slack-p.need(working)+1)), true
}

// Behind reports whether less is done than a straight line from the submission
// to the deadline asks for, a time ahead from now:
//
//	done · (deadline − began) < (now + ahead − began) · (done + left)
//
// It is the pace of Uniform Progress (Wu et al., "Can't Be Late", NSDI 2024),
// compared exactly. ok is false without a deadline or where the work is unknown.
func (p Progress) Behind(ahead time.Duration) (behind, ok bool) {
	if p.Deadline.IsZero() || !p.Known {
		return false, false
	}
	whole := p.Deadline.Sub(p.Began)
	passed := p.Now.Sub(p.Began) + ahead
	return less(p.Done, whole, passed, p.Done+p.Left), true
}

// Ahead reports whether more is done than the line asks for, a time ahead from now.
func (p Progress) Ahead(ahead time.Duration) (is, ok bool) {
	if p.Deadline.IsZero() || !p.Known {
		return false, false
	}
	return less(p.Now.Sub(p.Began)+ahead, p.Done+p.Left, p.Done, p.Deadline.Sub(p.Began)), true
}

// BehindAt returns the first moment at which the job is behind if no more work gets done.
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
	passed, _ := bits.Div64(hi, lo, uint64(p.Done+p.Left)) // done ≤ done+left, so it is at most whole
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

// less compares a·b with c·d in 128 bits; what is negative counts as nothing.
func less(a, b, c, d time.Duration) bool {
	h1, l1 := bits.Mul64(uint64(max(0, a)), uint64(max(0, b)))
	h2, l2 := bits.Mul64(uint64(max(0, c)), uint64(max(0, d)))
	return h1 < h2 || h1 == h2 && l1 < l2
}
