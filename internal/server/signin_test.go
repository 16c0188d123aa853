package server

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/oidc"
	"scrimp/internal/test/must"
	"scrimp/internal/test/oidctest"
	"scrimp/internal/wire/api"
)

// person is somebody with a browser, who signs in by an identity provider.
type person struct {
	reader

	jar map[string]*http.Cookie
}

// goes follows a link from another site or this one, with the cookies that are not strict if foreign.
func (b *person) goes(path string, foreign bool) *http.Response {
	b.w.t.Helper()
	r := httptest.NewRequestWithContext(b.w.t.Context(), http.MethodGet, "https://dash.example"+path, nil)
	r.RemoteAddr = "192.0.2.7:9"
	for _, c := range b.jar {
		if !foreign || c.SameSite != http.SameSiteStrictMode {
			r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value})
		}
	}
	rec := httptest.NewRecorder()
	b.w.h.ServeHTTP(rec, r)
	got := rec.Result()
	for _, c := range got.Cookies() {
		if b.jar[c.Name] = c; c.MaxAge < 0 {
			delete(b.jar, c.Name)
		}
		if !c.HttpOnly || !c.Secure || c.Path != "/" || !strings.HasPrefix(c.Name, "__Host-") {
			b.w.t.Errorf("a script or another site may read the cookie: %s", c)
		}
	}
	return got
}

// signsIn signs in at the provider, and returns the answer to what the provider sent back, with its address.
func (b *person) signsIn(to string) (got *http.Response, back string) {
	b.w.t.Helper()
	b.jar = map[string]*http.Cookie{}
	begun := b.goes("/oidc/sign-in?to="+url.QueryEscape(to), false)
	if begun.StatusCode != http.StatusSeeOther {
		return begun, ""
	}
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	sent, err := stay.Get(begun.Header.Get("Location"))
	must.Do(b.w.t, err)
	_ = sent.Body.Close()
	back, ok := strings.CutPrefix(sent.Header.Get("Location"), "https://dash.example")
	if !ok {
		b.w.t.Fatalf("the provider sends the reader to %s", sent.Header.Get("Location"))
	}
	return b.goes(back, true), back
}

// refused fails unless an answer refuses the sign-in, with all texts.
func (b *person) refused(got *http.Response, texts ...string) {
	b.w.t.Helper()
	var body bytes.Buffer
	_, _ = body.ReadFrom(got.Body)
	for _, text := range texts {
		if !strings.Contains(body.String(), text) {
			b.w.t.Errorf("the page does not have %q: %s", text, &body)
		}
	}
	if got.StatusCode < 400 || len(b.jar) > 0 {
		b.w.t.Errorf("%d, cookies %v", got.StatusCode, b.jar)
	}
}

// newSignIns returns a server with the teams vision and text, a provider, and somebody with a browser.
func newSignIns(t *testing.T, groups ...string) (*world, *oidctest.Provider, *person) {
	t.Helper()
	at := oidctest.New(t)
	file := filepath.Join(t.TempDir(), "secret")
	must.Do(t, os.WriteFile(file, []byte(oidctest.Secret), 0o600))
	w := newWorld(t, func(o *Options) {
		o.Rate = 1e6
		o.OIDC = oidc.Settings{Issuer: at.URL, Client: oidctest.Client, SecretFile: file, Groups: groups}
	})
	for _, team := range []string{"vision", "text"} {
		w.must("PUT", "/v1/teams/"+team, api.SetTeam{}, nil)
	}
	return w, at, &person{reader: reader{w: w}}
}

// sessions returns the tokens of a user that are good.
func (w *world) sessions(user string) (live []api.Token) {
	w.t.Helper()
	var all []api.Token
	w.must("GET", "/v1/tokens", nil, &all)
	return slices.DeleteFunc(all, func(k api.Token) bool { return k.User != user || !k.Live })
}

