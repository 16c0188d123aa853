package server

import (
	"errors"
	"net/http"
	"regexp"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/oidc"
	"scrimp/internal/server/people"
)

// signInNote is the note of sessions that an identity provider has opened.
const signInNote = "dashboard, by "

// signIn opens sessions of the dashboard for people whom an identity provider has identified.
type signIn struct {
	*oidc.Provider

	server *Server
}

// End ends a sign-in. It returns a token of the user for the given life, and the page that the reader wants.
func (s signIn) End(r *http.Request, kept string, life time.Duration) (token, to string, err error) {
	who, to, err := s.Provider.End(r.Context(), r.URL.Query(), kept)
	if err == nil {
		token, err = s.server.people.SignIn(r, people.Person(who), life, signInNote+s.Host())
	}
	if err != nil {
		s.refused(r, who.Email, err)
		return "", "", s.named(err)
	}
	return token, to, nil
}

// named returns an error with the names of users in place of their IDs.
func (s signIn) named(err error) error {
	p, is := errors.AsType[*client.Problem](err)
	if !is {
		return err
	}
	v, name := *p, func(text string) string { return string(s.server.gate.Names([]byte(text))) }
	v.Title, v.Fix, v.Detail = name(p.Title), name(p.Fix), name(p.Detail)
	return &v
}

// emailInText finds addresses in sentences.
var emailInText = regexp.MustCompile(`[^\s"':,;()]+@[^\s"':,;()]+`)

// refused puts a refused sign-in in the log and in the audit trail. Neither has a secret: the texts of the errors are
// those that the reader sees. email is the address of a person whom the provider has identified; the audit trail, which
// is kept for ever, has the user alone.
func (s signIn) refused(r *http.Request, email string, err error) {
	p, is := errors.AsType[*client.Problem](err)
	if !is {
		p = &client.Problem{Status: http.StatusInternalServerError, Title: "the sign-in has failed"}
	}
	s.server.opts.Log.Warn("a sign-in is refused", "email", email, "from", auth.From(r), "why", p.Title)
	who := ""
	s.server.gate.People.Read(func(b *identity.Book) {
		if u, known := b.UserOf(email); known {
			who = u.Name
		}
	})
	s.server.gate.RecordStranger(r, who, p.Status, emailInText.ReplaceAllString(p.Title, "that address"))
}
