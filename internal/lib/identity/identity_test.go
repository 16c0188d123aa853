package identity_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/test/must"
	_ "scrimp/internal/test/sameseed"

	"scrimp/internal/lib/identity"
)

var now = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

func book(t *testing.T, changes ...identity.Change) *identity.Book {
	t.Helper()
	b := identity.NewBook()
	for _, c := range changes {
		must.Do(t, b.Check(c))
		b.Apply(c)
	}
	return b
}

func team(name string, projects ...string) identity.Change {
	return identity.Change{Team: &identity.Team{Name: name, Projects: projects}}
}

func user(name string, grants ...identity.Grant) identity.Change {
	return identity.Change{User: &identity.User{Name: name, Grants: grants, Made: now},
		Person: &identity.Person{Name: name}}
}

func TestToken_WorksUntilExpiryRevocationOrUserOff(t *testing.T) {
	text, tok := identity.Mint([32]byte{1}, "ann", now, time.Hour)
	b := book(t, user("ann", identity.Grant{Team: "*", Role: identity.Operator}), identity.Change{Token: &tok})
	if c, err := b.Who(text, now); err != nil || c.User != "ann" || c.Role("any") != identity.Operator {
		t.Fatalf("%+v, %v", c, err)
	}
	if _, err := b.Who(text, now.Add(time.Hour)); !errors.Is(err, identity.ErrExpired) {
		t.Errorf("at its end: %v", err)
	}
	for _, other := range []string{"", "scrimp_", text[:len(text)-1], text + "A", tok.Hash, tok.ID,
		strings.ToUpper(text)} {
		if _, err := b.Who(other, now); !errors.Is(err, identity.ErrUnknown) {
			t.Errorf("%q: %v", other, err)
		}
	}
	off := user("ann", identity.Grant{Team: "*", Role: identity.Operator})
	off.User.Off = true
	b.Apply(off)
	if _, err := b.Who(text, now); err == nil {
		t.Error("a user who is off gets in")
	}
	b.Apply(user("ann"))
	later := now.Add(time.Minute)
	b.Apply(identity.Change{Revoke: tok.ID, At: &later})
	if _, err := b.Who(text, now); !errors.Is(err, identity.ErrExpired) {
		t.Errorf("after it was revoked: %v", err)
	}
}

func TestBook_NeverStoresTheTokenItself(t *testing.T) {
	text, tok := identity.Mint([32]byte{7}, "ann", now, time.Hour)
	kept, err := json.Marshal(identity.Change{Token: &tok})
	must.Do(t, err)
	if secret := strings.TrimPrefix(text, "scrimp_"); strings.Contains(string(kept), secret) {
		t.Errorf("%s holds the secret", kept)
	}
}

// A token never gives more than its user has, and no role reaches into another team.
func TestCaller_NeverHasMoreThanGranted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		role := rapid.Custom(func(t *rapid.T) identity.Role { return identity.Role(rapid.IntRange(0, 4).Draw(t, "role")) })
		grant := rapid.Custom(func(t *rapid.T) identity.Grant {
			return identity.Grant{Team: rapid.SampledFrom([]string{"a", "b", "*"}).Draw(t, "team"), Role: role.Draw(t, "r")}
		})
		c := identity.Caller{Grants: rapid.SliceOfN(grant, 0, 4).Draw(t, "grants"), Most: role.Draw(t, "most")}
		for _, team := range []string{"a", "b", "c", "", "*"} {
			want := identity.Nobody
			for _, g := range c.Grants {
				if (g.Team == team || g.Team == "*") && g.Role > want {
					want = g.Role
				}
			}
			if c.Most != identity.Nobody && want > c.Most {
				want = c.Most
			}
			if got := c.Role(team); got != want || got > c.Best() {
				t.Fatalf("%+v has %v in %q, want %v; best %v", c, got, team, want, c.Best())
			}
		}
	})
}

func TestPlace_ReturnsATeamOfTheSubmitter(t *testing.T) {
	b := book(t, team("vision", "lanes", "signs"), team("text", "chat"))
	one := identity.Caller{User: "ann",
		Grants: []identity.Grant{{Team: "text", Role: identity.Submitter}, {Team: "vision", Role: identity.Viewer}}}
	two := identity.Caller{User: "bob",
		Grants: []identity.Grant{{Team: "text", Role: identity.Admin}, {Team: "vision", Role: identity.Submitter}}}
	for _, c := range []struct {
		who                          identity.Caller
		team, project                string
		inTeam, inProject, wantField string
	}{
		{one, "", "", "text", "chat", ""},
		{one, "vision", "lanes", "", "", "team"},
		{two, "", "", "", "", "team"},
		{two, "vision", "", "", "", "project"},
		{two, "vision", "signs", "vision", "signs", ""},
		{two, "vision", "chat", "", "", "project"},
		{two, "nobody", "", "", "", "team"},
		{identity.Caller{User: "eve"}, "text", "chat", "", "", "team"},
		{identity.Caller{User: "eve"}, "", "", "", "", "team"},
		{identity.Owner("owner"), "", "", "", "", ""},
		{identity.Owner("owner"), "new", "", "", "", "team"},
	} {
		inTeam, inProject, field, err := b.Place(c.who, c.team, c.project)
		if inTeam != c.inTeam || inProject != c.inProject || field != c.wantField || (err != nil) != (field != "") {
			t.Errorf("%s for %q/%q: %q/%q, field %q, %v", c.who.User, c.team, c.project, inTeam, inProject, field, err)
		}
	}
}

