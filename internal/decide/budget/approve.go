package budget

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"scrimp/internal/lib/money"
)

// PendingApproval is why a job waits for approval, and until when. Meanwhile it holds no money: a request that
// nobody has approved takes nothing from others.
type PendingApproval struct {
	Limits  []Threshold  `json:"limits"` // thresholds that it exceeds, the lowest amount first
	Most    money.Amount `json:"most"`   // maximum cost of the job; 0 if unknown
	Bounded bool         `json:"bounded"`
	Until   time.Time    `json:"until"` // market time; the job is given up if nobody approves it by then
	// Proposal is set if the submission itself asks for the approval, whatever the limits say.
	Proposal bool `json:"proposal,omitempty"`
}

// Threshold is an amount above which a limit requires approval.
type Threshold struct {
	Limit string       `json:"limit"`
	Scope Scope        `json:"scope"`
	Above money.Amount `json:"above"`
}

// DefaultApproval is how long a job waits for approval if its limits state no time. It is real time, because people
// approve.
const DefaultApproval = 7 * 24 * time.Hour

// Approval returns the approval that a new job needs; asks is false if it needs none. A job with an unknown maximum
// cost exceeds every threshold. The job waits for the shortest time that one of its limits sets. now is market
// time, and stretch converts real time to market time.
func Approval(limits []Limit, j Job, now time.Time, stretch func(time.Duration) time.Duration) (a PendingApproval,
	asks bool) {
	wait := time.Duration(0)
	for _, l := range limits {
		if l.Approve == nil || !l.Scope.Holds(j.Owner, j.User) || j.Bounded && j.Most.Cmp(*l.Approve) <= 0 {
			continue
		}
		a.Limits = append(a.Limits, Threshold{Limit: l.Name(), Scope: l.Scope, Above: *l.Approve})
		if w := cmp.Or(l.ApproveWithin, DefaultApproval); wait == 0 || w < wait {
			wait = w
		}
	}
	slices.SortStableFunc(a.Limits, func(x, y Threshold) int { return x.Above.Cmp(y.Above) })
	if j.Bounded {
		a.Most, a.Bounded = j.Most, true
	}
	a.Until = now.Add(stretch(wait))
	return a, len(a.Limits) > 0
}

// Asking returns the approval of a job that the limits ask for, the submission itself, or both; nil: neither does.
// The submission's own holds whatever the limits say.
func Asking(limits, own *PendingApproval, j Job) *PendingApproval {
	if own == nil || !own.Proposal {
		return limits
	}
	a := PendingApproval{Until: own.Until}
	if limits != nil {
		a = *limits
	}
	a.Proposal, a.Most, a.Bounded = true, money.Amount{}, j.Bounded
	if j.Bounded {
		a.Most = j.Most
	}
	return &a
}

// String describes the approval: waits for approval: $120.00 is above $100.00 of team:a/month.
func (a PendingApproval) String() string {
	switch {
	case len(a.Limits) > 0:
	case a.Proposal:
		return "waits for approval: it is a proposal"
	default:
		return "waits for approval"
	}
	t := a.Limits[0]
	above := money.Short(t.Above, money.USD) + " of " + t.Limit
	if !a.Bounded {
		return "waits for approval: its highest cost is unknown, and a job above " + above + " needs it"
	}
	return fmt.Sprintf("waits for approval: %s is above %s", money.Short(a.Most, money.USD), above)
}

// Of reports whether the named limit requires the approval.
func (a PendingApproval) Of(limit string) bool {
	return slices.ContainsFunc(a.Limits, func(t Threshold) bool { return t.Limit == limit })
}

// Everywhere reports whether a limit on all jobs requires the approval. The approver then needs a role for all
// teams, not only for the job's team.
func (a PendingApproval) Everywhere() bool {
	return slices.ContainsFunc(a.Limits, func(t Threshold) bool { return t.Scope == All })
}

// Unapproved is why a user may not approve a job, or "".
type Unapproved string

// Reasons.
const (
	OwnJob    Unapproved = "own_job"    // the submitter needs another user's approval
	NotForAll Unapproved = "everywhere" // a limit on all teams needs an approver for all teams
)

// May returns why a user may not approve a job that waits for a. The caller has already checked the user's role in
// the job's team; admin says that it is admin there, and forAll that it covers all teams.
func (a PendingApproval) May(approver, submitter string, admin, forAll bool) Unapproved {
	switch {
	case a.Everywhere() && !forAll:
		return NotForAll
	case approver == submitter && !admin:
		return OwnJob
	}
	return ""
}
