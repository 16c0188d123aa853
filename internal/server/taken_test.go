package server

import (
	"encoding/csv"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/must"
)

// exported adds up the rows of the exported costs between two times that f selects: dollars and hours.
func (w *world) exported(from, until time.Time, f func(row map[string]string) bool) (dollars, hours float64) {
	w.t.Helper()
	if !until.After(from) {
		return 0, 0
	}
	q := "?since=" + from.Format(time.RFC3339) + "&until=" + until.Format(time.RFC3339)
	rec, p := w.ask("GET", "/v1/export/costs"+q, auth.OwnerName, nil)
	if rec.Code == 404 {
		return 0, 0
	}
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(rec.Body.String(), "\ufeff"))).ReadAll()
	if err != nil || rec.Code != 200 {
		w.t.Fatalf("%d %+v %v", rec.Code, p, err)
	}
	for _, r := range rows[1:] {
		row := map[string]string{}
		for i, name := range rows[0] {
			row[name] = r[i]
		}
		if f(row) {
			a, err := strconv.ParseFloat(row["cost"], 64)
			must.Do(w.t, err)
			h, err := strconv.ParseFloat(row["hours"], 64)
			if err != nil && row["hours"] != "" {
				w.t.Fatal(err)
			}
			dollars, hours = dollars+a, hours+h
		}
	}
	return dollars, hours
}

// A recommendation that a team takes is recorded with its expected saving. What it has saved is the earlier cost of an
// hour of useful time, times the hours since, less the cost since: added up again from the exported costs.
func TestRecommend_ComparesWhatWasTakenWithTheLedger(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	instance := w.idles(8 * time.Hour) // its start took 4 h and is taken off
	ops, sub := w.user("ops", identity.Grant{Team: "team-0", Role: identity.Operator}), w.user("sub", identity.Grant{Team: "team-0", Role: identity.Submitter})
	bob := w.user("bob", identity.Grant{Team: "team-1", Role: identity.Admin})
	const take = "/v1/recommend/take"
	for _, c := range []struct {
		who, body, field string
		code             int
	}{{sub, `{"name":"idle stop","team":"team-0"}`, "", 403}, {ops, `{"name":"idle stop"}`, "", 403}, {bob, `{"name":"idle stop","team":"team-0"}`, "team", 404},
		{ops, `{"name":"magic","team":"team-0"}`, "name", 422}, {ops, `{"name":"retention","team":"team-0"}`, "name", 409},
		{ops, `{"name":"idle stop","team":"team-0","currency":"EUR"}`, "name", 409}} {
		if rec, p := w.ask("POST", take, c.who, c.body); rec.Code != c.code || p.Field != c.field || p.Fix == "" {
			t.Errorf("%s: %d %+v, want %d %s", c.body, rec.Code, p, c.code, c.field)
		}
	}
	var plans []client.SavingsPlan
	w.must("GET", "/v1/recommend?team=team-0", nil, &plans)
	rec, p := w.ask("POST", take, ops, `{"name":"idle stop","team":"team-0"}`)
	var got client.TakenRecommendation
	if rec.Code != 200 || json.Unmarshal(rec.Body.Bytes(), &got) != nil || got.Who != "ops" || got.Unit != "an hour of useful machine time" || got.Over ||
		got.Saved != nil {
		t.Fatalf("%d %+v %+v", rec.Code, p, got)
	}
	alone := 0.0
	for _, l := range plans[0].Recommendations {
		if l.Name == "idle stop" {
			alone = l.Alone.Float()
		}
	}
	if span := 34.0; alone < 3.9 || alone > 4.1 || math.Abs(got.Monthly.Float()-alone*30*24/span) > 0.5 { // 34 h are known
		t.Errorf("%g alone, %v a month", alone, got.Monthly)
	}
	if rec, p := w.ask("POST", take, ops, `{"name":"idle stop","team":"team-0"}`); rec.Code != 409 || p.Field != "name" || !strings.Contains(p.Title, "by ops") {
		t.Errorf("a second time: %d %+v", rec.Code, p)
	}

	// The machine ends an hour later. A second job runs for a day, and nothing waits for long after it.
	w.event(core.InstanceEnded{Instance: instance, Until: w.control.Now().Add(35 * time.Hour), Cause: "terminated"}, 35*time.Hour)
	w.must("POST", "/v1/jobs", aJob("fit2", "team-0"), nil)
	id := w.booting(1)[0]
	w.event(core.AttemptStarted{Attempt: id, Message: 1}, 36*time.Hour)
	w.event(core.AttemptEnded{Attempt: id, Message: 2, Reason: "completed"}, 60*time.Hour)
	w.event(core.InstanceEnded{Instance: w.instance(id), Until: w.control.Now().Add(61 * time.Hour), Cause: "terminated"}, 61*time.Hour)
	w.event(core.Tick{}, 100*time.Hour)
	var list []client.TakenRecommendation
	w.must("GET", "/v1/recommend/taken", nil, &list)
	if len(list) != 1 || list[0].Saved == nil || list[0].Expected == nil || list[0].Over {
		t.Fatalf("%+v", list)
	}
	x := list[0]
	concerned := func(r map[string]string) bool { return r["use"] == "start-up" || r["job"] == "" && r["use"] == "idle" }
	useful := func(r map[string]string) bool { return r["use"] == "useful" }
	end := x.At.Add(101 * time.Hour)
	before, _ := w.exported(x.At.Add(-35*time.Hour), x.At, concerned)
	_, then := w.exported(x.At.Add(-35*time.Hour), x.At, useful)
	cost, _ := w.exported(x.At, end, concerned)
	_, since := w.exported(x.At, end, useful)
	want := before/then*since - cost
	if then < 21 || since < 23 || math.Abs(x.Before.Float()-before) > 1e-6 || math.Abs(x.Cost.Float()-cost) > 1e-6 ||
		math.Abs(x.Saved.Float()-want) > 1e-3 || x.Saved.Sign() <= 0 {
		t.Errorf("%+v; before %g of %g h, since %g of %g h, want %g saved", x, before, then, cost, since, want)
	}
	if due := x.Monthly.Float() * x.Days / 30; math.Abs(x.Expected.Float()-due) > 1e-6 || x.Days < 1 || x.Days > 3 {
		t.Errorf("%v expected in %g days, want %g", x.Expected, x.Days, due)
	}
	w.event(core.Tick{}, 34*24*time.Hour)
	w.must("GET", "/v1/recommend/taken?team=team-0", nil, &list)
	if !list[0].Over || list[0].Days != 30 || *list[0].Expected != *list[0].Monthly || math.Abs(list[0].Saved.Float()-want) > 1e-3 {
		t.Errorf("after the month: %+v", list[0])
	}
	if rec, _ := w.ask("GET", "/v1/recommend/taken", bob, nil); strings.TrimSpace(rec.Body.String()) != "[]" {
		t.Errorf("another team sees %s", rec.Body)
	}
	if rec, p := w.ask("GET", "/v1/recommend/taken?team=team-0", bob, nil); rec.Code != 404 || p.Field != "team" {
		t.Errorf("%d %+v", rec.Code, p)
	}
}
