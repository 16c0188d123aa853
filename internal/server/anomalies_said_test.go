package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

func (w *world) anomalies(query, token string) (v client.Anomalies) {
	w.t.Helper()
	rec, p := w.ask("GET", "/v1/anomalies"+query, token, nil)
	if rec.Code != 200 || json.Unmarshal(rec.Body.Bytes(), &v) != nil {
		w.t.Fatalf("%d %+v", rec.Code, p)
	}
	return v
}

// left returns how many incidents a list shows, and how many it hides for a reason.
func left(v client.Anomalies) string {
	return fmt.Sprintf("%d shown, %v hidden", len(v.Anomalies), v.Hidden)
}

// An incident is snoozed, dismissed and confirmed by an operator of its team. The threshold follows the newest answer
// by the stated rule, and each answer is in the audit trail.
func TestAnomalies_KeepWhatPeopleSay(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	instance := w.idles(2 * time.Hour)
	who := map[string]string{"ops": w.user("ops", identity.Grant{Team: "team-0", Role: identity.Operator}),
		"sub": w.user("sub", identity.Grant{Team: "team-0", Role: identity.Submitter}),
		"bob": w.user("bob", identity.Grant{Team: "team-1", Role: identity.Admin})}
	v := w.anomalies("", who["sub"])
	if len(v.Anomalies) != 1 || len(v.Thresholds) != 0 || len(v.Hidden) != 0 {
		t.Fatalf("%+v", v)
	}
	a := v.Anomalies[0]
	if a.Kind != "idle machine" || a.About != instance || a.Team != "team-0" || a.State != "" || a.Answer != nil || a.SnoozedUntil != nil ||
		a.Factor != 1 || a.Threshold != "no task for 45 min, and for 2 times as long as usual" || a.Found.Sub(a.Since) != 45*time.Minute {
		t.Errorf("%+v", a)
	}
	at := "/v1/anomalies/" + a.Name
	for _, c := range []struct {
		who, path, body, field string
		code                   int
	}{{"sub", at + "/dismiss", `{"why":"x"}`, "", 403}, {"bob", at + "/dismiss", `{"why":"x"}`, "id", 404},
		{"bob", at + "/snooze", `{"until":"1d"}`, "id", 404}, {"ops", "/v1/anomalies/a-none/confirm", `{}`, "id", 404},
		{"ops", at + "/dismiss", `{}`, "why", 422}, {"ops", at + "/dismiss", `{"why":" "}`, "why", 422},
		{"ops", at + "/dismiss", `{"why":"` + strings.Repeat("x", 1001) + `"}`, "why", 422},
		{"ops", at + "/snooze", `{}`, "until", 422}, {"ops", at + "/snooze", `{"until":"soon"}`, "until", 422},
		{"ops", at + "/snooze", `{"until":"2001-01-01"}`, "until", 422}, {"ops", at + "/snooze", `{"until":"400d"}`, "until", 422},
		{"ops", at + "/snooze", `{"until":"-1h"}`, "until", 422}, {"sub", at + "/snooze", `{"until":"1d"}`, "", 403}} {
		if rec, p := w.ask("POST", c.path, who[c.who], c.body); rec.Code != c.code || p.Field != c.field || p.Fix == "" {
			t.Errorf("%s by %s: %d %+v, want %d %s", c.path, c.who, rec.Code, p, c.code, c.field)
		}
	}
	if got := left(w.anomalies("", who["sub"])); got != "1 shown, map[] hidden" {
		t.Errorf("what was refused changed something: %s", got)
	}
	for _, c := range []struct {
		path, body, state, left string
		dismissed, confirmed    int
		factor                  float64
	}{
		{"/snooze", `{"until":"3d"}`, "snoozed", "0 shown, map[snoozed:1] hidden", 0, 0, 1},
		{"/snooze", `{"until":"now"}`, "", "1 shown, map[] hidden", 0, 0, 1},
		{"/dismiss", `{"why":"kept warm"}`, "dismissed", "0 shown, map[dismissed:1] hidden", 1, 0, 1.25},
		{"/dismiss", `{"why":"kept warm, again"}`, "dismissed", "0 shown, map[dismissed:1] hidden", 1, 0, 1.25},
		{"/confirm", `{}`, "confirmed", "1 shown, map[] hidden", 0, 1, 0.8},
	} {
		rec, p := w.ask("POST", at+c.path, who["ops"], c.body)
		var got client.Anomaly
		if rec.Code != 200 || json.Unmarshal(rec.Body.Bytes(), &got) != nil || got.State != c.state || got.Name != a.Name {
			t.Fatalf("%s: %d %+v %+v", c.path, rec.Code, p, got)
		}
		v := w.anomalies("", who["sub"])
		if left(v) != c.left || len(w.anomalies("?all=1", who["sub"]).Anomalies) != 1 {
			t.Errorf("after %s: %s, want %s", c.path, left(v), c.left)
		}
		if c.factor == 1 {
			continue
		}
		if len(v.Thresholds) != 1 {
			t.Fatalf("after %s: %+v", c.path, v.Thresholds)
		}
		h := v.Thresholds[0]
		minutes := fmt.Sprintf("no task for %.3g min", 45*c.factor)
		if h.Team != "team-0" || h.Kind != "idle machine" || h.Dismissed != c.dismissed || h.Confirmed != c.confirmed || h.Factor != c.factor ||
			!strings.HasPrefix(h.Threshold, minutes) || h.Standard != a.Threshold || h.Last.By != "ops" {
			t.Errorf("after %s: %+v, want %s", c.path, h, minutes)
		}
	}
	if list := w.anomalies("", who["bob"]); len(list.Anomalies)+len(list.Thresholds)+len(list.Hidden) != 0 {
		t.Errorf("another team sees %+v", list)
	}
	var acts api.Audit
	w.must("GET", "/v1/audit", nil, &acts)
	done := 0
	for _, x := range acts.Acts {
		if strings.HasPrefix(x.Route, "POST /v1/anomalies/") && x.Outcome == "done" && x.Object == a.Name && x.Who == "ops" {
			done++
		}
	}
	if done != 5 {
		t.Errorf("the audit trail has %d of 5 acts", done)
	}
	for _, bad := range []string{"?all=yes", "?all=0"} {
		if rec, p := w.ask("GET", "/v1/anomalies"+bad, auth.OwnerName, nil); rec.Code != 400 || p.Field != "all" {
			t.Errorf("%s: %d %+v", bad, rec.Code, p)
		}
	}
}

