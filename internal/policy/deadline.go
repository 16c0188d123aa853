// Package policy says when to buy what: the deadline policy, the checkpoint
// interval and the guardrails.
package policy

import "time"

// Mode is what the deadline allows a job to do now.
type Mode string

// The modes, from the cheapest to the safest.
const (
	Patient Mode = "patient" // spot where it can be had, else wait
	Steady  Mode = "steady"  // spot where it can be had, else on-demand: the job is behind its pace
	Certain Mode = "certain" // on-demand until the end: the slack is used up
)

// Progress is what the deadline policy looks at. All spans are market time.
type Progress struct {
	Now      time.Time
	Began    time.Time // when the job was submitted
	Deadline time.Time // zero: none
	// Left is the work that is not in a verified checkpoint, on the machine it
	// would move to; Known is false where nobody can say.
	Left  time.Duration
	Known bool
	// Done is the work that is.
	Done time.Duration
	// Restart is what moving to another machine takes: boot, restore, and the
	// save before it.
	Restart time.Duration
	// Detect is how long a loss can go unnoticed.
	Detect time.Duration
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

// Deadline returns the mode for p: Uniform Progress without its second condition.
//
//	Certain  when  deadline − now − left ≤ 2·restart + detect
//	Steady   when  done < (now − began) · (done + left) / (deadline − began)
//	Patient  otherwise
//
// The first line is the guard that no estimate can override: a loss that is
// noticed at the last moment still leaves one restart, and the move itself
// costs another. The second keeps the job on a straight line from its
// submission to its deadline (Wu et al., "Can't Be Late", NSDI 2024).
//
// left=3 h, restart=6 min, detect=1 min: with 4 h to the deadline the slack is
// 1 h and the job is not Certain; with 3 h 13 min it is. Held by TestDeadlineModes.
func Deadline(p Progress) Mode {
	slack, ok := p.Slack(true)
	if !ok {
		return Patient
	}
	if slack <= 2*p.Restart+p.Detect {
		return Certain
	}
	passed, whole := p.Now.Sub(p.Began), p.Deadline.Sub(p.Began)
	if float64(p.Done)*float64(whole) < float64(passed)*float64(p.Done+p.Left) {
		return Steady
	}
	return Patient
}

// CertainAt returns when Deadline turns to Certain if no more work gets done,
// so that the shell can wake the job then. ok is false where it never does.
func CertainAt(p Progress) (at time.Time, ok bool) {
	slack, ok := p.Slack(true)
	if !ok {
		return time.Time{}, false
	}
	return p.Now.Add(max(0, slack-2*p.Restart-p.Detect)), true
}

// SteadyAt returns when Deadline turns from Patient to Steady if no more work
// gets done. ok is false where it never does.
func SteadyAt(p Progress) (at time.Time, ok bool) {
	if p.Deadline.IsZero() || !p.Known || p.Done+p.Left <= 0 {
		return time.Time{}, false
	}
	whole := p.Deadline.Sub(p.Began)
	share := float64(p.Done) / float64(p.Done+p.Left)
	at = p.Began.Add(time.Duration(share * float64(whole))).Add(time.Nanosecond)
	if at.Before(p.Now) {
		at = p.Now
	}
	return at, true
}
