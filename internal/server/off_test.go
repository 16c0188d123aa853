package server

import (
	"slices"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/wire/api"
)

// tokens returns the tokens of a user as an admin sees them.
func tokens(w *world, user string) (list []api.Token) {
	w.t.Helper()
	var all []api.Token
	w.must("GET", "/v1/tokens", nil, &all)
	return slices.DeleteFunc(all, func(k api.Token) bool { return k.User != user })
}

// Switching a user off revokes their tokens, and every list says so; switching the user on again brings none back.
func TestUsers_OffRevokesTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *Options) { o.Rate = 1e6 })
	w.must("PUT", "/v1/teams/vision", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "vision", Role: identity.Viewer})
	root := w.signedIn(w.user("root", identity.Grant{Team: identity.Everywhere, Role: identity.Admin}))
	offers := func() bool {
		id := tokens(w, "ann")[0].ID
		return strings.Contains(root.shows("/access", 200), "Revoke "+id+" of ann")
	}
	if !offers() {
		t.Error("the page does not offer to revoke the token")
	}
	for _, c := range []struct{ off bool }{{true}, {true}, {false}} {
		var u client.User
		w.must("PUT", "/v1/users/ann", api.SetUser{Off: &c.off}, &u)
		if u.Off != c.off {
			t.Errorf("%+v", u)
		}
		if list := tokens(w, "ann"); len(list) != 1 || list[0].Live || list[0].Revoked == nil || list[0].Off {
			t.Errorf("off %v: %+v", c.off, list)
		}
		if rec, _ := w.ask("GET", "/v1/me", ann, nil); rec.Code != 401 {
			t.Errorf("off %v: the token opens the server: %d", c.off, rec.Code)
		}
		if offers() {
			t.Errorf("off %v: the page offers to revoke a token that is revoked", c.off)
		}
	}
	var made api.MadeToken
	w.must("POST", "/v1/tokens", api.NewToken{User: "ann"}, &made)
	if rec, _ := w.ask("GET", "/v1/me", made.Text, nil); rec.Code != 200 || !made.Live {
		t.Errorf("a new token of a user who is on again: %d, %+v", rec.Code, made)
	}
}
