package server

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

// An admin sets the shares of teams; the list has them after a restart, too, and the audit trail has who set them.
// Without a setting the queue does not regard teams.
func TestQueueShares_AreSetAndListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var v api.QueueShares
	if w.must("GET", "/v1/queue/shares", nil, &v); v.Shared || v.Teams == nil {
		t.Errorf("before any setting: %+v", v)
	}
	one, two, five, ten, day := 1.0, 2.0, money.Rate(5e12), money.Rate(10e12), 24*time.Hour
	w.must("PUT", "/v1/queue/shares", api.SetQueueShare{Team: "vision", Weight: &two, Guarantee: &five, Borrow: &ten}, nil)
	w.must("PUT", "/v1/queue/shares", api.SetQueueShare{Team: "text", Weight: &one}, nil)
	w.must("PUT", "/v1/queue/shares", api.SetQueueShare{HalfLife: &day}, nil)
	w.limit(budget.Limit{Scope: "team:vision", Window: budget.Month, Dollars: dollars(900)}) // keeps the shares
	w.must("GET", "/v1/queue/shares", nil, &v)
	if !v.Shared || v.HalfLife != day || len(v.Teams) != 2 {
		t.Fatalf("%+v", v)
	}
	text, vision := v.Teams[0], v.Teams[1]
	if vision.Team != "vision" || vision.Weight != 2 || vision.Guarantee != five || vision.Borrow == nil ||
		*vision.Borrow != ten || vision.Wanted != 2.0/3 || text.Weight != 1 || text.Borrow != nil {
		t.Errorf("%+v", v.Teams)
	}
	w.must("PUT", "/v1/queue/shares", api.SetQueueShare{Team: "vision", NoBorrow: true}, nil)
	w.must("GET", "/v1/queue/shares", nil, &v)
	if got := v.Teams[1]; got.Borrow != nil || got.Weight != 2 || got.Guarantee != five {
		t.Errorf("what was not given did not stay: %+v", got)
	}
	var audit client.Audit
	w.must("GET", "/v1/audit?limit=1000", nil, &audit)
	if !slices.ContainsFunc(audit.Acts, func(a client.Act) bool { return strings.Contains(a.Object, "share of team vision") }) {
		t.Errorf("the audit trail lacks the setting: %+v", audit.Acts)
	}
	w.must("PUT", "/v1/queue/shares", api.SetQueueShare{Team: "vision", Off: true}, nil)
	w.must("PUT", "/v1/queue/shares", api.SetQueueShare{Team: "text", Off: true}, nil)
	v = api.QueueShares{}
	if w.must("GET", "/v1/queue/shares", nil, &v); v.Shared || len(v.Teams) != 0 {
		t.Errorf("after the last setting is removed: %+v", v)
	}
}

