package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

// proposing returns a submission of a job of the team a with a proposal.
func proposing(name, rest, proposal string) string {
	return strings.TrimSuffix(costing(name, "a", rest), "}") + `,"proposal":` + proposal + "}"
}

func (w *world) proposals(query, token string) (v client.Proposals) {
	w.t.Helper()
	rec, p := w.ask("GET", "/v1/proposals"+query, token, nil)
	if err := json.Unmarshal(rec.Body.Bytes(), &v); rec.Code != 200 || err != nil {
		w.t.Fatalf("%d %+v %v", rec.Code, p, err)
	}
	return v
}

// A proposed job waits until an operator other than its proposer approves it. Only its team sees it, and what it gave
// stands beside what was expected.
func TestProposals_WaitForApprovalAndKeepWhatTheyGave(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 1e6 })
	who := w.crew(map[string]identity.Grant{
		"view": {Team: "a", Role: identity.Viewer}, "sub": {Team: "a", Role: identity.Submitter},
		"sam": {Team: "a", Role: identity.Submitter}, "ops": {Team: "a", Role: identity.Operator}, "bob": {Team: "b", Role: identity.Admin},
	})
	body := proposing("idea", "", `{"why":"beats the baseline","value":"5000"}`)
	if rec, _ := w.ask("POST", "/v1/jobs", who["view"], body); rec.Code != 403 {
		t.Errorf("a viewer proposes: %d", rec.Code)
	}
	rec, p := w.ask("POST", "/v1/jobs", who["sub"], body)
	var j api.Job
	if rec.Code != 200 || json.Unmarshal(rec.Body.Bytes(), &j) != nil || j.State != "held" || !j.Approval.Proposal ||
		!strings.Contains(j.Detail, "it is a proposal") {
		t.Fatalf("%d %+v %+v", rec.Code, p, j)
	}
	if rec, _ = w.ask("PATCH", "/v1/jobs/idea", who["sub"], `{"budget":"1"}`); rec.Code != 200 || w.seen("idea").State != "held" {
		t.Errorf("with a new budget: %d, and it is %s", rec.Code, w.seen("idea").State)
	}
	v := w.proposals("", who["view"])
	if len(v.Proposals) != 1 || v.Proposals[0].User != "sub" || v.Proposals[0].Why != "beats the baseline" ||
		*v.Proposals[0].Value != money.Picos(5000e12) || v.Proposals[0].Team != "a" || v.Proposals[0].Fits != nil {
		t.Fatalf("%+v", v)
	}
	if list := w.proposals("", who["bob"]).Proposals; len(list) != 0 {
		t.Errorf("another team sees %+v", list)
	}
	for _, c := range []struct {
		method, path, who, body string
		code                    int
		field                   string
	}{
		{"GET", "/v1/proposals/idea", "bob", "", 404, ""}, {"GET", "/v1/proposals?team=a", "bob", "", 404, "team"},
		{"GET", "/v1/proposals?team=none", "sub", "", 404, "team"}, {"GET", "/v1/proposals?budget=-1", "sub", "", 400, "budget"},
		{"GET", "/v1/proposals?budget=2000000000000", "sub", "", 400, "budget"}, {"GET", "/v1/proposals?budget=x", "sub", "", 400, "budget"},
		{"POST", "/v1/proposals/idea/outcome", "sub", `{"text":"x"}`, 409, ""},
		{"POST", "/v1/jobs/idea/approve", "sub", "{}", 403, ""}, {"POST", "/v1/jobs/idea/approve", "bob", "{}", 404, ""},
		{"POST", "/v1/jobs/idea/approve", "ops", "{}", 200, ""},
		{"POST", "/v1/proposals/idea/outcome", "sub", `{}`, 422, "text"}, {"POST", "/v1/proposals/idea/outcome", "sub", `{"value":"-1"}`, 422, "value"},
		{"POST", "/v1/proposals/idea/outcome", "sub", `{"text":"` + strings.Repeat("x", 1001) + `"}`, 422, "text"},
		{"POST", "/v1/proposals/idea/outcome", "sub", `{"text":"\u0007\u200b "}`, 422, "text"},
		{"POST", "/v1/proposals/idea/outcome", "sam", `{"text":"x"}`, 403, ""}, {"POST", "/v1/proposals/idea/outcome", "view", `{"text":"x"}`, 403, ""},
		{"POST", "/v1/proposals/idea/outcome", "sub", `{"text":"2 points better"}`, 200, ""},
		{"POST", "/v1/proposals/idea/outcome", "ops", `{"text":"3 points better","value":"700"}`, 200, ""},
	} {
		var body any
		if c.body != "" {
			body = c.body
		}
		if rec, p := w.ask(c.method, c.path, who[c.who], body); rec.Code != c.code || p.Field != c.field || c.code != 200 && p.Fix == "" {
			t.Errorf("%s %s by %s: %d %+v, want %d %s", c.method, c.path, c.who, rec.Code, p, c.code, c.field)
		}
	}
	var one client.Proposal
	w.must("GET", "/v1/proposals/idea", nil, &one)
	if one.State == "held" || !*one.Approval.Approved || one.Approval.By != "ops" || one.Outcome.Text != "3 points better" ||
		*one.Outcome.Value != money.Picos(700e12) || one.OutcomeBy != "ops" || one.OutcomeAt == nil {
		t.Errorf("%+v", one)
	}
	w.must("POST", "/v1/jobs", aJob("plain", "a"), nil)
	if rec, p := w.ask("GET", "/v1/proposals/plain", who["sub"], nil); rec.Code != 404 || !strings.Contains(p.Title, "plain is no proposal") {
		t.Errorf("a job without a proposal: %d %+v", rec.Code, p)
	}
	var acts api.Audit
	w.must("GET", "/v1/audit", nil, &acts)
	outcomes := 0
	for _, a := range acts.Acts {
		if strings.HasSuffix(a.Route, "/outcome") && a.Outcome == "done" {
			outcomes++
		}
	}
	if outcomes != 2 {
		t.Errorf("the log has %d outcomes, want both", outcomes)
	}
}

