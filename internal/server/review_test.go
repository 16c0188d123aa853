package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

// crew creates two teams and returns users by name, each with a role in a team.
func (w *world) crew(who map[string]identity.Grant) map[string]string {
	w.must("PUT", "/v1/teams/a", api.SetTeam{}, nil)
	w.must("PUT", "/v1/teams/b", api.SetTeam{}, nil)
	tokens := map[string]string{}
	for name, g := range who {
		tokens[name] = w.user(name, g)
	}
	return tokens
}

func (w *world) seen(id string) (j api.Job) {
	w.t.Helper()
	w.must("GET", "/v1/jobs/"+id, nil, &j)
	return j
}

func TestApproval_WaitsForAnAllowedReviewer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 1e6 })
	who := w.crew(map[string]identity.Grant{
		"ann": {Team: "a", Role: identity.Operator}, "bea": {Team: "a", Role: identity.Operator},
		"sub":  {Team: "a", Role: identity.Submitter},
		"boss": {Team: "a", Role: identity.Admin}, "bob": {Team: "b", Role: identity.Admin},
		"all": {Team: "*", Role: identity.Operator},
	})
	w.limit(budget.Limit{Scope: "team:a", Window: budget.Month, Dollars: dollars(500), Approve: dollars(10)})
	w.limit(budget.Limit{Scope: "all", Window: budget.Month, Approve: dollars(100)})
	submit := func(name, by, rest string) api.Job {
		t.Helper()
		rec, p := w.ask("POST", "/v1/jobs", who[by], costing(name, "a", rest))
		var j api.Job
		if rec.Code != 200 || json.Unmarshal(rec.Body.Bytes(), &j) != nil {
			t.Fatalf("%s: %d %+v", name, rec.Code, p)
		}
		return j
	}
	if j := submit("small", "sub", `,"budget":{"dollars":"10"}`); j.State != "queued" || j.Approval != nil {
		t.Errorf("a job at the threshold is %s", j.State)
	}
	if j := submit("team", "ann", `,"budget":{"dollars":"10.01"}`); j.State != "held" || j.Why != core.WaitsForApproval ||
		!strings.Contains(j.Detail, "$10.01 is above $10.00 of team:a/month") || len(j.Approval.Limits) != 1 ||
		j.User != "ann" {
		t.Errorf("a job above it: %+v", j)
	}
	submit("both", "sub", `,"budget":{"dollars":"200"}`)
	if rec, p := w.ask("POST", "/v1/jobs", who["sub"],
		costing("more", "a", `,"budget":{"dollars":"491"}`)); rec.Code != http.StatusPaymentRequired {
		t.Errorf("what is approved by nobody holds nothing, and what has no room is not asked for: %d %+v", rec.Code, p)
	}
	for _, c := range []struct {
		job, who, what string
		code           int
	}{
		{"team", "bob", "approve", 404}, {"team", "sub", "approve", 403}, {"team", "ann", "approve", 403},
		{"team", "ann", "reject", 422},
		{"small", "bea", "approve", 409}, {"both", "bea", "approve", 403}, {"both", "boss", "approve", 403},
		{"team", "bea", "approve", 200}, {"team", "bea", "approve", 200}, {"team", "bea", "reject", 409},
		{"both", "all", "approve", 200},
	} {
		body := `{"reason":"for the paper"}`
		if c.code == 422 {
			body = `{}`
		}
		if rec, p := w.ask("POST", "/v1/jobs/"+c.job+"/"+c.what, who[c.who], body); rec.Code != c.code ||
			c.code != 200 && p.Fix == "" {
			t.Errorf("%s %ss %s: %d %+v, want %d", c.who, c.what, c.job, rec.Code, p, c.code)
		}
	}
	if j := w.seen("team"); j.State != "queued" || *j.Approval.Approved != true || j.Approval.By != "bea" ||
		j.Approval.Reason != "for the paper" {
		t.Errorf("%+v %+v", j, j.Approval)
	}
	submit("own", "boss", `,"budget":{"dollars":"20"}`)
	if rec, p := w.ask("POST", "/v1/jobs/own/approve", who["boss"], "{}"); rec.Code != 200 {
		t.Errorf("an admin approves their own: %d %+v", rec.Code, p)
	}
	submit("no", "sub", `,"budget":{"dollars":"20"}`)
	if rec, _ := w.ask("POST", "/v1/jobs/no/reject", who["ann"], api.Review{Reason: "on a tenth first"}); rec.Code != 200 {
		t.Errorf("%d", rec.Code)
	}
	if j := w.seen("no"); j.State != "cancelled" || j.Why != core.Rejected || j.Approval.Reason != "on a tenth first" {
		t.Errorf("%+v", j)
	}
	var audit api.Audit
	w.must("GET", "/v1/audit?user=bea", nil, &audit)
	done := 0
	for _, a := range audit.Acts {
		if a.Outcome == "done" && a.Object == "team" && a.Detail == "for the paper" {
			done++
		}
	}
	if done < 1 {
		t.Errorf("the audit trail has %+v", audit.Acts)
	}
	site := httptest.NewServer(w.h)
	defer site.Close()
	bea := client.New(site.URL, who["bea"], nil)
	for name, review := range map[string]func(context.Context, string, string) (client.Job, error){"queued": bea.Approve,
		"cancelled": bea.Reject} {
		submit("to-be-"+name, "sub", `,"budget":{"dollars":"20"}`)
		if j, err := review(t.Context(), "to-be-"+name, "by a program"); err != nil || j.State != name {
			t.Errorf("%s: %s, %v", name, j.State, err)
		}
	}
	if rec, p := w.ask("GET", "/v1/jobs?state=waiting", who["bea"], nil); rec.Code != 400 || p.Field != "state" {
		t.Errorf("a state that there is not: %d %+v", rec.Code, p)
	}
	rec, _ := w.ask("GET", "/v1/jobs?state=held", who["bea"], nil)
	if rec.Body.String() != "[]\n" {
		t.Errorf("held are %s", rec.Body)
	}
}

