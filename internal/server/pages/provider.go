package pages

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Provider signs readers in by an identity provider.
type Provider interface {
	// Host returns the host of the provider.
	Host() string
	// Begin returns the address to which a reader goes, and what the browser keeps until the provider sends them to
	// back.
	Begin(ctx context.Context, back, to string) (address, kept string, err error)
	// End returns a token for the reader whom the provider has sent back, and the page to go to.
	End(r *http.Request, kept string, life time.Duration) (token, to string, err error)
}

// Paths of a sign-in by a provider. An admin registers backPath there.
const (
	beginPath = "/oidc/sign-in"
	backPath  = "/oidc/callback"
)

// flowLife is how long a browser keeps a sign-in that has not ended.
const flowLife = 10 * time.Minute

// longestTo bounds the address of the page that a reader wants, in bytes: browsers drop cookies above 4 KiB.
const longestTo = 1000

// flowCookie stores a sign-in in the reader's browser; a life of 0 removes it. The cookie is lax, because a page of
// the provider sends the reader back.
func flowCookie(w http.ResponseWriter, r *http.Request, value string, life time.Duration) {
	c := &http.Cookie{Name: cookieName(r) + "-oidc", Value: value, Path: "/", HttpOnly: true, Secure: secure(r),
		SameSite: http.SameSiteLaxMode, MaxAge: int(life.Seconds())}
	if life <= 0 {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// beginAway sends a reader to the identity provider.
func (s *Site) beginAway(w http.ResponseWriter, r *http.Request) {
	guard(w)
	back := url.URL{Scheme: "http", Host: r.Host, Path: backPath}
	if secure(r) {
		back.Scheme = "https"
	}
	to := local(r.URL.Query().Get("to"))
	if len(to) > longestTo {
		to = "/"
	}
	address, kept, err := s.Provider.Begin(r.Context(), back.String(), to)
	if err != nil {
		p := asProblem(err)
		s.askToken(w, r, p.Status, to, p)
		return
	}
	flowCookie(w, r, kept, flowLife)
	http.Redirect(w, r, address, http.StatusSeeOther)
}

// backFrom ends a sign-in. It answers with a page instead of a redirect, as open does, and reads no cookie of a
// session: the answer of the provider alone says who the reader is.
func (s *Site) backFrom(w http.ResponseWriter, r *http.Request) {
	guard(w)
	kept := ""
	if c, err := r.Cookie(cookieName(r) + "-oidc"); err == nil {
		kept = c.Value
	}
	flowCookie(w, r, "", 0)
	token, to, err := s.Provider.End(r, kept, sessionLife)
	if err != nil {
		p := asProblem(err)
		s.askToken(w, r, p.Status, "/", p)
		return
	}
	setCookie(w, r, token, sessionLife)
	s.opened(w, r, local(to))
}

// opened tells a reader that the session is open, and goes on to a page of this site.
func (s *Site) opened(w http.ResponseWriter, r *http.Request, to string) {
	w.Header().Set("Refresh", "0; url="+to)
	send(w, r, http.StatusOK, s.frame(nil, page{file: "opened", title: "Signed in", still: true}, to))
}

// away is the link to an identity provider on the page that asks for a token.
type away struct{ Host, Path string }

// awayTo returns that link; nil if the server knows no provider.
func (s *Site) awayTo(to string) *away {
	if s.Provider == nil || s.Owner != nil {
		return nil
	}
	return &away{s.Provider.Host(), beginPath + "?to=" + url.QueryEscape(local(to))}
}
