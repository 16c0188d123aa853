package identity_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"scrimp/internal/lib/identity"
)

// The log of a user and of the user's erasure does not hold the name. The erased user keeps one placeholder for ever,
// and another user may take the name.
func TestPerson_IsNotInTheLogAndItsIDIsNotReused(t *testing.T) {
	one, two := identity.NewID([10]byte{1}), identity.NewID([10]byte{2})
	named := func(id, name, email string) identity.Change {
		return identity.Change{User: &identity.User{Name: id, Made: now}, Person: &identity.Person{Name: name, Email: email}}
	}
	gone := func(id string, n int) identity.Change {
		return identity.Change{User: &identity.User{Name: id, Off: true, Made: now, Erased: n}, At: &now}
	}
	b := identity.NewBook()
	var log strings.Builder
	for _, c := range []identity.Change{named(one, "zoe", "zoe@example.org"), gone(one, 1), named(two, "zoe", "zoe@example.org")} {
		if err := b.Check(c); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		log.Write(text)
		b.Apply(c)
	}
	if strings.Contains(log.String(), "zoe") {
		t.Errorf("the log is %s", log.String())
	}
	if id, known := b.ID("zoe"); id != two || !known || b.Person(one) != (identity.Person{Name: "erased-1"}) {
		t.Errorf("zoe is %q, and the erased user %+v", id, b.Person(one))
	}
	if got := string(b.Names().In([]byte(one + " and user:" + two + "/day"))); got != "erased-1 and user:zoe/day" {
		t.Errorf("%q", got)
	}
	for name, want := range map[string]string{"owner": "the owner of the data folder", "erased-7": "itself", "person-x": "itself",
		"zoe": "exists already", "A": "letters"} {
		if err := b.Check(named(identity.NewID([10]byte{3}), name, "")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if err := b.Check(named(one, "back", "")); err == nil {
		t.Error("an erased user has a name again")
	}
	_, tok := identity.Mint([32]byte{1}, one, now, time.Hour)
	var wrong identity.Wrong
	if err := b.Check(identity.Change{Token: &tok}); !errors.As(err, &wrong) || wrong.Cause != "user erased-1 is erased" || strings.Contains(wrong.Fix, "--on") {
		t.Errorf("a token of an erased user: %v", err)
	}
	if n := b.Erasures(); n != 1 {
		t.Errorf("%d erasures", n)
	}
}