// A job that waits for approval has no hold; its approval checks the limits again.
func TestApproval_ChecksTheLimitsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.limit(budget.Limit{Scope: "all", Window: budget.Month, Dollars: dollars(100), Jobs: new(2), Approve: dollars(50)})
	w.must("POST", "/v1/jobs", costing("big", "a", `,"budget":{"dollars":"80"}`), nil)
	w.must("POST", "/v1/jobs", costing("one", "a", `,"budget":{"dollars":"40"}`), nil)
	var v api.Budgets
	w.must("GET", "/v1/budgets", nil, &v)
	if u := v.Limits[0].Use; u.Held != *dollars(40) || u.Jobs != 1 || u.AwaitingApproval != 1 {
		t.Errorf("%+v", u)
	}
	if rec, p := w.ask("POST", "/v1/jobs/big/approve", auth.OwnerName, "{}"); rec.Code != http.StatusPaymentRequired ||
		p.Limit == nil {
		t.Errorf("$80 beside $40 of $100: %d %+v", rec.Code, p)
	}
	if j := w.seen("big"); j.State != "held" {
		t.Errorf("it is %s", j.State)
	}
	w.must("POST", "/v1/jobs/one/end", api.End{}, nil)
	w.must("POST", "/v1/jobs/big/approve", "{}", nil)
	if j := w.seen("big"); j.State != "queued" {
		t.Errorf("it is %s", j.State)
	}
	if rec, _ := w.ask("POST", "/v1/jobs", auth.OwnerName,
		costing("two", "a", `,"budget":{"dollars":"30"}`)); rec.Code != http.StatusPaymentRequired {
		t.Errorf("what was approved holds its money: %d", rec.Code)
	}
	for what, want := range map[string]string{"budgets": `"awaiting_approval":0`, "jobs?state=queued": `"id":"big"`} {
		if rec, _ := w.ask("GET", "/v1/"+what, auth.OwnerName, nil); !strings.Contains(rec.Body.String(), want) {
			t.Errorf("%s: %s", what, rec.Body)
		}
	}
}

