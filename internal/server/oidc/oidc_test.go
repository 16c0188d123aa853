package oidc_test

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/oidc"
	"scrimp/internal/test/must"
	"scrimp/internal/test/oidctest"
)

const back = "https://scrimp.example/oidc/callback"

// rig is a server's side of sign-ins at a provider.
type rig struct {
	t    *testing.T
	at   *oidctest.Provider
	by   *oidc.Provider
	log  bytes.Buffer
	late time.Duration // by which the server's clock is ahead
}

func newRig(t *testing.T, change func(*oidc.Settings)) *rig {
	t.Helper()
	r := &rig{t: t, at: oidctest.New(t)}
	s := settings(t, r.at.URL)
	if change != nil {
		change(&s)
	}
	var err error
	r.by, err = oidc.New(s, func() time.Time { return time.Now().Add(r.late) }, slog.New(slog.NewTextHandler(&r.log, nil)))
	must.Do(t, err)
	t.Cleanup(func() {
		if strings.Contains(r.log.String(), oidctest.Secret) {
			t.Errorf("the log has the secret: %s", &r.log)
		}
	})
	return r
}

func settings(t *testing.T, issuer string) oidc.Settings {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	must.Do(t, os.WriteFile(file, []byte(oidctest.Secret+"\n"), 0o600))
	return oidc.Settings{Issuer: issuer, Client: oidctest.Client, SecretFile: file}
}

// begin begins a sign-in and lets the provider send the reader back.
func (r *rig) begin() (answer url.Values, kept string) {
	r.t.Helper()
	address, kept, err := r.by.Begin(r.t.Context(), back, "/jobs")
	must.Do(r.t, err)
	stay := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	got, err := stay.Get(address)
	must.Do(r.t, err)
	_ = got.Body.Close()
	to, err := got.Location()
	if err != nil || !strings.HasPrefix(to.String(), back+"?") {
		r.t.Fatalf("the provider sends the reader to %v: %d %v", to, got.StatusCode, err)
	}
	return to.Query(), kept
}

func (r *rig) signIn() (oidc.Person, string, error) {
	r.t.Helper()
	answer, kept := r.begin()
	return r.by.End(r.t.Context(), answer, kept)
}

func (r *rig) refused(err error, title string) {
	r.t.Helper()
	p, is := errors.AsType[*client.Problem](err)
	if !is || !strings.Contains(p.Title, title) || p.Fix == "" || p.Status < 400 {
		r.t.Errorf("%+v, want a problem with %q and a fix", err, title)
	}
}

func TestSignIn_NamesThePersonOfAValidIDToken(t *testing.T) {
	for _, alg := range []string{"RS256", "ES256"} {
		for _, method := range []string{"client_secret_basic", "client_secret_post"} {
			r := newRig(t, nil)
			r.at.Set(func(p *oidctest.Provider) { p.Alg, p.Methods = alg, []string{method} })
			for range 2 {
				who, to, err := r.signIn()
				if err != nil || who.Email != "ann@example.com" || to != "/jobs" || who.Mapped || len(who.Grants) > 0 {
					t.Fatalf("%s, %s: %+v, %q, %v %s", alg, method, who, to, err, &r.log)
				}
			}
			if r.at.Rotate(t); r.at.Asked != 1 {
				t.Errorf("the server asks for the addresses %d times", r.at.Asked)
			}
			if _, _, err := r.signIn(); err != nil {
				t.Errorf("after the provider has new keys: %v", err)
			}
		}
	}
}

