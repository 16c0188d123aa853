package server

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"scrimp/internal/api"
	"scrimp/internal/budget"
	"scrimp/internal/core"
	"scrimp/internal/identity"
	"scrimp/internal/money"
)

// 64 clients submit and end jobs of one limit, singly and in batches: it is never
// passed, though nobody waits for another's commit, and at the end nothing is held.
func TestSubmissionsThatShareTransactionsNeverPassALimit(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Rate = 1e6 })
	w.limit(budget.Limit{Scope: "team:a", Window: budget.Month, Dollars: dollars(100), Jobs: ptr(9)})
	var all sync.WaitGroup
	var let, refused, now atomic.Int64
	for c := range 64 {
		all.Go(func() {
			for i := range 6 {
				n, path, body := int64(1), "/v1/jobs", costing(fmt.Sprintf("j-%d-%d", c, i), "a", `,"budget":{"dollars":"12"}`)
				if c%4 == 0 {
					n, path = 2, "/v1/jobs/batch"
					body = "[" + body + "," + costing(fmt.Sprintf("k-%d-%d", c, i), "a", `,"budget":{"dollars":"12"}`) + "]"
				}
				rec, _ := w.ask("POST", path, ownerName, body)
				switch rec.Code {
				case 200:
					let.Add(n)
					if at := now.Add(n); at > 8 {
						t.Errorf("%d jobs of $12 are let in under $100", at)
					}
				case http.StatusPaymentRequired:
					refused.Add(1)
					continue
				default:
					t.Errorf("%d %s", rec.Code, rec.Body)
				}
				var b api.Budgets
				w.must("GET", "/v1/budgets", nil, &b)
				if u := b.Limits[0].Use; u.Spent.Add(u.Held).Cmp(*dollars(100)) > 0 || u.Jobs > 8 {
					t.Errorf("%+v", u)
				}
				now.Add(-n) // before they end, so that it is never too high
				for _, kind := range []string{"j", "k"}[:n] {
					w.must("POST", fmt.Sprintf("/v1/jobs/%s-%d-%d/end", kind, c, i), api.End{}, nil)
				}
			}
		})
	}
	all.Wait()
	var b api.Budgets
	w.must("GET", "/v1/budgets", nil, &b)
	if u := b.Limits[0].Use; u.Jobs != 0 || u.Held.Sign() != 0 || len(w.pending) != 0 {
		t.Errorf("when all are over: %+v, pending %v", u, w.pending)
	}
	if let.Load() < 8 || refused.Load() == 0 {
		t.Errorf("%d let in, %d refused: nothing was at stake", let.Load(), refused.Load())
	}
}

// What is let in counts from then on, though the core has not heard of it yet; once
// only when it has; and no more when it is given up. Of one whose client has left
// nobody knows, so it counts for a while.
func TestAHoldStandsFromAdmissionUntilTheCoreHasTheJob(t *testing.T) {
	w := newWorld(t, nil)
	w.limit(budget.Limit{Scope: "all", Window: budget.Month, Dollars: dollars(10)})
	admit := func(id string) (*admission, *refusal) {
		t.Helper()
		d, no := w.openAdmission(t.Context())
		if no != nil {
			t.Fatal(no.err)
		}
		_, no = d.admit(t.Context(), identity.Caller{User: "ann"}, id,
			&core.Terms{Currency: money.USD, Budget: *dollars(6), HasBudget: true})
		d.close()
		return d, no
	}
	first, no := admit("a")
	if no != nil {
		t.Fatal(no.err)
	}
	if _, no := admit("b"); no == nil {
		t.Error("two jobs of $6 are let in under $10 while the first is under way")
	}
	first.end(t.Context())
	second, no := admit("c")
	if no != nil {
		t.Errorf("when the first is given up: %v", no.err)
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	second.end(left)
	if _, no := admit("d"); no == nil {
		t.Error("a job may still come whose client has left, and its money is given to another")
	}
	w.event(core.JobSubmitted{Job: "c", Terms: core.Terms{Name: "c", Currency: money.USD, Budget: *dollars(6),
		HasBudget: true}}, 0)
	if _, _, _, err := w.booksNow(t.Context()); err != nil || len(w.pending) != 0 {
		t.Errorf("the core has the job: %v, pending %v", err, w.pending)
	}
	var b api.Budgets
	if w.must("GET", "/v1/budgets", nil, &b); b.Limits[0].Use.Held != *dollars(6) {
		t.Errorf("held %v, want $6 once", b.Limits[0].Use.Held)
	}
}
