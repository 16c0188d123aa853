package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// wanted repeats the table of routes in the words of the rules: the lowest role that may use a route, and in which
// team. A route that is missing here fails the test.
var wanted = map[string]string{
	"GET /healthz": "open", "GET /readyz": "open",
	"GET /v1/me": "none anywhere", "GET /v1/server": "viewer anywhere", "POST /v1/server/stop": "admin everywhere",
	"POST /v1/dashboard":            "admin everywhere",
	"GET /v1/market":                "viewer anywhere",
	"GET /v1/engines/{id}/findings": "admin everywhere", "GET /v1/agent/join": "joiner",
	"GET /v1/history": "viewer anywhere", "GET /v1/instances/undecided": "admin everywhere",
	"POST /v1/instances/decide": "admin everywhere", "GET /v1/measured": "viewer anywhere",
	"GET /v1/ledger/verify": "operator everywhere",
	"GET /v1/costs/monthly": "viewer anywhere",
	"GET /v1/review":        "viewer anywhere",
	"GET /v1/costs":         "viewer anywhere", "GET /v1/budgets": "viewer anywhere", "GET /v1/machines": "viewer anywhere",
	"GET /v1/chargeback": "viewer anywhere", "GET /v1/chargeback/fees": "viewer everywhere", "PUT /v1/chargeback/fees": "admin everywhere",
	"GET /v1/bills": "viewer everywhere", "POST /v1/bills": "admin everywhere", "POST /v1/bills/remove": "admin everywhere", "POST /v1/bills/fetch": "admin everywhere", "GET /v1/bills/reconcile": "viewer everywhere",
	"POST /v1/bills/reconcile": "admin everywhere", "PUT /v1/bills/months": "admin everywhere", "GET /v1/recommend": "viewer anywhere",
	"POST /v1/recommend/take": "viewer anywhere", "GET /v1/recommend/taken": "viewer anywhere",
	"GET /v1/export/focus": "viewer anywhere", "GET /v1/export/costs": "viewer anywhere", "GET /v1/why": "viewer anywhere",
	"GET /v1/anomalies": "viewer anywhere", "GET /v1/anomalies/planned": "viewer anywhere", "POST /v1/anomalies/planned": "viewer anywhere",
	"GET /v1/anomalies/alerts": "viewer anywhere", "POST /v1/anomalies/alerts": "viewer anywhere",
	"DELETE /v1/anomalies/alerts/{id}": "viewer anywhere", "POST /v1/anomalies/alerts/{id}/test": "viewer anywhere",
	"DELETE /v1/anomalies/planned/{id}": "viewer anywhere", "POST /v1/anomalies/{id}/snooze": "viewer anywhere",
	"POST /v1/anomalies/{id}/dismiss": "viewer anywhere", "POST /v1/anomalies/{id}/confirm": "viewer anywhere",
	"GET /v1/proposals": "viewer anywhere", "GET /v1/proposals/{id}": "viewer of the job",
	"POST /v1/proposals/{id}/outcome": "submitter of their job",
	"GET /v1/storage":                 "viewer anywhere",
	"GET /v1/waste":                   "viewer anywhere", "GET /v1/waste/history": "viewer anywhere", "GET /v1/waste/survey": "viewer everywhere", "POST /v1/waste/{id}/apply": "viewer anywhere",
	"GET /v1/diagnoses": "viewer anywhere", "GET /v1/jobs/{id}/diagnosis": "viewer of the job", "POST /v1/jobs/{id}/diagnosis": "viewer of the job",
	"GET /v1/telemetry": "viewer anywhere", "POST /v1/plan": "viewer anywhere",
	"PUT /v1/budgets":      "admin everywhere",
	"GET /v1/queue/shares": "viewer anywhere", "PUT /v1/queue/shares": "admin everywhere",
	"GET /v1/openapi.json": "open", "POST /v1/agent/identify": "open", "GET /v1/program/{hash}": "open", "GET /metrics": "viewer everywhere", "GET /v1/backup": "admin everywhere", "POST /v1/gc": "admin everywhere",
	"GET /v1/events": "viewer anywhere",
	"POST /v1/work":  "submitter anywhere", "GET /v1/jobs/{id}/kept": "viewer of the job",
	"GET /v1/jobs/{id}/outputs": "viewer of the job", "GET /v1/jobs/{id}/contents": "viewer of the job",
	"POST /v1/jobs": "submitter anywhere", "POST /v1/jobs/batch": "submitter anywhere", "GET /v1/jobs": "viewer anywhere",
	"GET /v1/totals":    "viewer anywhere",
	"GET /v1/jobs/{id}": "viewer of the job", "GET /v1/jobs/{id}/watch": "viewer of the job",
	"POST /v1/groups": "submitter anywhere", "GET /v1/groups": "viewer anywhere", "GET /v1/cache": "viewer anywhere", "GET /v1/groups/{id}": "viewer of the job",
	"GET /v1/groups/{id}/trials": "viewer of the job",
	"GET /v1/models":             "viewer anywhere", "GET /v1/models/{id}": "viewer of the job",
	"GET /v1/groups/{id}/receipt": "viewer of the job", "POST /v1/groups/{id}/end": "submitter of their job",
	"POST /v1/groups/{id}/approve": "operator of the job", "POST /v1/groups/{id}/reject": "operator of the job",
	"POST /v1/jobs/{id}/approve": "operator of the job", "POST /v1/jobs/{id}/reject": "operator of the job",
	"POST /v1/jobs/{id}/end": "submitter of their job", "GET /v1/jobs/{id}/log": "viewer of the job",
	"PATCH /v1/jobs/{id}": "submitter of their job", "POST /v1/jobs/{id}/pause": "submitter of their job",
	"POST /v1/jobs/{id}/resume": "submitter of their job", "GET /v1/jobs/{id}/checkpoints": "viewer of the job",
	"GET /v1/jobs/{id}/checkpoints/{name}":    "viewer of the job",
	"DELETE /v1/jobs/{id}/checkpoints/{name}": "submitter of their job",
	"GET /v1/jobs/{id}/receipt":               "viewer of the job", "GET /v1/jobs/{id}/metric": "viewer of the job",
	"GET /v1/jobs/{id}/curves":    "viewer of the job",
	"GET /v1/jobs/{id}/telemetry": "viewer of the job", "GET /v1/jobs/{id}/data": "viewer of the job",
	"GET /v1/jobs/{id}/spec": "viewer of the job", "GET /v1/jobs/{id}/explain": "viewer of the job",
	"POST /v1/jobs/{id}/exec": "submitter of their job", "GET /v1/jobs/{id}/exec/{session}": "submitter of the job",
	"POST /v1/jobs/{id}/exec/{session}": "submitter of the job",
	"GET /v1/agent/exec/{id}/input":     "attempt", "POST /v1/agent/exec/{id}/output": "attempt",
	"GET /v1/users": "admin everywhere", "PUT /v1/users/{id}": "admin everywhere",
	"POST /v1/users/{id}/erase": "admin everywhere",
	"GET /v1/teams":             "viewer anywhere",
	"PUT /v1/teams/{id}":        "admin everywhere",
	"GET /v1/tokens":            "viewer anywhere", "POST /v1/tokens": "viewer anywhere",
	"DELETE /v1/tokens/{id}": "viewer anywhere",
	"GET /v1/audit":          "admin everywhere", "GET /v1/notices": "admin everywhere",
	"POST /v1/agent/register": "bootstrap", "POST /v1/agent/pull": "machine",
	"GET /v1/agent/binary":  "machine",
	"POST /v1/agent/report": "attempt", "POST /v1/agent/logs": "attempt",
	"GET /v1/agent/logs": "attempt", "POST /v1/agent/exec/{id}": "attempt", "GET /v1/agent/work": "attempt",
	"GET /v1/agent/blobs": "attempt", "PUT /v1/agent/blobs": "attempt", "DELETE /v1/agent/blobs": "attempt",
	"GET /v1/agent/credentials": "attempt", "GET /v1/agent/work/blob": "attempt",
	"GET /v1/agent/blobs/list": "attempt", "POST /v1/agent/blobs/sync": "attempt",
	"POST /v1/agent/search": "attempt", "POST /v1/searches": "submitter anywhere", "GET /v1/searches": "viewer anywhere",
	"GET /v1/searches/{id}": "viewer anywhere", "GET /v1/searches/{id}/trials": "viewer anywhere",
	"POST /v1/searches/{id}/ask": "submitter anywhere", "POST /v1/searches/{id}/tell": "submitter anywhere",
	"DELETE /v1/searches/{id}": "submitter anywhere",
}

