package people

import (
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/identity"
)

// Person is somebody whom an identity provider has identified.
type Person struct {
	Email  string
	Grants []identity.Grant // of the groups of that person
	Mapped bool             // the server maps groups: a person without a user gets one, with Grants
}

// SignIn makes a session for a person: a token of the user with the person's email address, as a token that the user
// makes. Where groups are mapped, it makes that user, and keeps the grants of users whom it made equal to their groups.
// Errors are *client.Problem and say what to ask an admin for.
func (d *Service) SignIn(r *http.Request, who Person, life time.Duration, note string) (token string, err error) {
	d.users.Lock()
	defer d.users.Unlock()
	var u identity.User
	known, taken := false, false
	name := identity.PlainEmail(who.Email)
	var person *identity.Person
	d.Gate.People.Read(func(b *identity.Book) {
		u, known = b.UserOf(who.Email)
		_, taken = b.ID(name)
	})
	switch {
	case known:
	case !who.Mapped:
		return "", forbidden("no user has the email address "+who.Email,
			"ask an admin to run: scrimp users set NAME --email "+who.Email+" --grant TEAM=ROLE")
	case len(who.Grants) == 0:
		return "", forbidden("no group of "+who.Email+" has a role on this server",
			"ask an admin for a group that the server maps, or to run: scrimp users set NAME --email "+who.Email)
	case taken || identity.WrongName(name) != "":
		return "", forbidden("no user can be made for "+who.Email+": the name "+name+" is taken, or is not a name",
			"ask an admin to run: scrimp users set NAME --email "+who.Email)
	default:
		u = identity.User{Name: newID(), Grouped: true, Made: time.Now().UTC()}
		person = &identity.Person{Name: name, Email: who.Email}
	}
	r = d.Gate.As(r, u.Name)
	if u.Grouped && who.Mapped && (!known || !slices.Equal(u.Grants, who.Grants)) {
		u.Grants = slices.Clone(who.Grants)
		if err := problemOf(d.write(r, u.Name, identity.Change{User: &u, Person: person})); err != nil {
			return "", err
		}
	}
	if u.Grouped && who.Mapped && len(who.Grants) == 0 {
		return "", forbidden("no group of "+who.Email+" has a role on this server any more",
			"ask an admin for a group that the server maps")
	}
	if ok, _ := d.minting.TakeMany(u.Name, 1, time.Now()); !ok {
		return "", &client.Problem{Status: http.StatusTooManyRequests, Title: u.Name + " signs in too often",
			Fix: "wait a minute, and use the sessions that there are"}
	}
	var chance [32]byte
	_, _ = rand.Read(chance[:]) // rand.Read never fails
	token, t := identity.Mint(chance, u.Name, time.Now().UTC(), life)
	t.Note = note
	return token, problemOf(d.write(r, t.ID+" of "+t.User, identity.Change{Token: &t}))
}

// forbidden returns the error of a person who may not sign in.
func forbidden(title, fix string) error {
	return &client.Problem{Status: http.StatusForbidden, Title: title, Fix: fix}
}

// problemOf returns the error of a change for the person who signs in.
func problemOf(wrong, err error) error {
	if is, ok := errors.AsType[identity.Wrong](wrong); ok {
		return forbidden(is.Cause, "ask an admin: "+is.Fix)
	}
	if wrong != nil || err != nil {
		return &client.Problem{Status: http.StatusServiceUnavailable, Title: "the sign-in was not saved", Fix: "try again",
			Detail: errors.Join(wrong, err).Error()}
	}
	return nil
}