// A setting out of bounds is refused with its field and a fix, and changes nothing.
func TestQueueShares_RefuseBadSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	w.limit(budget.Limit{Scope: budget.All, Window: budget.Day, Dollars: dollars(48)}) // $2 an hour
	w.must("PUT", "/v1/queue/shares", `{"team":"vision","weight":2,"guarantee":"1.5"}`, nil)
	for body, field := range map[string]string{
		`{}`:                "team",
		`{"weight":2}`:      "team",
		`{"team":"vision"}`: "team",
		`{"team":"vision","half_life_ns":86400000000000}`:       "team",
		`{"team":"visoin","weight":2}`:                          "team",
		`{"team":"nobody","off":true}`:                          "team",
		`{"team":"vision","weight":0}`:                          "weight",
		`{"team":"vision","weight":-2}`:                         "weight",
		`{"team":"vision","weight":1e300}`:                      "weight",
		`{"team":"vision","weight":"NaN"}`:                      "",
		`{"team":"vision","guarantee":"2.01"}`:                  "guarantee",
		`{"team":"vision","guarantee":"-1"}`:                    "",
		`{"team":"vision","guarantee":"1e9"}`:                   "",
		`{"team":"vision","borrow":"-1"}`:                       "",
		`{"team":"vision","borrow":"1","no_borrow_limit":true}`: "borrow",
		`{"team":"vision","off":true,"weight":2}`:               "off",
		`{"half_life_ns":1}`:                                    "half_life_ns",
		`{"half_life_ns":9223372036854775807}`:                  "half_life_ns",
	} {
		rec, p := w.ask("PUT", "/v1/queue/shares", auth.OwnerName, body)
		if rec.Code < 400 || rec.Code >= 500 || p.Fix == "" || field != "" && p.Field != field {
			t.Errorf("%s: %d, field %q, want %q: %s %s (%s)", body, rec.Code, p.Field, field, p.Title, p.Detail, p.Fix)
		}
	}
	rec, p := w.ask("PUT", "/v1/budgets", auth.OwnerName, `{"limit":{"scope":"all","window":"day","dollars":"24"}}`)
	if rec.Code != http.StatusUnprocessableEntity || p.Field != "limit.dollars" {
		t.Errorf("a budget of $1 an hour under a guarantee of $1.50: %d %+v", rec.Code, p)
	}
	var v api.QueueShares
	if w.must("GET", "/v1/queue/shares", nil, &v); len(v.Teams) != 1 || v.Teams[0].Weight != 2 {
		t.Errorf("a refused setting changed something: %+v", v)
	}
}

// A team whose job missed its deadline has the share of missed ones, in the API and on the page; one without a deadline
// has none.
func TestQueueShares_ShowMissedDeadlines(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	w.must("PUT", "/v1/queue/shares", `{"team":"vision","weight":2}`, nil)
	due := w.control.Now().Add(2 * time.Hour).UTC().Format(time.RFC3339)
	w.must("POST", "/v1/jobs", costing("late", "vision", `,"deadline":"`+due+`"`), nil)
	attempt := w.booting(1)[0]
	w.event(core.AttemptStarted{Attempt: attempt, Message: 1}, time.Minute)
	w.event(core.AttemptEnded{Attempt: attempt, Message: 2, Reason: "completed"}, 3*time.Hour)
	var v api.QueueShares
	w.must("GET", "/v1/queue/shares", nil, &v)
	if len(v.Teams) != 1 || v.Teams[0].Missed != 1 || v.Teams[0].Met != 0 || v.Teams[0].MissShare == nil ||
		*v.Teams[0].MissShare != 1 {
		t.Errorf("%+v", v.Teams)
	}
	w.must("PUT", "/v1/queue/shares", `{"team":"text","weight":1}`, nil)
	w.must("GET", "/v1/queue/shares", nil, &v)
	if v.Teams[0].Team != "text" || v.Teams[0].MissShare != nil {
		t.Errorf("a team without a deadline: %+v", v.Teams[0])
	}
	admin := w.signedIn(w.user("ada", identity.Grant{Team: identity.Everywhere, Role: identity.Admin}))
	admin.shows("/teams", 200, "Missed deadlines", "100 % (1 missed, 0 met)", "unknown")
}

// A viewer of one team sees its share and no other team.
func TestQueueShares_ShowAViewerTheirTeam(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	one := 1.0
	for _, team := range []string{"vision", "text"} {
		w.must("PUT", "/v1/teams/"+team, api.SetTeam{}, nil)
		w.must("PUT", "/v1/queue/shares", api.SetQueueShare{Team: team, Weight: &one}, nil)
	}
	ann := w.user("ann", identity.Grant{Team: "text", Role: identity.Viewer})
	rec, _ := w.ask("GET", "/v1/queue/shares", ann, nil)
	if text := rec.Body.String(); rec.Code != 200 || !strings.Contains(text, `"text"`) || strings.Contains(text, "vision") {
		t.Errorf("%d %s", rec.Code, text)
	}
	if rec, _ := w.ask("PUT", "/v1/queue/shares", ann, `{"team":"text","weight":9}`); rec.Code != http.StatusForbidden {
		t.Errorf("a viewer set a share: %d", rec.Code)
	}
}