func TestSignIn_RefusesEveryInvalidIDToken(t *testing.T) {
	claims := func(name string, v any) func(*oidctest.Provider) {
		return func(p *oidctest.Provider) { p.Claims = map[string]any{name: v} }
	}
	const invalid = "is not valid"
	for name, c := range map[string]struct {
		change func(*oidctest.Provider)
		title  string
	}{
		"wrong nonce":       {claims("nonce", "other"), invalid},
		"no nonce":          {claims("nonce", nil), invalid},
		"wrong audience":    {claims("aud", "other"), invalid},
		"other party":       {claims("azp", "other"), invalid},
		"several audiences": {claims("aud", []string{oidctest.Client, "other"}), invalid},
		"expired":           {claims("exp", time.Now().Add(-time.Second).Unix()), invalid},
		"not valid yet":     {claims("nbf", time.Now().Add(time.Hour).Unix()), invalid},
		"wrong issuer":      {claims("iss", "https://other.example"), invalid},
		"algorithm none":    {func(p *oidctest.Provider) { p.Alg = "none" }, invalid},
		"symmetric key":     {func(p *oidctest.Provider) { p.Alg = "HS256" }, invalid},
		"forged RSA":        {func(p *oidctest.Provider) { p.Forged = true }, invalid},
		"forged EC":         {func(p *oidctest.Provider) { p.Forged, p.Alg = true, "ES256" }, invalid},
		"no token":          {func(p *oidctest.Provider) { p.Answer = "a.b" }, invalid},
		"unverified":        {claims("email_verified", false), "is verified"},
		"unverified text":   {claims("email_verified", "false"), "is verified"},
		"verified unknown":  {claims("email_verified", nil), "is verified"},
		"no email":          {claims("email", nil), "no email address"},
		"email of two":      {claims("email", "a@x, b@y"), "no email address"},
		"email is a list":   {claims("email", []string{"a@x"}), "no email address"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.at.Set(c.change)
			_, _, err := r.signIn()
			r.refused(err, c.title)
		})
	}
}

func TestSignIn_AnswersEachFlowOnceAndInItsOwnBrowser(t *testing.T) {
	r := newRig(t, nil)
	answer, kept := r.begin()
	end := func(answer url.Values, kept string) error {
		_, _, err := r.by.End(t.Context(), answer, kept)
		return err
	}
	other, otherKept := r.begin()
	r.refused(end(answer, ""), "not begun a sign-in")
	r.refused(end(answer, kept+"A"), "not begun a sign-in")
	r.refused(end(answer, otherKept), "belongs to another")
	r.refused(end(url.Values{"code": answer["code"]}, kept), "belongs to another")
	foreign := url.Values{"code": answer["code"], "state": answer["state"], "iss": {"https://evil.example"}}
	r.refused(end(foreign, kept), "another identity provider")
	must.Do(t, end(answer, kept))
	r.refused(end(answer, kept), "has already ended")
	// A code of one flow in another fails at the provider: the verifier of PKCE is not that of the code.
	third, _ := r.begin()
	r.refused(end(url.Values{"code": third["code"], "state": other["state"]}, otherKept), "refuses the code")
	denied, kept := r.begin()
	denied.Del("code")
	denied.Set("error", "access_denied<script>")
	r.refused(end(denied, kept), "access_denied")
	late, kept := r.begin()
	r.late = oidc.FlowLife
	r.refused(end(late, kept), "ten minutes")
}

func TestSignIn_SaysThatTheProviderIsDownAndRecovers(t *testing.T) {
	r := newRig(t, nil)
	r.at.Set(func(p *oidctest.Provider) { p.Down = true })
	for range 3 {
		_, _, err := r.by.Begin(t.Context(), back, "/")
		r.refused(err, "does not answer")
	}
	r.at.Set(func(p *oidctest.Provider) { p.Down = false })
	_, _, err := r.by.Begin(t.Context(), back, "/")
	r.refused(err, "does not answer") // the server asks a broken provider every few seconds only
	r.late = 6 * time.Second
	answer, kept := r.begin()
	r.at.Set(func(p *oidctest.Provider) { p.Down = true })
	_, _, err = r.by.End(t.Context(), answer, kept)
	r.refused(err, "does not answer")
	if r.at.Asked != 1 {
		t.Errorf("the provider is asked %d times for its addresses, want 1", r.at.Asked)
	}
}

func TestSignIn_RefusesAProviderThatNamesAnotherIssuerOrPlainAddresses(t *testing.T) {
	for _, change := range []func(*oidctest.Provider){
		func(p *oidctest.Provider) { p.Issuer = "https://other.example" },
		func(p *oidctest.Provider) { p.Token = "http://192.0.2.1/token" },
		func(p *oidctest.Provider) { p.Token = "ftp://127.0.0.1/token" },
		func(p *oidctest.Provider) { p.Methods = []string{"private_key_jwt"} },
	} {
		r := newRig(t, nil)
		r.at.Set(change)
		_, _, err := r.by.Begin(t.Context(), back, "/")
		r.refused(err, "does not answer")
	}
}

