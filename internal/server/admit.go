package server

import (
	"errors"
	"fmt"
	"net/http"

	"scrimp/internal/budget"
	"scrimp/internal/core"
	"scrimp/internal/identity"
)

// denied is what the caller is told of an event that the core does not take, or that was
// not written: what and fix say what to do then.
func denied(c identity.Caller, err error, what, fix string) *refusal {
	var no *core.Refusal
	if !errors.As(err, &no) {
		return &refusal{status: http.StatusServiceUnavailable, title: what, fix: fix, err: err}
	}
	switch no.Why {
	case core.TagMissing:
		return &refusal{status: http.StatusUnprocessableEntity, field: "tags", title: "a tag is required here",
			fix: "write tags in the job file; scrimp budgets lists what is required", err: no.Err}
	case core.NeedsApproval:
		return &refusal{status: http.StatusForbidden, field: "budget", title: "so much has to be approved",
			fix: "scrimp stop it, then scrimp resume it with the new budget: it waits for approval then", err: no.Err}
	case core.NeverApproved:
		return &refusal{status: http.StatusConflict, title: fmt.Sprintf("job %s was never approved", no.Job),
			fix: "submit it anew with scrimp rerun " + no.Job}
	case core.NoHold, core.HoldFull: // no route asks for one yet
		return &refusal{status: http.StatusConflict, title: "the hold does not let it in", err: no.Err,
			fix: "open a hold with more, or wait until its parts are over"}
	case core.LimitReached:
	}
	return overLimit(c, no.Limit)
}

// overLimit is how a limit refuses. What others have spent and which jobs they have
// is told to those alone who see the limit.
func overLimit(c identity.Caller, no *budget.Refusal) *refusal {
	r := &refusal{status: http.StatusPaymentRequired, field: "budget", title: "a budget does not let the job in",
		fix: no.Fix, err: no, limit: no}
	switch no.Why {
	case budget.TooMany, budget.GPUHours, budget.GPUOpen, budget.NoGPUBudget, budget.TooLarge:
		r.status = http.StatusForbidden
	case budget.NoBudget, budget.OtherOpen, budget.Dollars:
	}
	if !shows(c, no.Limit.Scope) {
		r.err, r.limit = fmt.Errorf("budget %s has no room for it; what is used of it is shown to those who see all teams",
			no.Limit.Name()), nil
		switch no.Why {
		case budget.OtherOpen, budget.GPUOpen: // the fix names a job
			r.fix = "wait until jobs of other teams are over, or ask an admin for scrimp budgets set"
		case budget.NoBudget, budget.NoGPUBudget, budget.TooLarge: // what the job asks for is wrong, whatever others do
			r.err = no
		case budget.Dollars, budget.GPUHours, budget.TooMany:
		}
	}
	return r
}
