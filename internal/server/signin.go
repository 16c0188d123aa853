package server

import (
	"errors"
	"net/http"
	"time"

	"scrimp/client"
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
	if err != nil {
		return "", "", err
	}
	token, err = s.server.people.SignIn(r, people.Person(who), life, signInNote+s.Host())
	if refused, is := errors.AsType[*client.Problem](err); is {
		s.server.opts.Log.Warn("a person whom the identity provider knows may not sign in", "email", who.Email,
			"from", auth.From(r), "why", refused.Title)
	}
	return token, to, err
}