func TestCheck_NamesTheErrorAndItsFix(t *testing.T) {
	_, long := identity.Mint([32]byte{1}, "ann", now, 367*24*time.Hour)
	_, stranger := identity.Mint([32]byte{1}, "eve", now, time.Hour)
	b := book(t, user("ann"))
	for _, c := range []struct {
		change identity.Change
		want   string
	}{
		{user("a b"), "letters, digits"}, {user("'; DROP TABLE event; --"), "letters, digits"},
		{user("<script>"), "letters, digits"}, {user("../x"), "letters, digits"},
		{user(""), "letters, digits"}, {user(strings.Repeat("a", 64)), "63"}, {user("owner"), "another name"},
		{user("bob", identity.Grant{Team: "nobody", Role: identity.Viewer}), "scrimp teams set nobody"},
		{team("-x"), "letters, digits"}, {team("x", "a/b"), "project"},
		{identity.Change{Token: &long}, "8784 hours"}, {identity.Change{Token: &stranger}, "scrimp users"},
		{identity.Change{Revoke: "x"}, "scrimp tokens"}, {identity.Change{}, "empty"},
	} {
		if err := b.Check(c.change); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.change, err, c.want)
		}
	}
}

func TestParseGrant_ReadsWhatStringWrites(t *testing.T) {
	for _, g := range []identity.Grant{{Team: "a", Role: identity.Viewer}, {Team: "*", Role: identity.Admin},
		{Team: "x.y", Role: identity.Operator}} {
		if got, err := identity.ParseGrant(g.String()); err != nil || got != g {
			t.Errorf("%v read back as %v, %v", g, got, err)
		}
		var got identity.Grant
		text, _ := json.Marshal(g)
		if err := json.Unmarshal(text, &got); err != nil || got != g {
			t.Errorf("%s read back as %v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "a=", "=viewer", "a=none", "root", "a b=viewer"} {
		if g, err := identity.ParseGrant(bad); err == nil {
			t.Errorf("%q is read as %v", bad, g)
		}
	}
}

func TestUserOf_IgnoresTheCaseOfASCIILettersAlone(t *testing.T) {
	ann := user("ann")
	ann.Person.Email = "Ask@example.com"
	b := book(t, ann)
	for email, want := range map[string]bool{"ask@EXAMPLE.com": true, "Ask@example.com": true, "": false,
		"a\u017fk@example.com": false, "as\u212a@example.com": false, "ask@example.co": false} {
		if u, ok := b.UserOf(email); ok != want || ok && u.Name != "ann" {
			t.Errorf("%q: %+v, %v", email, u, ok)
		}
	}
	for _, email := range []string{"ask@EXAMPLE.com", "ask", "@x", "a@", "a@b@c", "a b@c", "a@b\n", "a@\u200bb",
		strings.Repeat("a", 254) + "@b"} {
		bob := user("bob")
		bob.Person.Email = email
		var wrong identity.Wrong
		if err := b.Check(bob); !errors.As(err, &wrong) || wrong.Field != "email" || wrong.Fix == "" {
			t.Errorf("%q: %v", email, err)
		}
	}
	if err := b.Check(ann); err != nil {
		t.Errorf("a user keeps the own address: %v", err)
	}
}

func TestHighest_KeepsTheHighestRoleOfEachTeam(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grants := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) identity.Grant {
			return identity.Grant{Team: rapid.SampledFrom([]string{"a", "b", "*"}).Draw(t, "team"),
				Role: identity.Role(rapid.IntRange(1, 4).Draw(t, "role"))}
		}), 0, 6).Draw(t, "grants")
		all, highest := identity.Caller{Grants: grants}, identity.Highest(grants)
		for _, team := range []string{"a", "b", "c", "*"} {
			if got := (identity.Caller{Grants: highest}).Role(team); got != all.Role(team) {
				t.Fatalf("%v gives %v in %q, and %v gives %v", highest, got, team, grants, all.Role(team))
			}
		}
		for i, g := range highest[min(1, len(highest)):] {
			if g.Team <= highest[i].Team {
				t.Fatalf("%v names a team twice, or is not in order", highest)
			}
		}
	})
}

// A user who is switched off loses all tokens for good: being on again brings none back. A log of an older version, in
// which the change has no time, disables them while the user is off.
func TestBook_SwitchingAUserOffEndsTheirTokens(t *testing.T) {
	text, tok := identity.Mint([32]byte{1}, "ann", now, time.Hour)
	other, bobs := identity.Mint([32]byte{2}, "bob", now, time.Hour)
	for _, timed := range []bool{true, false} {
		b := book(t, user("ann"), user("bob"), identity.Change{Token: &tok}, identity.Change{Token: &bobs})
		off := user("ann")
		if off.User.Off = true; timed {
			off.At = &now
		}
		b.Apply(off)
		if kept, _ := b.Token(tok.ID); b.Good(kept, now) || timed != kept.Revoked.Equal(now) {
			t.Errorf("timed %v: %+v", timed, kept)
		}
		on := user("ann")
		on.At = &now
		b.Apply(on)
		if _, err := b.Who(text, now); !errors.Is(err, identity.ErrExpired) {
			t.Errorf("timed %v: the token is back: %v", timed, err)
		}
		if _, err := b.Who(other, now); err != nil {
			t.Errorf("timed %v: another user's token: %v", timed, err)
		}
	}
}
