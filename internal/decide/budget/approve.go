package budget

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"scrimp/internal/lib/money"
)

// PendingApproval is why a job waits for approval, and until when. It holds no money
// meanwhile: a wish that nobody has agreed to takes nothing from anyone.
type PendingApproval struct {
	Limits  []Threshold  `json:"limits"` // that it is above, the lowest amount first
	Most    money.Amount `json:"most"`   // that the job can cost; 0 where nobody knows
	Bounded bool         `json:"bounded"`
	Until   time.Time    `json:"until"` // market time; whoever has not approved it by then never does
}

// Threshold is an amount above which a limit asks for approval.
type Threshold struct {
	Limit string       `json:"limit"`
	Scope Scope        `json:"scope"`
	Above money.Amount `json:"above"`
}

// DefaultApproval is how long a job waits for approval where its limits do not say: wall
// time, for people do the approving.
const DefaultApproval = 7 * 24 * time.Hour

// Approval says what a new job must be approved for, or false: nothing. A job
// that can cost nobody knows how much is above every amount. It is given up for
// at the end of the shortest time that one of its limits sets; now is market time,
// and stretch makes a span of it from one on the wall.
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

// String says what is waited for: waits for approval: $120.00 is above $100.00 of team:a/month.
func (a PendingApproval) String() string {
	if len(a.Limits) == 0 {
		return "waits for approval"
	}
	t := a.Limits[0]
	above := money.Short(t.Above, money.USD) + " of " + t.Limit
	if !a.Bounded {
		return "waits for approval: its highest cost is unknown, and a job above " + above + " needs it"
	}
	return fmt.Sprintf("waits for approval: %s is above %s", money.Short(a.Most, money.USD), above)
}

// Of reports whether that limit asks.
func (a PendingApproval) Of(limit string) bool {
	return slices.ContainsFunc(a.Limits, func(t Threshold) bool { return t.Limit == limit })
}

// Everywhere reports whether a limit asks whose scope is all jobs: then who
// approves must have the say for all teams, and not for the job's alone.
func (a PendingApproval) Everywhere() bool {
	return slices.ContainsFunc(a.Limits, func(t Threshold) bool { return t.Scope == All })
}

// Unapproved is why somebody may not approve a job, or "".
type Unapproved string

// Why not.
const (
	OwnJob    Unapproved = "own_job"    // who submitted it asks another
	NotForAll Unapproved = "everywhere" // a limit of all teams asks for one who has the say for all
)

// May says why a user may not approve a job that waits for a. The role in the
// job's team is there already; admin says that it is admin there, and forAll
// that it holds for all teams.
func (a PendingApproval) May(approver, submitter string, admin, forAll bool) Unapproved {
	switch {
	case a.Everywhere() && !forAll:
		return NotForAll
	case approver == submitter && !admin:
		return OwnJob
	}
	return ""
}