// The test calls every route with every role in the job's team, in another team and in all teams; without a token,
// with a wrong, an expired and a revoked one; and with the tokens of agents.
func TestRoutes_AreOpenToTheirRoleOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 1e6 })
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	w.must("PUT", "/v1/teams/text", api.SetTeam{}, nil)
	type caller struct {
		name, token string
		may         identity.Caller
		user        bool
	}
	callers := []caller{{name: "no token"}, {name: "a wrong token", token: "scrimp_" + strings.Repeat("A", 43)},
		{name: "the owner's token on the network", token: w.gate.Owner},
		{name: "a bootstrap", token: w.gate.Tickets.For(auth.BootstrapTicket, "seen.1")}, {name: "an attempt", token: w.gate.Tickets.For(auth.AttemptTicket, "seen.1")},
		{name: "a forged attempt", token: "attempt.seen.1.00"}}
	for _, team := range []string{"vision", "text", "*"} {
		for role := identity.Viewer; role <= identity.Admin; role++ {
			name := role.String() + "-" + strings.ReplaceAll(team, "*", "all")
			g := identity.Grant{Team: team, Role: role}
			callers = append(callers, caller{name, w.user(name, g),
				identity.Caller{User: name, Grants: []identity.Grant{g}}, true})
		}
	}
	callers = append(callers, caller{"nothing", w.user("nothing"), identity.Caller{}, true})
	w.user("late", identity.Grant{Team: "*", Role: identity.Admin})
	callers = append(callers, caller{name: "an expired token", token: w.expired("late")})
	off := w.user("off", identity.Grant{Team: "*", Role: identity.Admin})
	w.must("PUT", "/v1/users/off", `{"off":true}`, nil)
	callers = append(callers, caller{name: "a user who is off", token: off})
	var made api.MadeToken
	w.must("POST", "/v1/tokens", api.NewToken{User: "late"}, &made)
	w.must("DELETE", "/v1/tokens/"+made.ID, nil, nil)
	callers = append(callers, caller{name: "a revoked token", token: made.Text})
	var cut api.MadeToken
	w.must("POST", "/v1/tokens", api.NewToken{User: "admin-all", Most: client.Viewer}, &cut)
	callers = append(callers, caller{"a token that is cut", cut.Text,
		identity.Caller{Grants: []identity.Grant{{Team: "*", Role: identity.Viewer}}}, true})

	w.must("POST", "/v1/jobs", aJob("seen", "vision"), nil)
	w.must("POST", "/v1/jobs/seen/end", api.End{}, nil)
	w.must("POST", "/v1/groups", inArray("array", "vision", "0-1", ""), nil)
	asked := 0
	for _, r := range table() {
		rule, ok := wanted[r.Method+" "+r.Path]
		if !ok {
			t.Errorf("%s %s: no rule is written in this test", r.Method, r.Path)
			continue
		}
		for _, c := range callers {
			id := "seen"
			if strings.HasPrefix(r.Path, "/v1/groups/") {
				id = "array"
			}
			path := strings.ReplaceAll(r.Path, "{id}", id)
			if r.Path == "/v1/agent/logs" && r.Method == "POST" {
				path += "?offset=0"
			}
			if r.Path == "/v1/events" {
				path += "?after=x" // else the stream goes on
			}
			body := "{}"
			if r.Path == "/v1/jobs" {
				body = `{"spec":{}}`
			}
			rec, p := w.ask(r.Method, path, c.token, body)
			asked++
			want := allowed
			least, where, _ := strings.Cut(rule, " ")
			switch {
			case rule == "open":
			case rule == "bootstrap" || rule == "machine" || rule == "attempt" || rule == "joiner": // no token is a machine's signature
				if c.name != "a "+rule && c.name != "an "+rule {
					want = stranger
				}
			case !c.user:
				want = stranger
			default:
				role, _ := identity.ParseRole(least)
				has := map[string]identity.Role{"anywhere": c.may.Best(), "everywhere": c.may.Role("*"),
					"of the job": c.may.Role("vision"), "of their job": c.may.Role("vision")}[where]
				if where == "of their job" { // it belongs to the owner, who is none of them
					role = identity.Operator
				}
				if has < role {
					want = refused
					if strings.HasSuffix(where, "job") && has == identity.Nobody {
						want = hidden
					}
				}
			}
			if got := outcome(rec.Code, p); got != want {
				t.Errorf("%s %s (%s) asked by %s: %d %q, want %s", r.Method, r.Path, rule, c.name, rec.Code, p.Title, want)
			}
		}
	}
	if asked < 500 {
		t.Errorf("only %d questions were asked", asked)
	}
	if w.stopped != 1 { // by the admin of all teams
		t.Errorf("the server was stopped %d times, want once", w.stopped)
	}
	if len(wanted) != len(table()) {
		t.Errorf("%d rules are written here, for %d routes", len(wanted), len(table()))
	}
	t.Logf("%d routes, %d callers, %d questions", len(table()), len(callers), asked)
}

