package scopedcreds_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"scrimp/internal/content/blob/scopedcreds"
	"scrimp/internal/test/must"
)

func declared(t *testing.T, address string) scopedcreds.Store {
	t.Helper()
	s, err := scopedcreds.Declared(address, "eu-west-1")
	must.Do(t, err)
	return s
}

func TestOf_ReturnsTheJobsPrefix(t *testing.T) {
	const own = "http://10.0.0.1:9000"
	for _, c := range []struct{ declared, named, want string }{
		{"s3://ckpt", "s3://ckpt", "jobs/lm-1"},
		{"s3://ckpt", "s3://ckpt?region=eu-west-1&prefix=/a/b/", "a/b/jobs/lm-1"},
		{"s3://ckpt?prefix=team", "s3://ckpt?prefix=team", "team/jobs/lm-1"},
		{"s3://ckpt?prefix=team/", "s3://ckpt?prefix=team/x&region=eu-west-1", "team/x/jobs/lm-1"},
		{"s3://ckpt?endpoint=" + own, "s3://ckpt?endpoint=" + own + "&region=eu-west-1", "jobs/lm-1"},
		// None of these is below it.
		{"s3://ckpt?prefix=team", "s3://ckpt", ""},
		{"s3://ckpt?prefix=team", "s3://ckpt?prefix=teams", ""},
		{"s3://ckpt?prefix=team", "s3://ckpt?prefix=other", ""},
		{"s3://ckpt", "s3://other", ""},
		{"s3://ckpt", "s3://ckpt?region=us-east-1", ""},
		{"s3://ckpt", "s3://ckpt?endpoint=" + own, ""}, // whoever listens there would see the token
		{"s3://ckpt", "s3://ckpt?profile=mine", ""},
		{"s3://ckpt", "s3://user@ckpt", ""},
		{"s3://ckpt", "gs://ckpt", ""},
		{"s3://ckpt", "", ""},
		// These prefixes contain a policy pattern, or are within a job's own.
		{"s3://ckpt?prefix=team", "s3://ckpt?prefix=team/*", ""},
		{"s3://ckpt?prefix=team", "s3://ckpt?prefix=team/%3F", ""},
		{"s3://ckpt?prefix=team", "s3://ckpt?prefix=team/$%7Baws:username%7D", ""},
		{"s3://ckpt?prefix=team", "s3://ckpt?prefix=team/../other", ""},
		{"s3://ckpt?prefix=team", "s3://ckpt?prefix=team//x", ""},
		{"s3://ckpt", "s3://ckpt?prefix=jobs/lm-2", ""},
		{"s3://ckpt?prefix=team", "s3://ckpt?prefix=team/jobs/lm-2/x", ""},
		{"s3://ckpt", "s3://ckpt?prefix=" + strings.Repeat("x", 600), ""},
	} {
		got, ok := declared(t, c.declared).Of(c.named, "lm-1")
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s of %s: %q, %v; want %q", c.named, c.declared, got, ok, c.want)
		}
	}
	for _, job := range []string{"", "a/b", "*", "..", "a b"} {
		if got, ok := declared(t, "s3://ckpt").Of("s3://ckpt", job); ok {
			t.Errorf("job %q has %q", job, got)
		}
	}
}

// For any stores of two jobs, neither job's prefix equals or contains the other's, even if one job is called jobs.
func TestOf_SeparatesJobs(t *testing.T) {
	stores := []string{"", "a", "a/b", "b", "jobs", "jobs/a", "a/jobs", "a/jobs/b", "jobs/jobs", "a.jobs", "lm"}
	jobs := []string{"a", "b", "ab", "jobs", "a.1"}
	type owner struct{ store, job string }
	owners, prefixes := []owner{}, []string{}
	for _, s := range stores {
		for _, j := range jobs {
			if p, ok := declared(t, "s3://ckpt").Of("s3://ckpt?prefix="+s, j); ok {
				owners, prefixes = append(owners, owner{s, j}), append(prefixes, p+"/")
			}
		}
	}
	if len(prefixes) < 20 {
		t.Fatalf("too few to say anything: %v", prefixes)
	}
	for i, p := range prefixes {
		for k, q := range prefixes {
			if i != k && strings.HasPrefix(q, p) {
				t.Errorf("%v has %s, within which %v has %s", owners[i], p, owners[k], q)
			}
		}
	}
}

func TestDeclared_RefusesAnInvalidStoreWithAFix(t *testing.T) {
	for address, fix := range map[string]string{
		"ckpt": "s3://BUCKET", "gs://ckpt": "s3://BUCKET", "s3://": "s3://BUCKET", "s3://me:x@ckpt": "s3://BUCKET",
		"s3://ckpt/team": "?prefix=team", "s3://ckpt?profile=x": "region, endpoint and prefix",
		"s3://ckpt?prefix=a&prefix=b": "once each", "s3://ckpt?prefix=a*": "letters", "s3://ckpt?prefix=a/jobs/b": "above it",
	} {
		if s, err := scopedcreds.Declared(address, "x"); err == nil || !strings.Contains(err.Error(), fix) {
			t.Errorf("%s: %+v, %v; want %q", address, s, err, fix)
		}
	}
	s := declared(t, "s3://ckpt?prefix=team")
	for _, a := range s.Addresses() {
		if _, ok := s.Of(a, "lm-1"); !ok {
			t.Errorf("%s is not the store itself", a)
		}
	}
	if got := fmt.Sprint(s.Addresses()); got != "[s3://ckpt?prefix=team&region=eu-west-1 s3://ckpt?prefix=team]" {
		t.Error(got)
	}
}

func TestCredentials_AreNeverPrinted(t *testing.T) {
	c := scopedcreds.Credentials{Key: "ASIAKEY", Secret: "hidden", Token: "hushed", Expires: time.Unix(0, 0)}
	var b strings.Builder
	for _, log := range []*slog.Logger{slog.New(slog.NewTextHandler(&b, nil)), slog.New(slog.NewJSONHandler(&b, nil))} {
		log.Info("lent", "credentials", c, "pointer", &c, "within", []scopedcreds.Credentials{c})
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&b, verb+verb+verb, c, &c, struct{ C scopedcreds.Credentials }{c})
	}
	text, err := json.Marshal(c)
	fmt.Fprint(&b, string(text), err)
	for _, secret := range []string{c.Key, c.Secret, c.Token, fmt.Sprintf("%x", c.Secret)} {
		if strings.Contains(b.String(), secret) {
			t.Errorf("%q in %s", secret, b.String())
		}
	}
	if !strings.Contains(b.String(), "credentials until 1970-01-01T00:00:00Z") {
		t.Error(b.String())
	}
}
