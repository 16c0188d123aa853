package server

import (
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/wire/api"
)

// A job that keeps restarting is an incident of its team, and nobody else sees it.
func TestAnomalies_ReportsARetryStorm(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	w.must("PUT", "/v1/teams/team-0", api.SetTeam{}, nil)
	w.must("PUT", "/v1/teams/team-1", api.SetTeam{}, nil)
	w.must("POST", "/v1/jobs", aJob("again", "team-0"), nil)
	for i := range 8 {
		id, at := w.booting(1)[0], time.Duration(10*i)*time.Minute
		w.event(core.AttemptStarted{Attempt: id, Message: 1}, at+time.Minute)
		w.event(core.InstanceEnded{Instance: w.instance(id), Until: w.control.Now().Add(at + 3*time.Minute), Cause: "interrupted"},
			at+3*time.Minute)
	}
	var v client.Anomalies
	w.must("GET", "/v1/anomalies", nil, &v)
	t.Logf("%+v", v)
	for _, who := range []struct{ team, name string }{{"team-0", "ann"}, {"team-1", "bob"}} {
		rec, _ := w.ask("GET", "/v1/anomalies?since=30d", w.user(who.name, identity.Grant{Team: who.team, Role: identity.Viewer}), nil)
		if rec.Code != 200 || strings.Contains(rec.Body.String(), `"interruptions"`) != (who.team == "team-0") {
			t.Errorf("%s sees %d %s", who.name, rec.Code, rec.Body)
		}
	}
	// A team that does not exist, or that the caller may not see, is refused: an empty list would look like good news.
	eve := w.user("eve", identity.Grant{Team: "team-1", Role: identity.Viewer})
	for team, who := range map[string]string{"nosuch": auth.OwnerName, "team-0": eve} {
		if rec, p := w.ask("GET", "/v1/anomalies?team="+team, who, nil); rec.Code != 404 || p.Field != "team" ||
			!strings.Contains(p.Title, `no team "`+team+`"`) || p.Fix == "" {
			t.Errorf("%s asks for %s: %d %+v", who, team, rec.Code, p)
		}
	}
	if rec, _ := w.ask("GET", "/v1/anomalies?team=team-1", auth.OwnerName, nil); rec.Code != 200 {
		t.Errorf("a team without costs: %d", rec.Code)
	}
	for _, bad := range []string{"x", "0h", "-1h", "400d"} {
		if rec, p := w.ask("GET", "/v1/anomalies?since="+bad, auth.OwnerName, nil); rec.Code != 400 || p.Field != "since" || p.Fix == "" {
			t.Errorf("since %s: %d %+v", bad, rec.Code, p)
		}
	}
}