// A submitter may end, pause, resume and update their own jobs; those of a teammate require an operator.
func TestSubmitter_ManagesTheirOwnJobsOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "vision", Role: identity.Submitter})
	bob := w.user("bob", identity.Grant{Team: "vision", Role: identity.Submitter})
	lead := w.user("lead", identity.Grant{Team: "vision", Role: identity.Operator})
	for _, r := range []struct{ method, path, body string }{{"PATCH", "", `{"priority":"low"}`}, {"POST", "/pause", "{}"},
		{"POST", "/resume", "{}"}, {"POST", "/end", "{}"}} {
		for who, c := range map[string]struct {
			token string
			want  string
		}{"ann": {ann, allowed}, "bob": {bob, refused}, "lead": {lead, allowed}} {
			job := "job" + strings.TrimPrefix(r.path, "/") + who
			if rec, p := w.ask("POST", "/v1/jobs", ann, aJob(job, "vision")); rec.Code != http.StatusOK {
				t.Fatalf("%+v", p)
			}
			rec, p := w.ask(r.method, "/v1/jobs/"+job+r.path, c.token, r.body)
			if got := outcome(rec.Code, p); got != c.want {
				t.Errorf("%s %s of a job of ann by %s: %d %+v", r.method, r.path, who, rec.Code, p)
			}
			if c.want == refused && (!strings.Contains(p.Title, "in a job of ann") || p.Fix == "") {
				t.Errorf("it says %+v", p)
			}
		}
	}
}

