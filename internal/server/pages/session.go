package pages

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"scrimp/client"
)

const (
	sessionLife = 12 * time.Hour
	linkLife    = 5 * time.Minute
	mostLinks   = 1000 // links and sessions kept at once
	tokenNote   = "dashboard"
)

// credentials returns a function that gives a request for the API the rights of the cookie's owner. On a shared
// server the cookie is a token, which the API checks each time; a cookie that came from a link is looked up here.
func (s *Site) credentials(r *http.Request) (as func(*http.Request) *http.Request, ok bool) {
	c, err := r.Cookie(cookieName(r))
	if err != nil || c.Value == "" {
		return nil, false
	}
	if s.Owner != nil {
		return s.Owner, s.links.good("cookie", c.Value, s.Now(), false)
	}
	return func(of *http.Request) *http.Request {
		of.Header.Set("Authorization", "Bearer "+c.Value)
		return of
	}, true
}

// cookieName returns the name of the cookie. It includes the port, because servers on one host share cookies.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil {
		port = "0"
	}
	name := "scrimp-" + port
	if secure(r) {
		name = "__Host-" + name // browsers accept it only from this host, over TLS
	}
	return name
}

// secure reports whether the reader connects over TLS, here or at a proxy in front of this server.
func secure(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// setCookie stores a session in the reader's browser; a life of 0 removes it.
func setCookie(w http.ResponseWriter, r *http.Request, value string, life time.Duration) {
	c := &http.Cookie{Name: cookieName(r), Value: value, Path: "/", HttpOnly: true, Secure: secure(r),
		SameSite: http.SameSiteStrictMode, MaxAge: int(life.Seconds())}
	if life <= 0 {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// What the parameter "ended" of the sign-in page says about the reader's session.
const (
	endedSession = "1"      // the session has ended
	endedForm    = "unsent" // it had ended when the reader sent a form
)

// signInAddress returns the address of the sign-in page that leads back to the page of the request, or to that of the
// form that it sends.
func signInAddress(r *http.Request) string {
	q, to := url.Values{}, r.URL.RequestURI()
	if _, err := r.Cookie(cookieName(r)); err == nil {
		q.Set("ended", endedSession)
	}
	if r.Method == http.MethodPost {
		q.Set("ended", endedForm)
		if r.URL.Path == "/do" {
			to = local(r.PostFormValue("back"))
		}
	}
	if to != "/" {
		q.Set("to", to)
	}
	if len(q) == 0 {
		return "/sign-in"
	}
	return "/sign-in?" + q.Encode()
}

// signInPage asks for a token.
func (s *Site) signInPage(w http.ResponseWriter, r *http.Request) {
	guard(w)
	s.askToken(w, r, http.StatusOK, r.URL.Query().Get("to"), nil)
}

// askToken shows the sign-in form, with the error of the last try.
func (s *Site) askToken(w http.ResponseWriter, r *http.Request, status int, to string, wrong *client.Problem) {
	send(w, r, status, s.frame(nil, page{file: "sign-in", title: "Sign in", still: true}, struct {
		To    string
		Own   bool   // the server is its owner's alone
		Away  *away  // nil: no identity provider
		Ended string // endedSession or endedForm; "": the reader had no session
		Wrong *client.Problem
	}{local(to), s.Owner != nil, s.awayTo(to), r.URL.Query().Get("ended"), wrong}))
}

// signIn exchanges a token for a session: another token, which expires earlier and which its user can revoke.
func (s *Site) signIn(w http.ResponseWriter, r *http.Request) {
	guard(w)
	if !s.mayPost(w, r) {
		return
	}
	token, to := strings.TrimSpace(r.PostFormValue("token")), local(r.PostFormValue("to"))
	if s.Owner != nil || token == "" {
		s.askToken(w, r, http.StatusUnprocessableEntity, to, &client.Problem{Title: "a token is needed"})
		return
	}
	v := &visit{site: s, r: r, now: s.Now(), as: func(of *http.Request) *http.Request {
		of.Header.Set("Authorization", "Bearer "+token)
		return of
	}}
	var made client.MadeToken
	err := v.get("/v1/me", &v.me)
	life := sessionLife
	if err == nil {
		if until := v.me.Expires; until != nil {
			life = min(life, until.Sub(v.now))
		}
		_, err = v.ask(http.MethodPost, "/v1/tokens", client.NewToken{Life: life, Note: tokenNote}, &made)
	}
	if err != nil {
		p := asProblem(err)
		s.askToken(w, r, p.Status, to, p)
		return
	}
	setCookie(w, r, made.Text, life)
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// signOut revokes the session.
func (s *Site) signOut(w http.ResponseWriter, r *http.Request) {
	guard(w)
	if !s.mayPost(w, r) {
		return
	}
	if c, err := r.Cookie(cookieName(r)); err == nil && s.Owner != nil {
		s.links.forget("cookie", c.Value)
	} else if v, err := s.visit(r); err == nil && v.me.Token != "" {
		_, _ = v.ask(http.MethodDelete, "/v1/tokens/"+v.me.Token, nil, nil) // on an error, the session still expires
	}
	setCookie(w, r, "", 0)
	http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
}

// Link returns a key that opens the site once.
func (s *Site) Link() string { return s.links.make("link", s.Now(), linkLife) }

// open exchanges a key for a cookie. It answers with a page instead of a redirect, because browsers withhold strict
// cookies on a redirect that started from another site.
func (s *Site) open(w http.ResponseWriter, r *http.Request) {
	guard(w)
	if s.Owner == nil || !s.links.good("link", r.URL.Query().Get("key"), s.Now(), true) {
		if _, ok := s.credentials(r); ok && s.Owner != nil { // this browser has opened it before
			s.opened(w, r, local(r.URL.Query().Get("to")))
			return
		}
		s.askToken(w, r, http.StatusForbidden, "/", &client.Problem{Title: "this link was used before, or is too old"})
		return
	}
	setCookie(w, r, s.links.make("cookie", s.Now(), sessionLife), sessionLife)
	s.opened(w, r, local(r.URL.Query().Get("to")))
}

// local returns an address of this site to go to; "/" for any other.
func local(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") ||
		strings.ContainsAny(to, "\\\r\n\t\x00") {
		return "/"
	}
	return u.RequestURI()
}

// links holds the hashes of secrets that are valid until a given time. It does not keep the secrets themselves.
type links struct {
	mu    sync.Mutex
	until map[[32]byte]time.Time
}

func sum(kind, secret string) [32]byte { return sha256.Sum256([]byte(kind + " " + secret)) }

func (l *links) make(kind string, now time.Time, life time.Duration) string {
	var chance [32]byte
	_, _ = rand.Read(chance[:]) // rand.Read never fails
	text := base64.RawURLEncoding.EncodeToString(chance[:])
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until == nil || len(l.until) >= mostLinks {
		l.until = map[[32]byte]time.Time{}
	}
	l.until[sum(kind, text)] = now.Add(life)
	return text
}

// good reports whether a secret is valid; once makes it invalid for the next use.
func (l *links) good(kind, secret string, now time.Time, once bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := sum(kind, secret)
	until, known := l.until[key]
	if once || known && !now.Before(until) {
		delete(l.until, key)
	}
	return known && now.Before(until)
}

func (l *links) forget(kind, secret string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.until, sum(kind, secret))
}