func (w *world) userNamed(name string) (u client.User) {
	w.t.Helper()
	var all []client.User
	w.must("GET", "/v1/users", nil, &all)
	if i := slices.IndexFunc(all, func(u client.User) bool { return u.Name == name }); i >= 0 {
		return all[i]
	}
	return u
}

func TestSignInByProvider_OpensASessionOfTheUserWithTheAddress(t *testing.T) {
	t.Parallel()
	w, at, b := newSignIns(t)
	viewer := []client.Grant{{Team: "vision", Role: client.Viewer}}
	w.must("PUT", "/v1/users/ann", api.SetUser{Grants: viewer, Email: new("Ann@Example.com")}, nil)
	b.shows("/sign-in", 200, "Sign in with "+strings.TrimPrefix(at.URL, "http://"), `name="token"`)
	got, back := b.signsIn("/jobs?name=x")
	if refresh := got.Header.Get("Refresh"); got.StatusCode != 200 || refresh != "0; url=/jobs?name=x" {
		t.Fatalf("%d, %q", got.StatusCode, refresh)
	}
	c := b.jar["__Host-scrimp-0"]
	if c == nil || c.SameSite != http.SameSiteStrictMode || c.MaxAge != 12*3600 || len(b.jar) != 1 {
		t.Fatalf("cookies %v", b.jar)
	}
	if got := b.goes("/jobs", false); got.StatusCode != 200 {
		t.Errorf("the session shows %d", got.StatusCode)
	}
	live := w.sessions("ann")
	if len(live) != 1 || !strings.HasPrefix(live[0].Note, "dashboard, by ") ||
		live[0].Expires.Sub(live[0].Made).Hours() != 12 {
		t.Fatalf("%+v", live)
	}
	thief := &person{reader: b.reader, jar: map[string]*http.Cookie{}}
	thief.refused(thief.goes(back, true), "not begun a sign-in")
	w.must("DELETE", "/v1/tokens/"+live[0].ID, nil, nil)
	if got := b.goes("/jobs", false); got.StatusCode != http.StatusSeeOther {
		t.Errorf("a revoked session shows %d", got.StatusCode)
	}
	var trail api.Audit
	w.must("GET", "/v1/audit?user=ann", nil, &trail)
	if a := trail.Acts; len(a) != 1 || a[0].Route != "GET /oidc/callback" || a[0].From != "192.0.2.7" ||
		a[0].Outcome != "done" {
		t.Errorf("%+v", a)
	}
	if strings.Contains(w.log.String(), oidctest.Secret) {
		t.Error("the log has the secret")
	}
}

func TestSignInByProvider_RefusesStrangersAndUsersWhoAreOff(t *testing.T) {
	t.Parallel()
	w, at, b := newSignIns(t)
	got, _ := b.signsIn("/")
	b.refused(got, "no user has the email address ann@example.com", "scrimp users set NAME --email ann@example.com")
	w.must("PUT", "/v1/users/ann", api.SetUser{Email: new("ann@example.com"), Off: new(true)}, nil)
	got, _ = b.signsIn("/")
	b.refused(got, "ann is switched off", "ask an admin")
	w.must("PUT", "/v1/users/ann", api.SetUser{Email: new(""), Off: new(false)}, nil)
	got, _ = b.signsIn("/")
	b.refused(got, "no user has the email address")
	w.must("PUT", "/v1/users/ann", api.SetUser{Email: new("ann@example.com")}, nil)
	at.Set(func(p *oidctest.Provider) { p.Claims = map[string]any{"email_verified": false} })
	got, _ = b.signsIn("/")
	b.refused(got, "is verified")
	at.Set(func(p *oidctest.Provider) { p.Claims = map[string]any{"email": "ann@\uff45xample.com"} })
	got, _ = b.signsIn("/")
	b.refused(got, "no user has the email address")
	w.audited(map[string]string{auth.Unknown: "no user has the email address that address", "ann": "switched off"})
	w.audited(map[string]string{auth.Unknown: "is verified"})
	if text := w.logged(); strings.Contains(text, "example.com") {
		t.Errorf("the log has an address: %s", linesWith(text, "example.com"))
	}
	if live := w.sessions("ann"); len(live) > 0 {
		t.Errorf("there are sessions: %+v", live)
	}
	if rec, p := w.ask("PUT", "/v1/users/bob", w.gate.Owner, `{"email":"ANN@example.com"}`); rec.Code == 200 {
		t.Errorf("two users have one address: %+v", p)
	}
}