const allowed, stranger, refused, hidden = "allowed", "401", "403", "404"

func outcome(code int, p api.Problem) string {
	switch {
	case code == http.StatusUnauthorized:
		return stranger
	case code == http.StatusForbidden && strings.HasPrefix(p.Title, "this needs the role"):
		return refused
	case code == http.StatusNotFound && strings.HasPrefix(p.Title, "job "):
		return hidden
	}
	return allowed
}

func TestLists_OmitWhatOthersOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/vision", api.SetTeam{Projects: []string{"lanes"}}, nil)
	w.must("PUT", "/v1/teams/text", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "vision", Role: identity.Submitter})
	bob := w.user("bob", identity.Grant{Team: "text", Role: identity.Admin})
	rec, p := w.ask("POST", "/v1/jobs", ann, aJob("mine", ""))
	if rec.Code != 200 {
		t.Fatalf("%+v", p)
	}
	for token, want := range map[string]bool{ann: true, bob: false} {
		for _, path := range []string{"/v1/jobs", "/v1/history"} {
			if rec, _ := w.ask("GET", path, token, nil); strings.Contains(rec.Body.String(), "mine") != want &&
				path == "/v1/jobs" {
				t.Errorf("%s: %s", path, rec.Body)
			}
		}
		rec, _ := w.ask("GET", "/v1/jobs/mine", token, nil)
		none, _ := w.ask("GET", "/v1/jobs/none", token, nil)
		if !want && strings.ReplaceAll(rec.Body.String(), "mine", "none") != none.Body.String() {
			t.Errorf("a job of others does not look like one that is not there: %s, %s", rec.Body, none.Body)
		}
	}
	w.control.Read(func(m *core.Machine) {
		if j, _ := m.Job("mine"); j.Terms().Owner.Team != "vision" || j.Terms().Owner.Project != "lanes" {
			t.Errorf("the job is of %+v, want its submitter's only team and that one's only project", j.Terms().Owner)
		}
	})
	if rec, p := w.ask("POST", "/v1/jobs", ann, aJob("theirs", "text")); rec.Code != http.StatusForbidden ||
		p.Field != "team" || p.Fix == "" {
		t.Errorf("a job for another team: %d %+v", rec.Code, p)
	}
	if rec, p := w.ask("POST", "/v1/jobs", bob, `{"rerun":"mine",`+
		aJob("again", "text")[1:]); rec.Code != http.StatusNotFound || p.Field != "rerun" {
		t.Errorf("the files of another team's job: %d %+v", rec.Code, p)
	}
	if rec, p := w.ask("POST", "/v1/jobs", ann, `{"folder":"/etc",`+
		aJob("etc", "")[1:]); rec.Code != http.StatusForbidden || p.Field != "folder" {
		t.Errorf("a folder of the server: %d %+v", rec.Code, p)
	}
}

