package budgets

import (
	"errors"
	"fmt"
	"net/http"

	"scrimp/internal/control"
	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/reply"
)

// Denied returns the response for an event that the core rejected or could not write; what and fix describe the
// second case.
func Denied(c identity.Caller, err error, what, fix string) *reply.Refusal {
	var aside *control.AsideError
	if errors.As(err, &aside) {
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Title: "the server cannot take it", Err: err,
			Fix: "report it with the server's log, and send it in another way until that is fixed"}
	}
	var no *core.Refusal
	if !errors.As(err, &no) {
		return &reply.Refusal{Status: http.StatusServiceUnavailable, Title: what, Fix: fix, Err: err}
	}
	switch no.Why {
	case core.TagMissing:
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "tags", Title: "a tag is required here",
			Fix: "write tags in the job file; scrimp budgets lists what is required", Err: no.Err}
	case core.NeedsApproval:
		return &reply.Refusal{Status: http.StatusForbidden, Field: "budget", Title: "a cost this high needs approval",
			Fix: "scrimp stop it, then scrimp resume it with the new budget: it waits for approval then", Err: no.Err}
	case core.NeverApproved:
		return &reply.Refusal{Status: http.StatusConflict, Title: fmt.Sprintf("job %s was never approved", no.Job),
			Fix: "submit it again with scrimp rerun " + no.Job}
	case core.NoDependency:
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "after", Title: "it cannot run after that job",
			Fix: "name jobs as scrimp jobs lists them, such as prep-2 or prep-2:any, or arrays as scrimp groups does",
			Err: no.Err}
	case core.NoGroup, core.GroupFull, core.MadeElsewhere, core.DeployedElsewhere:
		return &reply.Refusal{Status: http.StatusConflict, Title: "its group does not accept it", Err: no.Err,
			Fix: "run it by itself with scrimp rerun " + no.Job}
	case core.ScheduleOpen:
		return &reply.Refusal{Status: http.StatusConflict, Title: "a schedule of that name is open", Err: no.Err,
			Fix: "end it with scrimp cancel, or give the new one another --name"}
	case core.LimitReached:
	}
	return refusalOf(c, no.Limit)
}

// refusalOf returns the response for a job that a limit refuses. Only callers who see the limit learn what others
// have spent and which jobs they have.
func refusalOf(c identity.Caller, no *budget.Refusal) *reply.Refusal {
	r := &reply.Refusal{Status: http.StatusPaymentRequired, Field: "budget", Title: "a budget refuses the job",
		Fix: no.Fix, Err: no, Limit: no}
	switch no.Why {
	case budget.TooMany, budget.GPUHours, budget.GPUOpen, budget.NoGPUBudget, budget.TooLarge:
		r.Status = http.StatusForbidden
	case budget.NoBudget, budget.OtherOpen, budget.Dollars:
	}
	if !maySee(c, no.Limit.Scope) {
		r.Err, r.Limit = fmt.Errorf("budget %s has no room for it; what is used of it is shown to those who see all teams",
			no.Limit.Name()), nil
		switch no.Why {
		case budget.OtherOpen, budget.GPUOpen: // the fix names a job of another user
			r.Fix = "wait until jobs of other teams are over, or ask an admin for scrimp budgets set"
		case budget.NoBudget, budget.NoGPUBudget, budget.TooLarge: // depends on the request alone, not on others
			r.Err = no
		case budget.Dollars, budget.GPUHours, budget.TooMany:
		}
	}
	return r
}
