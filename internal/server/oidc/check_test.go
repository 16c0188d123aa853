package oidc_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"scrimp/internal/server/oidc"
	"scrimp/internal/test/must"
	"scrimp/internal/test/oidctest"
)

// A provider with which nobody can ever sign in is an error at the start, with the flag and the fix. One that does not
// answer now is not: jobs go on without it.
func TestCheck_RefusesProvidersThatCannotWork(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*oidctest.Provider)
		want   string // "": none
	}{
		"works":        {func(*oidctest.Provider) {}, ""},
		"down":         {func(p *oidctest.Provider) { p.Down = true }, ""},
		"other issuer": {func(p *oidctest.Provider) { p.Issuer = "https://other.example" }, "exactly as the provider gives it"},
		"plain token":  {func(p *oidctest.Provider) { p.Token = "http://192.0.2.1/token" }, "must begin with https"},
		"no method":    {func(p *oidctest.Provider) { p.Methods = []string{"private_key_jwt"} }, "neither in a header"},
	} {
		r := newRig(t, nil)
		r.at.Set(c.change)
		err := r.by.Check(t.Context())
		if (err == nil) != (c.want == "") || err != nil && (!strings.Contains(err.Error(), c.want) ||
			!strings.HasPrefix(err.Error(), "--oidc-issuer "+r.at.URL)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if warned := strings.Contains(r.log.String(), "--oidc-issuer"); warned != (name == "down") {
			t.Errorf("%s: the log is %q", name, &r.log)
		}
	}
	web := httptest.NewServer(http.NotFoundHandler())
	untrusted := httptest.NewTLSServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	gone := httptest.NewServer(nil)
	gone.Close()
	defer web.Close()
	defer untrusted.Close()
	for issuer, want := range map[string]string{web.URL: "404", untrusted.URL: "install the certificate", gone.URL: ""} {
		p, err := oidc.New(settings(t, issuer), time.Now, slog.New(slog.DiscardHandler))
		must.Do(t, err)
		if err := p.Check(t.Context()); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", issuer, err, want)
		}
	}
	var none *oidc.Provider
	if err := none.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNew_RefusesSecretThatOthersCanRead(t *testing.T) {
	s := settings(t, "https://accounts.example")
	for mode, fine := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: true, 0o644: false, 0o606: false, 0o602: false} {
		if err := os.Chmod(s.SecretFile, mode); err != nil {
			t.Fatal(err)
		}
		_, err := oidc.New(s, time.Now, nil)
		if (err == nil) != fine || err != nil && !strings.Contains(err.Error(), "chmod 600 "+s.SecretFile) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	must.Do(t, os.WriteFile(s.SecretFile, nil, 0o600))
	must.Do(t, os.Chmod(s.SecretFile, 0o600))
	if _, err := oidc.New(s, time.Now, nil); err == nil || !strings.Contains(err.Error(), "--oidc-secret-file") {
		t.Errorf("an empty file: %v", err)
	}
}
