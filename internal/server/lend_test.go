//go:build !local

package server

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
	"scrimp/internal/engine/aws"
	"scrimp/internal/engine/aws/policy"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// lendsToo is a provider whose machines are names only, and which lends credentials as an engine of AWS does.
type lendsToo struct {
	*rents
	engine.Lender
}

// lendingWorld returns a shared server with an engine that lends for a bucket through the STS of a test cloud.
func lendingWorld(t *testing.T) (*world, *awstest.Server) {
	t.Helper()
	return lendingWorldOf(t, func(*awstest.Server) string { return "s3://ckpt?prefix=team" })
}

// lendingWorldOf is lendingWorld for the bucket that store returns.
func lendingWorldOf(t *testing.T, store func(*awstest.Server) string) (*world, *awstest.Server) {
	t.Helper()
	c, err := awstest.New(awstest.Options{})
	must.Do(t, err)
	t.Cleanup(c.Close)
	address := store(c)
	for k, v := range map[string]string{"AWS_ACCESS_KEY_ID": c.Key, "AWS_SECRET_ACCESS_KEY": c.Secret, "AWS_SESSION_TOKEN": "",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/nonexistent",
		"AWS_SHARED_CREDENTIALS_FILE": "/nonexistent", "AWS_PROFILE": ""} {
		t.Setenv(k, v)
	}
	e, err := aws.Open(t.Context(), engine.Setting{Name: "aws", Kind: aws.Kind, Agents: "http://10.0.0.1:7077",
		With: engine.WithOf(setting.With{Region: "us-east-1", Endpoint: c.URL, Types: []string{"c7i.*"},
			Store: address, JobRole: "arn:aws:iam::123456789012:role/scrimp-job"})}, engine.Host{})
	must.Do(t, err)
	l, ok := e.Driver.(engine.Lender)
	if !ok {
		t.Fatal("the engine lends nothing")
	}
	return newWorldOf(t, lendsToo{&rents{}, l}, func(o *Options) { o.Running, o.Rate = 16, 1e6 }), c
}

// runs submits a job as a user, and returns its attempt once it has a machine.
func (w *world) runs(token, name, body string) (attempt string) {
	w.t.Helper()
	if rec, p := w.ask("POST", "/v1/jobs", token, body); rec.Code != http.StatusOK {
		w.t.Fatalf("%d %+v", rec.Code, p)
	}
	w.until(func(m *core.Machine) bool {
		j, _ := m.Job(name)
		if a := j.Attempt(); a != nil && a.Live() && a.Task() == core.Assigned {
			attempt = a.ID()
		}
		return attempt != ""
	})
	return attempt
}

// fetch requests credentials.
func (w *world) fetch(token, query string) (int, api.StoreCredentials, api.Problem, http.Header) {
	w.t.Helper()
	rec, p := w.ask("GET", "/v1/agent/credentials"+query, token, nil)
	var c api.StoreCredentials
	if rec.Code == http.StatusOK {
		must.Do(w.t, json.Unmarshal(rec.Body.Bytes(), &c))
	}
	return rec.Code, c, p, rec.Header()
}