// A proposal that lacks a reason or a value, or is no single job, is refused with the field.
func TestProposals_RefusesWhatIsIncomplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 1e6 })
	w.crew(nil)
	ok := `{"why":"w","value_text":"a paper"}`
	for _, c := range []struct {
		path, body, field string
		code              int
	}{
		{"/v1/jobs", proposing("x", "", `{"value":"1"}`), "proposal.why", 422},
		{"/v1/jobs", proposing("x", "", `{"why":" ","value":"1"}`), "proposal.why", 422},
		{"/v1/jobs", proposing("x", "", `{"why":"w"}`), "proposal.value", 422},
		{"/v1/jobs", proposing("x", "", `{"why":"w","value":"-1"}`), "proposal.value", 422},
		{"/v1/jobs", proposing("x", "", `{"why":"w","value":"2000000000000"}`), "proposal.value", 422},
		{"/v1/jobs", proposing("x", "", fmt.Sprintf(`{"why":%q,"value":"1"}`, strings.Repeat("w", 1001))), "proposal.why", 422},
		{"/v1/jobs", proposing("x", "", fmt.Sprintf(`{"why":"w","value_text":%q}`, strings.Repeat("w", 201))), "proposal.value_text", 422},
		{"/v1/jobs/batch", "[" + proposing("x", "", ok) + "]", "[0].proposal", 422},
		{"/v1/groups", strings.Replace(proposing("x", "", ok), "{", `{"array":"0-1",`, 1), "proposal", 422},
	} {
		if rec, p := w.ask("POST", c.path, auth.OwnerName, c.body); rec.Code != c.code || p.Field != c.field || p.Fix == "" {
			t.Errorf("%s %.120s: %d %+v, want %d %s", c.path, c.body, rec.Code, p, c.code, c.field)
		}
	}
	if list := w.proposals("", auth.OwnerName).Proposals; len(list) != 0 {
		t.Errorf("a refused proposal is listed: %+v", list)
	}
}

// A proposal by itself has the rank that it has in the list.
func TestProposals_ShowTheRankOfTheList(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	for name, value := range map[string]string{"small": "5", "large": "500"} {
		w.must("POST", "/v1/jobs", proposing(name, `,"work":{"time":"1h"}`, `{"why":"w","value":"`+value+`"}`), nil)
	}
	list := w.proposals("", auth.OwnerName).Proposals
	for n, x := range list {
		var one client.Proposal
		if w.must("GET", "/v1/proposals/"+x.ID, nil, &one); one.Rank == nil || *one.Rank != n+1 || *x.Rank != n+1 {
			t.Errorf("%s has rank %v by itself and %v in the list", x.ID, one.Rank, x.Rank)
		}
	}
	if len(list) != 2 || list[0].ID != "large" {
		t.Errorf("%+v", list)
	}
}

// The same key submits a proposal once, and asks for another thing with another reason.
func TestProposals_KeepTheirKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 1e6 })
	w.crew(nil)
	body := strings.Replace(proposing("idea", "", `{"why":"w","value":"1"}`), "{", `{"key":"abcdefghijklmnopqrstuvwx",`, 1)
	w.must("POST", "/v1/jobs", body, nil)
	w.must("POST", "/v1/jobs", body, nil)
	if list := w.proposals("", auth.OwnerName).Proposals; len(list) != 1 {
		t.Errorf("%d proposals", len(list))
	}
	if rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, strings.Replace(body, `"w"`, `"other"`, 1)); rec.Code != 409 || p.Field != "key" {
		t.Errorf("another reason: %d %+v", rec.Code, p)
	}
}