// What is planned is not an incident, within the plan's span and scope alone, and until the plan is removed.
func TestAnomalies_LeaveOutWhatIsPlanned(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	w.idles(2 * time.Hour)
	ops, sub := w.user("ops", identity.Grant{Team: "team-0", Role: identity.Operator}), w.user("sub", identity.Grant{Team: "team-0", Role: identity.Submitter})
	bob := w.user("bob", identity.Grant{Team: "team-1", Role: identity.Admin})
	const plans = "/v1/anomalies/planned"
	for _, c := range []struct {
		who, body, field string
		code             int
	}{{ops, `{"team":"team-0","until":"3d"}`, "why", 422}, {ops, `{"team":"team-0","why":"w"}`, "until", 422},
		{ops, `{"team":"team-0","why":"w","until":"x"}`, "until", 422}, {ops, `{"team":"team-0","why":"w","until":"400d"}`, "until", 422},
		{ops, `{"team":"team-0","why":"w","since":"2020-01-01","until":"3d"}`, "since", 422},
		{ops, `{"team":"team-0","why":"w","since":"2d","until":"now"}`, "until", 422},
		{ops, `{"team":"team-1","why":"w","until":"3d"}`, "team", 404}, {ops, `{"team":"ghost","why":"w","until":"3d"}`, "team", 404},
		{auth.OwnerName, `{"team":"ghost","why":"w","until":"3d"}`, "team", 404},
		{auth.OwnerName, `{"team":"team-1","job":"fit","why":"w","until":"3d"}`, "job", 422},
		{ops, `{"why":"w","until":"3d"}`, "", 403}, {sub, `{"team":"team-0","why":"w","until":"3d"}`, "", 403},
		{bob, `{"job":"fit","why":"w","until":"3d"}`, "", 403}, {ops, `{"project":"p","why":"w","until":"3d"}`, "", 403}} {
		if rec, p := w.ask("POST", plans, c.who, c.body); rec.Code != c.code || p.Field != c.field || p.Fix == "" {
			t.Errorf("%s: %d %+v, want %d %s", c.body, rec.Code, p, c.code, c.field)
		}
	}
	since := w.anomalies("", auth.OwnerName).Anomalies[0].Since
	span := func(from, to time.Duration) string {
		return fmt.Sprintf(`"since":%q,"until":%q,"why":"a benchmark"`, since.Add(from).Format(time.RFC3339), since.Add(to).Format(time.RFC3339))
	}
	for _, c := range []struct {
		scope  string
		span   string
		hidden bool
	}{{`"team":"team-0",`, span(-time.Hour, time.Hour), true}, {``, span(0, time.Second), true},
		{`"team":"team-1",`, span(-time.Hour, time.Hour), false}, {`"team":"team-0",`, span(-2*time.Hour, 0), false},
		{`"team":"team-0","project":"other",`, span(-time.Hour, time.Hour), false},
		{`"team":"team-0","job":"nightly",`, span(-time.Hour, time.Hour), false}} {
		var p client.PlannedAnomalies
		w.must("POST", plans, "{"+c.scope+c.span+"}", &p)
		want := "1 shown, map[] hidden"
		if c.hidden {
			want = "0 shown, map[planned:1] hidden"
		}
		if got := left(w.anomalies("", ops)); got != want {
			t.Errorf("%+v: %s, want %s", p, got, want)
		}
		var list []client.PlannedAnomalies
		w.must("GET", plans, nil, &list)
		if len(list) != 1 || list[0].Name != p.Name || list[0].Why != "a benchmark" || list[0].By != auth.OwnerName {
			t.Errorf("%+v", list)
		}
		if rec, _ := w.ask("DELETE", plans+"/"+p.Name, sub, nil); rec.Code != 403 && rec.Code != 404 {
			t.Errorf("a submitter removes a plan: %d", rec.Code)
		}
		w.must("DELETE", plans+"/"+p.Name, nil, nil)
		if got := left(w.anomalies("", ops)); got != "1 shown, map[] hidden" {
			t.Errorf("after its removal: %s", got)
		}
	}
	if rec, p := w.ask("DELETE", plans+"/p-none", ops, nil); rec.Code != 404 || p.Field != "id" {
		t.Errorf("%d %+v", rec.Code, p)
	}
	var p client.PlannedAnomalies
	if rec, q := w.ask("POST", plans, ops, `{"job":"fit","why":"w","until":"3d"}`); rec.Code != 200 || json.Unmarshal(rec.Body.Bytes(), &p) != nil ||
		p.Team != "team-0" || p.Until.Sub(p.Since) != 72*time.Hour {
		t.Errorf("the team of a job: %d %+v %+v", rec.Code, q, p)
	}
	if rec, _ := w.ask("GET", plans, bob, nil); strings.TrimSpace(rec.Body.String()) != "[]" {
		t.Errorf("another team sees %s", rec.Body)
	}
}