func TestSignIn_WrongSecretReachesNoLog(t *testing.T) {
	r := newRig(t, func(s *oidc.Settings) {
		must.Do(t, os.WriteFile(s.SecretFile, []byte("wrong-secret-of-mine"), 0o600))
	})
	_, _, err := r.signIn()
	r.refused(err, "refuses the code")
	text := r.log.String() + err.Error()
	if strings.Contains(text, "wrong-secret") || !strings.Contains(text, "invalid_client") {
		t.Errorf("%s", text)
	}
}

func TestSignIn_GroupsGiveTheHighestRoleOfEachTeam(t *testing.T) {
	r := newRig(t, func(s *oidc.Settings) {
		s.Claim = "upn"
		s.Groups = []string{"ml=vision:viewer", "CN=lead,OU=x=vision:operator", "ml=text:viewer", "root=*:admin"}
	})
	r.at.Set(func(p *oidctest.Provider) {
		p.Claims = map[string]any{"upn": "Ann@x", "email_verified": nil, "groups": []any{"ml", "CN=lead,OU=x", "other", 7}}
	})
	who, _, err := r.signIn()
	want := oidc.Person{Email: "Ann@x", Mapped: true, Grants: []identity.Grant{{Team: "text", Role: identity.Viewer},
		{Team: "vision", Role: identity.Operator}}}
	if err != nil || !reflect.DeepEqual(who, want) {
		t.Errorf("%+v, %v", who, err)
	}
}

func TestNew_NamesTheFlagInError(t *testing.T) {
	if p, err := oidc.New(oidc.Settings{Claim: "email", GroupClaim: "groups"}, time.Now, nil); p != nil || err != nil {
		t.Errorf("without a provider: %v, %v", p, err)
	}
	for name, c := range map[string]struct {
		change func(*oidc.Settings)
		want   string
	}{
		"no issuer":    {func(s *oidc.Settings) { s.Issuer = "" }, "--oidc-issuer is missing"},
		"no client":    {func(s *oidc.Settings) { s.Client = "" }, "--oidc-client is missing"},
		"no secret":    {func(s *oidc.Settings) { s.SecretFile = "" }, "--oidc-secret-file is missing"},
		"no file":      {func(s *oidc.Settings) { s.SecretFile += "x" }, "--oidc-secret-file"},
		"folder":       {func(s *oidc.Settings) { s.SecretFile = filepath.Dir(s.SecretFile) }, "alone"},
		"device":       {func(s *oidc.Settings) { s.SecretFile = "/dev/zero" }, "alone"},
		"plain":        {func(s *oidc.Settings) { s.Issuer = "http://accounts.example" }, "does not begin with https"},
		"plain alike":  {func(s *oidc.Settings) { s.Issuer = "http://127.0.0.1.evil.example" }, "does not begin with https"},
		"user":         {func(s *oidc.Settings) { s.Issuer = "https://a:b@c" }, "is not an issuer"},
		"no URL":       {func(s *oidc.Settings) { s.Issuer = "accounts" }, "is not an issuer"},
		"group":        {func(s *oidc.Settings) { s.Groups = []string{"ml"} }, "GROUP=TEAM:ROLE"},
		"group role":   {func(s *oidc.Settings) { s.Groups = []string{"ml=vision:root"} }, "root"},
		"group none":   {func(s *oidc.Settings) { s.Groups = []string{"=vision:viewer"} }, "GROUP=TEAM:ROLE"},
		"long":         {func(s *oidc.Settings) { s.Client = strings.Repeat("a", 3000) }, "at most 2048"},
		"only a claim": {func(s *oidc.Settings) { *s = oidc.Settings{Claim: "upn"} }, "--oidc-issuer is missing"},
	} {
		s := settings(t, "https://accounts.example")
		c.change(&s)
		if _, err := oidc.New(s, time.Now, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestSignIn_ManyAtOnceAskTheProviderOnce(t *testing.T) {
	r := newRig(t, nil)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if _, _, err := r.by.Begin(t.Context(), back, "/"); err != nil {
				if p, is := errors.AsType[*client.Problem](err); !is || p.Fix == "" {
					t.Errorf("%v", err)
				}
			}
		})
	}
	all.Wait()
	r.at.Set(func(p *oidctest.Provider) {
		if p.Asked != 1 {
			t.Errorf("100 readers at once ask the provider %d times", p.Asked)
		}
	})
}
