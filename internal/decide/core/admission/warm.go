package admission

import (
	"fmt"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/lib/money"
)

// heldIdle says what of a limit that has no room is held for machines that wait for a job.
func (ad *Admission) heldIdle(no *budget.Refusal, t time.Time) string {
	held, n := money.Amount{}, 0
	for _, i := range ad.State.Waiting() {
		idle, _ := i.Idle()
		if v := ad.books.IdleJob(i, &idle, t); no.Limit.Scope.Holds(v.Owner, v.User) && v.Most.Cmp(v.Spent) > 0 {
			held, n = held.Add(v.Most.Sub(v.Spent)), n+1
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %s of what is held is for %s waiting for a job and paid for anyway (scrimp machines)",
		money.Short(held, ad.Config().Currency), step.Count(n, "machine"))
}
