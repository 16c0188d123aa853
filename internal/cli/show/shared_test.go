package show_test

import (
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/account"
	"scrimp/internal/lib/money"
)

// several returns jobs of two teams; one waits for approval.
func several() []api.Job {
	list := jobs()
	list[0].User, list[0].Team, list[0].Project = "ann", "vision", "lanes"
	list[2].User, list[2].Team = "bartholomew", "language-models"
	list = append(list, api.Job{
		ID: "big", Name: "big", State: "held", Why: "waits_for_approval", User: "ann", Team: "vision", Submitted: now.Add(-time.Hour), Currency: money.USD, Budget: ptr(amount("800")), TimeLeft: ptr(86400.0),
		Approval: &api.Approval{Limits: []api.Threshold{{Limit: "team:vision/month", Above: amount("100")}}, Most: ptr(amount("800")), Until: now.Add(6 * 24 * time.Hour)},
	})
	return list
}

func acts() []api.Act {
	act := func(a api.Act) api.Act { a.At = now.Add(-time.Hour); return a }
	return []api.Act{
		act(api.Act{Who: "owner", Route: "PUT /v1/teams/{id}", Object: "vision", Outcome: "done", From: "socket"}),
		act(api.Act{Who: "ann", Token: "fc498289fac5", Route: "POST /v1/jobs", Object: "resnet-on-all-of-imagenet-2", Outcome: "done", From: "127.0.0.1", Detail: "asks for 25ed5ba53fe9a446"}),
		act(api.Act{Who: "bartholomew", Token: "ec77cef6d3dd", Route: "GET /v1/users", Outcome: "refused", From: "2001:db8::1", Detail: "this needs the role admin of all teams, and bartholomew has none"}),
	}
}

// shared returns the pages of a shared server.
func shared(p show.Place) map[string]string {
	users := []api.User{
		{Name: "ann", Made: now.Add(-time.Hour), Grants: []api.Grant{{Team: "vision", Role: api.Submitter}, {Team: "language-models", Role: api.Viewer}}},
		{Name: "max", Made: now.Add(-90 * 24 * time.Hour), Off: true, Grants: []api.Grant{{Team: api.Everywhere, Role: api.Admin}}},
	}
	away := server()
	away.PID, away.Dir = 0, ""
	return map[string]string{
		"jobs-shared": show.Jobs(several(), p), "held": show.Held(several()[len(several())-1:], p), "held-none": show.Held(nil, p),
		"users": account.Users(users, p), "audit": account.Audit(acts(), p), "server-away": show.Server(away, p),
		"teams": account.Teams([]api.Team{{Name: "vision", Projects: []string{"lanes", "signs"}}, {Name: "free"}}, p), "status-shared": show.Job(several()[0], p),
	}
}
