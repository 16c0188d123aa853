package server

import (
	"encoding/json"
	"fmt"
	"net/http"

	"scrimp/internal/api"
	"scrimp/internal/budget"
	"scrimp/internal/core"
	"scrimp/internal/identity"
	"scrimp/internal/money"
)

// admitAll is admit for the jobs of a batch: each is weighed with the holds of
// those before it, and where one is not let in, none is. done is called when
// they are written.
func (s *Server) admitAll(w http.ResponseWriter, r *http.Request, ids []string, terms []core.Terms) (done func(), ok bool) {
	if len(terms) == 0 {
		return func() {}, true
	}
	s.ledgers.Lock()
	defer func() {
		if !ok {
			s.ledgers.Unlock()
		}
	}()
	unread := func(err error) (func(), bool) {
		problem(w, http.StatusServiceUnavailable, "the budgets were not read", "submit them again with the same keys", err)
		return nil, false
	}
	rules, err := s.readRules(r.Context())
	if err != nil {
		return unread(err)
	}
	for n, t := range terms {
		if err := rules.Tags.Check(t.Owner.Tags); err != nil {
			fieldProblem(w, http.StatusUnprocessableEntity, "tags", "a tag is required here, and job "+ids[n]+" lacks it", "write tags in the job file; scrimp budgets lists what is required", err)
			return nil, false
		}
	}
	if len(rules.Limits) == 0 {
		s.ledgers.Unlock()
		return func() {}, true
	}
	b, _, err := s.books(r.Context(), rules)
	if err != nil {
		return unread(err)
	}
	c := callerOf(r)
	for n := range terms {
		t := &terms[n]
		if !t.HasBudget && budget.Capped(rules.Limits, t.Owner, c.User) {
			if most, known := budget.Bound(t.Work, s.highest(t)); known {
				t.Budget, t.HasBudget = most, true
			}
		}
		j := budgetJob(ids[n], c.User, *t)
		if least, by, asks := budget.Approval(rules.Limits, t.Owner, c.User); asks && (!j.Bounded || j.Most.Cmp(least) > 0) && c.Role(t.Owner.Team) < identity.Admin {
			fieldProblem(w, http.StatusForbidden, "budget", fmt.Sprintf("job %s can cost more than %s, and such jobs are submitted by an admin: budget %s", ids[n], money.Format(least, t.Currency, 2), by.Name()),
				"give the job a smaller budget, or ask an admin to submit it", nil)
			return nil, false
		}
		if no := b.Admit(j); no != nil {
			status := http.StatusPaymentRequired
			if no.Why == budget.TooMany || no.Why == budget.GPUHours || no.Why == budget.GPUOpen || no.Why == budget.NoGPUBudget {
				status = http.StatusForbidden
			}
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(api.Problem{Type: "about:blank", Title: "a budget does not let job " + ids[n] + " of the batch in", Status: status, Field: "budget", Detail: no.Error(), Mend: no.Mend, Limit: &no.Limit, Use: &no.Use})
			return nil, false
		}
		b.Live = append(b.Live, j)
	}
	return s.ledgers.Unlock, true
}