// audited fails unless the audit trail has a refused sign-in with each text, by name, and no secret.
func (w *world) audited(want map[string]string) {
	w.t.Helper()
	var trail api.Audit
	w.must("GET", "/v1/audit?limit=1000", nil, &trail)
	for who, text := range want {
		if !slices.ContainsFunc(trail.Acts, func(a api.Act) bool {
			return a.Who == who && a.Route == "GET /oidc/callback" && a.Outcome == "refused" && a.From == "192.0.2.7" &&
				strings.Contains(a.Detail, text)
		}) {
			w.t.Errorf("the audit trail does not say %q of %s: %+v", text, who, trail.Acts)
		}
	}
	for _, a := range trail.Acts {
		if strings.Contains(a.Detail, oidctest.Secret) || strings.Contains(a.Detail, "eyJ") {
			w.t.Errorf("the audit trail has a secret: %+v", a)
		}
	}
}

// A refused sign-in leaves its reason in the audit trail, and the page says what to do. Repeats do not fill the log.
func TestSignInByProvider_RefusalsGoToTheAuditTrail(t *testing.T) {
	t.Parallel()
	w, at, b := newSignIns(t)
	for claim, c := range map[string]struct {
		value   any
		why, do string
	}{
		"aud":   {"other", "it is for another client", "--oidc-client"},
		"exp":   {1, "it has expired", "clocks"},
		"iss":   {"https://other.example", "it is of another issuer", "--oidc-issuer"},
		"nonce": {"x", "it belongs to another sign-in", "begin the sign-in again"},
	} {
		at.Set(func(p *oidctest.Provider) { p.Claims = map[string]any{claim: c.value} })
		for range 3 {
			got, _ := b.signsIn("/")
			b.refused(got, "is not valid: "+c.why, c.do)
		}
	}
	at.Set(func(p *oidctest.Provider) { p.Claims = nil })
	_, back := b.signsIn("/")
	stranger := &person{reader: b.reader, jar: map[string]*http.Cookie{}}
	stranger.refused(stranger.goes(back, true), "not begun a sign-in", "begin the sign-in again")
	for _, why := range []string{"for another client", "has expired", "another issuer", "another sign-in"} {
		w.audited(map[string]string{auth.Unknown: why})
	}
	w.audited(map[string]string{auth.Unknown: "not begun a sign-in"})
	w.audited(map[string]string{auth.Unknown: "no user"})
	var trail api.Audit
	w.must("GET", "/v1/audit?limit=1000", nil, &trail)
	count := 0
	for _, a := range trail.Acts {
		if a.Who == auth.Unknown {
			count++
		}
	}
	if count != 6 {
		t.Errorf("%d acts of unknown people, want one for each kind of reason: %+v", count, trail.Acts)
	}
}

func TestSignInByProvider_GoesToPagesOfThisSiteOnly(t *testing.T) {
	t.Parallel()
	w, _, b := newSignIns(t)
	w.must("PUT", "/v1/users/ann", api.SetUser{Email: new("ann@example.com")}, nil)
	for _, to := range []string{"https://evil.example/", "//evil.example", `/\evil.example`, "javascript:alert(1)", "",
		"/jobs?name=" + strings.Repeat("x", 5000)} {
		if got, _ := b.signsIn(to); got.Header.Get("Refresh") != "0; url=/" {
			t.Errorf("%q: %d, %q", to, got.StatusCode, got.Header.Get("Refresh"))
		}
	}
}