// Each attempt gets credentials for its own job's prefix, whatever else the request says. Nobody else gets any, and
// neither does a job with another store. The server neither stores nor prints them.
func TestCredentials_AreForTheJobsOwnPrefix(t *testing.T) {
	lane.Component(t, "objects")
	w, cloud := lendingWorld(t)
	w.must("PUT", "/v1/teams/red", api.SetTeam{}, nil)
	ann := w.user("ann", identity.Grant{Team: "red", Role: identity.Submitter})
	bob := w.user("bob", identity.Grant{Team: "red", Role: identity.Submitter})
	token := func(attempt string) string { return w.gate.Tickets.For(auth.AttemptTicket, attempt) }
	var secrets []string
	attempts := map[string]string{}
	for _, j := range []struct{ user, name, store, prefix string }{
		{ann, "a", "s3://ckpt?prefix=team", "team/jobs/a"},
		{bob, "b", "s3://ckpt?prefix=team/x&region=us-east-1", "team/x/jobs/b"},
		{auth.OwnerName, "pattern", "s3://ckpt?prefix=team/*&region=us-east-1", ""},
		{auth.OwnerName, "within", "s3://ckpt?prefix=team/jobs/a&region=us-east-1", ""},
		{auth.OwnerName, "elsewhere", "s3://other?region=us-east-1", ""},
		{ann, "own", "", ""},
	} {
		attempt := w.runs(j.user, j.name, keeping(j.name, j.store))
		attempts[j.name] = attempt
		if as := w.take(attempt); as.Checkpoint.Lent != (j.prefix != "") {
			t.Errorf("%s: lent is %v", j.name, as.Checkpoint.Lent)
		}
		code, c, p, head := w.fetch(token(attempt), "?job=other&prefix=team&attempt="+attempt)
		if j.prefix == "" {
			if code != http.StatusNotFound || p.Fix == "" {
				t.Errorf("%s: %d %+v", j.name, code, p)
			}
			continue
		}
		x, known := cloud.Session(c.Key, c.Token)
		var sent policy.Document
		if err := json.Unmarshal([]byte(x.Policy), &sent); code != http.StatusOK || !known || err != nil {
			t.Fatalf("%s: %d %+v, %v, %v", j.name, code, p, known, err)
		}
		if want := policy.Prefix(policy.Scope{Bucket: "ckpt"}, j.prefix); !reflect.DeepEqual(sent, want) {
			t.Errorf("%s: sent %s, want %s", j.name, sent, want)
		}
		if head.Get("Cache-Control") != "no-store" || c.Region != "us-east-1" || !c.Expires.Equal(x.Until) {
			t.Errorf("%s: %v, %s until %v", j.name, head, c.Region, c.Expires)
		}
		secrets = append(secrets, c.Key, c.Secret, c.Token)
	}
	if rec, p := w.ask("POST", "/v1/jobs", ann, keeping("c", "s3://other?region=us-east-1")); rec.Code != 422 {
		t.Errorf("a store that nobody declares: %d %+v", rec.Code, p)
	}
	attempt := attempts["a"]
	asked := cloud.Calls("AssumeRole")
	for name, other := range map[string]string{"nobody": "", "a user": ann, "a bootstrap": w.gate.Tickets.For(auth.BootstrapTicket, attempt),
		"a forged attempt": token(attempt) + "0", "another's attempt": token(attempt + "9")} {
		if code, c, p, _ := w.fetch(other, ""); code/100 != 4 || code == 404 || c.Key != "" {
			t.Errorf("%s: %d %+v", name, code, p)
		}
	}
	w.must("POST", "/v1/jobs/a/end", api.End{}, nil)
	w.until(func(m *core.Machine) bool { _, ok := m.Attempt(attempt); return !ok })
	if code, _, p, _ := w.fetch(token(attempt), ""); code != http.StatusGone {
		t.Errorf("an attempt that is over: %d %+v", code, p)
	}
	if n := cloud.Calls("AssumeRole") - asked; n != 0 {
		t.Errorf("the role was assumed %d times for them", n)
	}
	w.keptNowhere(secrets)
}

// keptNowhere checks that none of the texts is in the log, in a file of the data folder including the database, or
// in what the server shows.
func (w *world) keptNowhere(secrets []string) {
	w.t.Helper()
	if len(secrets) < 6 {
		w.t.Fatalf("%d secrets", len(secrets))
	}
	look := func(where string, text []byte) {
		for _, s := range secrets {
			if s == "" || bytes.Contains(text, []byte(s)) {
				w.t.Errorf("a secret is in %s", where)
			}
		}
	}
	look("the log", w.log.Bytes())
	events := 0
	for r := range w.eachRecord(w.t) {
		events++
		look("an event", r.Event)
	}
	files := 0
	err := filepath.WalkDir(w.opts.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		look(path, text)
		return err
	})
	if err != nil || files == 0 || events == 0 {
		w.t.Fatalf("%d files, %d events, %v", files, events, err)
	}
	for _, path := range []string{"/v1/audit", "/v1/jobs", "/v1/jobs/b", "/v1/jobs/b/spec", "/v1/jobs/b/explain", "/metrics"} {
		rec, _ := w.ask("GET", path, auth.OwnerName, nil)
		if rec.Code != http.StatusOK {
			w.t.Errorf("%s: %d", path, rec.Code)
		}
		look(path, rec.Body.Bytes())
	}
}

// An agent learns which failures a user must fix and which will pass; none ends its attempt.
func TestCredentials_RefusalNamesTheReason(t *testing.T) {
	lane.Component(t, "objects")
	w, cloud := lendingWorld(t)
	attempt := w.runs(auth.OwnerName, "a", keeping("a", "s3://ckpt?prefix=team"))
	for _, c := range []struct {
		code   string
		status int
		says   string
	}{
		{"AccessDenied", http.StatusBadGateway, "trust policy"},
		{"Throttling", http.StatusTooManyRequests, "Throttling"},
		{"InternalFailure", http.StatusServiceUnavailable, "InternalFailure"},
	} {
		if err := cloud.Inject(awstest.Fault{Action: "AssumeRole", Kind: "error", Code: c.code, Status: 400}); err != nil {
			t.Fatal(err)
		}
		code, _, p, head := w.fetch(w.gate.Tickets.For(auth.AttemptTicket, attempt), "")
		cloud.Clear()
		if code != c.status || !strings.Contains(p.Detail, c.says) || (head.Get("Retry-After") != "") != (code == 429) {
			t.Errorf("%s: %d %+v", c.code, code, p)
		}
	}
	var j client.Job
	if w.must("GET", "/v1/jobs/a", nil, &j); j.State == "failed" {
		t.Errorf("%+v", j)
	}
}