func TestAudit_SurvivesARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, func(o *Options) { o.Dir = dir })
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "vision", Role: identity.Submitter})
	w.ask("POST", "/v1/jobs", ann, aJob("one", ""))
	w.ask("POST", "/v1/jobs", ann, `{"spec":{"name":"no command"}}`)
	w.ask("POST", "/v1/jobs/one/exec", ann, api.Exec{Command: []string{"id"}})
	w.ask("POST", "/v1/jobs/one/end", ann, api.End{})
	w.ask("GET", "/v1/users", ann, nil)
	w.ask("GET", "/v1/jobs", ann, nil)
	var page api.Audit
	w.must("GET", "/v1/audit", nil, &page)
	var got []string
	for _, a := range page.Acts {
		if a.At.IsZero() || a.From == "" {
			t.Errorf("%+v says not when or from where", a)
		}
		got = append(got, strings.Join([]string{a.Who, a.Route, a.Object, a.Outcome}, "|"))
	}
	want := []string{
		"owner|PUT /v1/teams/{id}|vision|done", "owner|PUT /v1/users/{id}|ann|done",
		"owner|POST /v1/tokens|" + page.Acts[2].Object + "|done",
		"ann|POST /v1/jobs|one|done", "ann|POST /v1/jobs||refused", "ann|POST /v1/jobs/{id}/exec|one|refused",
		"ann|POST /v1/jobs/{id}/end|one|done", "ann|GET /v1/users||refused",
	}
	if !slices.Equal(got, want) {
		t.Errorf("on record are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if page.Acts[3].Token == "" || page.Acts[0].Token != "" {
		t.Errorf("tokens %q and %q", page.Acts[3].Token, page.Acts[0].Token)
	}
	w.must("GET", "/v1/audit?user=ann&limit=2", nil, &page)
	if len(page.Acts) != 2 || page.Next == 0 || page.Acts[1].Outcome != "refused" {
		t.Errorf("a page of two: %+v", page)
	}
	text := ""
	for r, err := range w.eachRecord(t) {
		must.Do(t, err)
		text += string(r.Event)
	}
	if strings.Contains(text, ann) || strings.Contains(text, strings.TrimPrefix(ann, "scrimp_")) {
		t.Error("the log holds a token")
	}
	var v api.Verified
	if w.must("GET", "/v1/ledger/verify", nil, &v); !v.OK {
		t.Errorf("%+v", v)
	}
	again, err := auth.ReadPeople(t.Context(), w.store)
	must.Do(t, err)
	var were, are []identity.Token
	var users []identity.User
	w.gate.People.Read(func(b *identity.Book) { were = b.Tokens() })
	again.Read(func(b *identity.Book) { are, users = b.Tokens(), b.Users() })
	if !slices.EqualFunc(are, were, func(a, b identity.Token) bool { return a.Hash == b.Hash && a.Expires.Equal(b.Expires) }) ||
		len(users) != 1 {
		t.Errorf("read back: %+v, were %+v", are, were)
	}
}