func TestSignInByProvider_UsersFollowTheirGroupsUntilAnAdminGrants(t *testing.T) {
	t.Parallel()
	w, at, b := newSignIns(t, "ml=vision:submitter", "nlp=text:viewer", "lost=nowhere:viewer")
	member := func(groups ...string) {
		at.Set(func(p *oidctest.Provider) { p.Claims = map[string]any{"email": "Eve@example.com", "groups": groups} })
	}
	const eve = "eve@example.com"
	member("other")
	got, _ := b.signsIn("/")
	b.refused(got, "no group of Eve@example.com has a role")
	w.audited(map[string]string{auth.Unknown: "no group of that address has a role"})
	member("lost")
	got, _ = b.signsIn("/")
	b.refused(got, "nowhere", "scrimp teams set nowhere")
	if u := w.userNamed(eve); u.Name != "" {
		t.Fatalf("refused people have a user: %+v", u)
	}
	for _, c := range []struct {
		groups []string
		want   []client.Grant
	}{
		{[]string{"ml"}, []client.Grant{{Team: "vision", Role: client.Submitter}}},
		{[]string{"nlp", "ml"}, []client.Grant{{Team: "text", Role: client.Viewer},
			{Team: "vision", Role: client.Submitter}}},
		{[]string{"nlp"}, []client.Grant{{Team: "text", Role: client.Viewer}}},
	} {
		member(c.groups...)
		if got, _ := b.signsIn("/"); got.StatusCode != 200 {
			t.Fatalf("%v: %d", c.groups, got.StatusCode)
		}
		if u := w.userNamed(eve); !slices.Equal(u.Grants, c.want) || !u.Grouped || u.Email != "Eve@example.com" {
			t.Fatalf("%v: %+v", c.groups, u)
		}
	}
	open := b.jar
	member()
	got, _ = b.signsIn("/")
	b.refused(got, "no group of Eve@example.com has a role", "any more")
	if b.jar = open; b.goes("/jobs", false).StatusCode != http.StatusForbidden {
		t.Error("an earlier session still has the roles of the groups")
	}
	w.must("PUT", "/v1/users/"+eve, api.SetUser{Grants: []client.Grant{{Team: "*", Role: client.Viewer}}}, nil)
	if got, _ := b.signsIn("/"); got.StatusCode != 200 {
		t.Errorf("a user with grants of an admin: %d", got.StatusCode)
	}
	if u := w.userNamed(eve); u.Grouped || len(u.Grants) != 1 || u.Grants[0].Team != identity.Everywhere {
		t.Errorf("%+v", u)
	}
}

func TestSignInByProvider_TakesOverNoUserOfTheSameName(t *testing.T) {
	t.Parallel()
	w, at, b := newSignIns(t, "ml=vision:viewer")
	w.must("PUT", "/v1/users/root@example.com", api.SetUser{Grants: []client.Grant{{Team: "*", Role: client.Admin}}}, nil)
	for _, email := range []string{"root@example.com", "owner@" + strings.Repeat("x", 60), "a+b@example.com"} {
		at.Set(func(p *oidctest.Provider) { p.Claims = map[string]any{"email": email, "groups": "ml"} })
		got, _ := b.signsIn("/")
		b.refused(got, "is taken, or is not a name", "ask an admin")
	}
}

func TestSignIn_OffersNoProviderWhereNoneIsSet(t *testing.T) {
	t.Parallel()
	b := &reader{w: newWorld(t, nil)}
	if text := b.shows("/sign-in", 200); strings.Contains(text, "Sign in with") {
		t.Error("the page offers a provider")
	}
	b.shows("/oidc/sign-in", 404)
	b.shows("/oidc/callback", 404)
}
