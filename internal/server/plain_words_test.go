package server

import (
	"net/http"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/decide/budget"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/view/convert"
	"scrimp/internal/wire/api"
)

// Each bad submission is answered with the wrong field and its fix, alone and in a batch.
func TestSubmission_ErrorNamesFieldAndFix(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/a", api.SetTeam{Projects: []string{"x", "y"}}, nil)
	w.must("PUT", "/v1/teams/b", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "a", Role: identity.Submitter})
	for spec, want := range map[string]struct {
		field string
		code  int
		says  string
	}{
		``:                          {"spec", 400, "no job"},
		`"spec":null`:               {"spec", 400, "no job"},
		`"spec":"x"`:                {"spec", 400, "form of a job file"},
		`"spec":7`:                  {"spec", 400, "form of a job file"},
		`"spec":{"name":[7]}`:       {"name", 422, "`name` is a list, not a single value"},
		`"spec":{"name":"j"}`:       {"command", 422, "not valid"},
		`"spec":{"command":"true"}`: {"project", 422, "names no project"},
		`"spec":{"name":"j","command":"true","notify":"ftp://x"}`:          {"notify.webhook", 422, "not valid"},
		`"spec":{"name":"j","command":"true","notify":"http://127.0.0.1"}`: {"notify.webhook", 422, "inside"},
		`"spec":{"name":"j","command":"true"}`: {"project", 422,
			"names no project of team a: write one of x, y"},
		`"spec":{"name":"j","command":"true","project":"z"}`: {"project", 422, "team a has no project"},
		`"spec":{"name":"j","command":"true","team":"b"}`: {"team", 403,
			`may not submit for team "b": write one of a`},
		`"spec":{"name":"j","command":"true","budget":{"dollars":"-1"}}`: {"budget.dollars", 422, "not valid"},
		`"spec":{"name":"j","command":"true","resources":{"memory":"lots"}}`: {"resources.memory", 422,
			`"lots" is not a size with its unit`},
		`"spec":{"name":"j","command":"true","project":"x"},"key":"` + long(300) + `"`: {"key", 422, "255 bytes"},
	} {
		for path, body := range map[string]string{"/v1/jobs": "{" + spec + "}", "/v1/jobs/batch": "[{" + spec + "}]"} {
			rec, p := w.ask("POST", path, ann, body)
			field := want.field
			if rec.Code != want.code || !strings.HasSuffix(p.Field, field) || p.Field == "" || p.Fix == "" ||
				!strings.Contains(p.Title+p.Detail, want.says) {
				t.Errorf("%s %s: %d %+v, want field %s, %d and %q", path, spec, rec.Code, p, field, want.code, want.says)
			}
		}
	}
}

func long(n int) string { return strings.Repeat("k", n) }

// The audit trail has the reason of a refusal.
func TestAudit_RecordsTheReasonOfARefusal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/a", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "a", Role: identity.Submitter})
	w.ask("POST", "/v1/jobs", ann, `{"spec":{"name":"j"}}`)
	w.ask("GET", "/v1/users", ann, nil)
	var trail api.Audit
	w.must("GET", "/v1/audit?user=ann", nil, &trail)
	var details []string
	for _, a := range trail.Acts {
		details = append(details, a.Detail)
	}
	if got := strings.Join(details, "|"); got != "the job is not valid|this needs the role admin of all teams, and "+
		"ann has none" {
		t.Errorf("the trail says %q", got)
	}
	var cut api.MadeToken
	w.must("POST", "/v1/tokens", api.NewToken{User: "ann", Most: client.Viewer}, &cut)
	if rec, p := w.ask("POST", "/v1/jobs", cut.Text, aJob("j", "a")); rec.Code != 403 ||
		!strings.Contains(p.Title, "this token of ann has viewer") || !strings.Contains(p.Fix, "tokens new") {
		t.Errorf("a token that is cut: %d %+v; its user needs no other role", rec.Code, p)
	}
}

// A limit with a misspelt name would guard nothing.
func TestLimit_ForAnUnknownScopeIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	set := func(scope budget.Scope) (int, api.Problem) {
		l := budget.Limit{Scope: scope, Window: budget.Month, Jobs: new(1)}
		rec, p := w.ask("PUT", "/v1/budgets", auth.OwnerName, api.SetBudget{Limit: convert.To[*client.Limit](&l)})
		return rec.Code, p
	}
	if code, p := set("team:free"); code != http.StatusNoContent {
		t.Errorf("where there are no teams, job files say what they like: %d %+v", code, p)
	}
	w.must("PUT", "/v1/teams/vision", api.SetTeam{Projects: []string{"lanes"}}, nil)
	w.user("ann", identity.Grant{Team: "vision", Role: identity.Submitter})
	for scope, want := range map[budget.Scope]bool{"all": true, "team:vision": true, "project:lanes": true,
		"user:ann": true, "user:owner": true, "tag:env=dev": true, "team:vison": false, "project:lane": false,
		"user:anne": false} {
		code, p := set(scope)
		if (code == http.StatusNoContent) != want || !want && (p.Field != "limit.scope" || p.Fix == "") {
			t.Errorf("%s: %d %+v", scope, code, p)
		}
	}
	w.must("PUT", "/v1/teams/open", api.SetTeam{}, nil)
	if code, p := set("project:any"); code != http.StatusNoContent {
		t.Errorf("where a team may have any project: %d %+v", code, p)
	}
	w.must("PUT", "/v1/budgets", api.SetBudget{Remove: "team:free/month"}, nil)
}
