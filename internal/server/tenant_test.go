package server

import (
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/store"
	"scrimp/internal/wire/api"
)

// The control decides the tenant: all writes are for that tenant, and all reads find them.
func TestTenant_OwnsEverythingWritten(t *testing.T) {
	t.Parallel()
	w := newWorldFor(t, "lab", &firm{}, nil, func(s store.Replica) store.Replica { return s })
	w.must("PUT", "/v1/teams/a", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "a", Role: identity.Submitter})
	w.limit(budget.Limit{Scope: "team:a", Window: budget.Month, Dollars: dollars(500)})
	submit := `{"key":"k",` + costing("one", "a", `,"budget":{"dollars":"20"}`)[1:]
	for range 2 { // the same key submits once
		rec, p := w.ask("POST", "/v1/jobs", ann, submit)
		if rec.Code != 200 || !strings.Contains(rec.Body.String(), `"id":"one"`) {
			t.Fatalf("%d %+v", rec.Code, p)
		}
	}
	for _, id := range w.booting(1) {
		w.event(core.AttemptStarted{Attempt: id, Message: 1}, time.Minute)
	}
	w.must("POST", "/v1/jobs/one/end", api.End{}, nil)
	var costs api.Costs
	w.must("GET", "/v1/costs", nil, &costs)
	var r api.Receipt
	w.must("GET", "/v1/jobs/one/receipt", nil, &r)
	var v api.Verified
	w.must("GET", "/v1/ledger/verify", nil, &v)
	if len(costs.Lines) == 0 || r.Cost.Sign() <= 0 || !v.OK || v.Postings == 0 {
		t.Errorf("costs %+v, receipt %v, verified %+v", costs, r.Cost, v)
	}
	postings := 0
	for p, err := range w.store.Postings(t.Context(), "lab", "") {
		if err != nil || p.Owner.Tenant != "lab" {
			t.Errorf("%+v, %v", p.Owner, err)
		}
		postings++
	}
	records, err := w.store.Records(t.Context(), 0, 1000)
	if err != nil || postings != v.Postings || len(records) < 8 {
		t.Errorf("%d of %d postings, %d records, %v", postings, v.Postings, len(records), err)
	}
	for _, r := range records {
		if r.Tenant != "lab" {
			t.Errorf("event %d (%s) is of tenant %q", r.Seq, r.Kind, r.Tenant)
		}
	}
}