// Webhooks are called once; by the next server if this one stopped before. A job that nobody approves in time is
// cancelled, and one whose deadline passed meanwhile says so.
func TestApproval_NotifiesOnceAndExpires(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, func(o *Options) { o.Dir = dir; hooked(o) })
	said := make(chan string, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b := make([]byte, 2000)
		n, _ := r.Body.Read(b)
		said <- string(b[:n])
	}))
	defer hook.Close()
	w.limit(budget.Limit{Scope: "all", Window: budget.Month, Approve: dollars(50), ApproveWithin: 48 * time.Hour,
		Notify: hook.URL + "/secret"})
	w.must("POST", "/v1/jobs", costing("big", "a", `,"budget":{"dollars":"80"},"deadline":"in 36h","work":{"time":"30h"},"resources":{"capacity":["on-demand"]}`),
		nil)
	list, err := w.outbox.Unasked()
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	w.outbox.Notify(t.Context(), list[0])
	if text := <-said; !strings.Contains(text, `"job":"big"`) || !strings.Contains(text, `"state":"held"`) ||
		!strings.Contains(text, "scrimp approve big") || !strings.Contains(text, "$80.00 is above $50.00") {
		t.Errorf("%s", text)
	}
	if list, err := w.outbox.Unasked(); err != nil || len(list) != 0 {
		t.Errorf("asked again: %+v, %v", list, err)
	}
	if j := w.seen("big"); !strings.Contains(j.Detail, "its deadline runs on") ||
		strings.Contains(j.Detail, "miss its deadline") {
		t.Errorf("%s", j.Detail)
	}
	w.control.ReadUncommitted(func(m *core.Machine) {
		j, _ := m.Job("big")
		if late, ok := m.TooLate(j, j.Submitted().Add(47*time.Hour)); !ok || late < 40*time.Hour {
			t.Errorf("30 hours from hour 47 on are %v late, %v, of 36", late, ok)
		}
	})
	w.event(core.Tick{}, 49*time.Hour)
	if j := w.seen("big"); j.State != "cancelled" || j.Why != core.ApprovalExpired {
		t.Errorf("%+v", j)
	}
	if rec, p := w.ask("POST", "/v1/jobs/big/approve", auth.OwnerName, "{}"); rec.Code != http.StatusConflict || p.Fix == "" {
		t.Errorf("too late: %d %+v", rec.Code, p)
	}
	if _, err := w.outbox.Unasked(); err != nil {
		t.Error(err)
	}
	if strings.Contains(w.log.String(), "secret") {
		t.Error("the log has the webhook's address")
	}
}

// A job over a quota shows that it waits, and for which quota.
func TestQuota_IsShownOnWaitingJobs(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	w.limit(budget.Limit{Scope: "team:a", Window: budget.Month, Running: new(1)})
	for _, name := range []string{"one", "two"} {
		w.must("POST", "/v1/jobs", aJob(name, "a"), nil)
	}
	w.must("POST", "/v1/jobs", aJob("other", "b"), nil)
	id := w.booting(2)[0]
	if j := w.seen("two"); j.State != "queued" || j.Why != "over_quota" || j.Quota != "team:a/month" ||
		!strings.Contains(j.Detail, "team:a/month lets 1 job run at once, and 1 runs") {
		t.Errorf("%+v", j)
	}
	if rec, _ := w.ask("GET", "/metrics", auth.OwnerName, nil); !strings.Contains(rec.Body.String(),
		`scrimp_jobs_over_quota{limit="team:a/month"} 1`) {
		t.Errorf("%s", rec.Body)
	}
	w.event(core.AttemptStarted{Attempt: id, Message: 1}, time.Minute)
	w.event(core.AttemptEnded{Attempt: id, Message: 2, Reason: "completed"}, 2*time.Minute)
	w.event(core.InstanceEnded{Instance: w.instance(id), Until: w.control.Now(), Cause: "terminated"}, 3*time.Minute)
	w.booting(2)
	if j := w.seen("two"); j.State != "running" || j.Quota != "" {
		t.Errorf("%+v", j)
	}
}
