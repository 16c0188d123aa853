package show_test

import (
	"strings"
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/cli/show/account"
	"scrimp/internal/test/golden"
)

func TestPeople(t *testing.T) {
	users := []api.User{
		{Name: "ann", Made: now.Add(-48 * time.Hour), Grants: []api.Grant{{Team: "*", Role: api.Admin}}},
		{Name: "bob", Made: now.Add(-time.Hour), Grants: []api.Grant{{Team: "vision", Role: api.Submitter}, {Team: "text", Role: api.Viewer}}},
		{Name: "gone@example.com", Made: now.Add(-900 * time.Hour), Off: true},
	}
	teams := []api.Team{{Name: "text"}, {Name: "vision", Projects: []string{"lanes", "signs"}}}
	tokens := []api.Token{
		{ID: "0123456789ab", User: "ann", Made: now.Add(-time.Hour), Expires: now.Add(2000 * time.Hour), Live: true},
		{ID: "cdef01234567", User: "bob", Most: api.Viewer, Note: "dashboard in the hall", Made: now.Add(-100 * time.Hour), Expires: now.Add(-time.Hour)},
		{ID: "89abcdef0123", User: "gone@example.com", Made: now.Add(-800 * time.Hour), Expires: now.Add(time.Hour), Revoked: ptr(now)},
		{ID: "456789abcdef", User: "gone@example.com", Made: now.Add(-700 * time.Hour), Expires: now.Add(time.Hour), Off: true},
	}
	acts := []api.Act{
		{Event: 4, At: now.Add(-time.Hour), Who: "owner", From: "socket", Route: "PUT /v1/users/{id}", Object: "ann", Outcome: "done"},
		{Event: 9, At: now.Add(-time.Minute), Who: "bob", Token: "cdef01234567", From: "10.0.0.7", Route: "POST /v1/jobs/{id}/end", Object: "bert", Outcome: "refused", Detail: "Forbidden"},
		{Event: 12, At: now, Who: "ann", Token: "0123456789ab", From: "127.0.0.1", Route: "POST /v1/jobs", Object: "bert-2", Outcome: "done"},
	}
	wide, narrow := show.Place{Width: 120, Now: now}, show.Place{Width: 80, Now: now}
	for name, text := range map[string]string{
		"users": account.Users(users, wide), "users-80": account.Users(users, narrow), "users-pipe": account.Users(users, show.Place{}), "users-none": account.Users(nil, narrow),
		"teams": account.Teams(teams, wide), "teams-none": account.Teams(nil, narrow), "tokens": account.Tokens(tokens, wide), "tokens-80": account.Tokens(tokens, narrow), "tokens-none": account.Tokens(nil, narrow),
		"audit": account.Audit(acts, wide), "audit-80": account.Audit(acts, narrow), "audit-pipe": account.Audit(acts, show.Place{}), "audit-none": account.Audit(nil, narrow),
		"me": account.Me("https://scrimp.example.com", api.Me{User: "bob", Grants: users[1].Grants, Best: api.Submitter, Token: "cdef01234567", Expires: ptr(now)}, wide),
	} {
		golden.Check(t, "people/"+name+".txt", text)
	}
}

func TestAudit_CannotSteerTerminal(t *testing.T) {
	a := api.Act{At: now, Who: "eve", Route: "PUT /v1/users/{id}", Object: "\x1b[2J\u202egone", Outcome: "refused", Detail: "a\nb\x07"}
	text := account.Audit([]api.Act{a}, show.Place{})
	if strings.ContainsAny(text, "\x1b\x07\u202e") || strings.Count(text, "\n") != 2 {
		t.Errorf("%q", text)
	}
}
