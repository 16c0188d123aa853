//go:build !local

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"scrimp/internal/content/blob"
	"scrimp/internal/content/blob/scopedcreds"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/engine"
	"scrimp/internal/engine/aws"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/blobtest"
	"scrimp/internal/test/lane"
	"scrimp/internal/wire/api"
)

// lending is a real S3 server behind a gate that evaluates the session policies. The AWS driver
// gets the sessions from the STS of a test cloud.
type lending struct {
	t       *testing.T
	gate    *awstest.Gate
	cloud   *awstest.Server
	store   string
	lender  engine.Lender
	before  atomic.Pointer[func(http.ResponseWriter, *http.Request) http.ResponseWriter] // sees each request to the gate
	mu      sync.Mutex
	secrets []string
}

func newLending(t *testing.T) *lending {
	t.Helper()
	address, _ := blobtest.S3(t)
	_, query, _ := strings.Cut(address, "endpoint=")
	endpoint, _, _ := strings.Cut(query, "&")
	c, err := awstest.New(awstest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	l := &lending{t: t, cloud: c, gate: &awstest.Gate{STS: c, To: endpoint, Key: os.Getenv("AWS_ACCESS_KEY_ID"),
		Secret: os.Getenv("AWS_SECRET_ACCESS_KEY"), Region: "us-east-1"}}
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if before := l.before.Load(); before != nil {
			w = (*before)(w, r)
		}
		l.gate.ServeHTTP(w, r)
	}))
	t.Cleanup(gate.Close)
	l.store = "s3://scrimp-test?endpoint=" + gate.URL + "&prefix=team"
	for k, v := range map[string]string{"AWS_ACCESS_KEY_ID": c.Key, "AWS_SECRET_ACCESS_KEY": c.Secret, "AWS_SESSION_TOKEN": "",
		"AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent", "AWS_PROFILE": ""} {
		t.Setenv(k, v)
	}
	e, err := aws.Open(t.Context(), engine.Setting{Name: "aws", Kind: aws.Kind, Agents: "http://10.0.0.1:7077",
		With: engine.WithOf(setting.With{Region: "us-east-1", Endpoint: c.URL, Types: []string{"c7i.*"}, Store: l.store,
			JobRole: "arn:aws:iam::123456789012:role/scrimp-job"})}, engine.Host{})
	if err != nil {
		t.Fatal(err)
	}
	var ok bool
	if l.lender, ok = e.Driver.(engine.Lender); !ok {
		t.Fatal("the engine lends nothing")
	}
	return l
}

// of returns the credentials of a job, as the server would lend them.
func (l *lending) of(ctx context.Context, job string) (scopedcreds.Credentials, error) {
	store, _ := l.lender.Lends()
	prefix, ok := store.Of(l.store, job)
	if !ok {
		return scopedcreds.Credentials{}, errors.New("not within the store")
	}
	c, err := l.lender.Lend(ctx, prefix, job)
	l.mu.Lock()
	l.secrets = append(l.secrets, c.Key, c.Secret, c.Token)
	l.mu.Unlock()
	return c, err
}

// play runs an attempt of job-1 that renews its credentials ten times a second.
func (l *lending) play(epoch int, change func(*api.Assignment), more ...func(*fakeServer)) *rig {
	a := stored(l.t, "", epoch, "train", "TEST_EVERY=300")
	a.Checkpoint = api.Checkpoints{URL: l.store, Prefix: "jobs/job-1/", KeepLast: 2, Lent: true}
	change(&a)
	r := newRig(l.t, a)
	withStore(r)
	r.server.lends = func() (api.StoreCredentials, error) {
		c, err := l.of(l.t.Context(), "job-1")
		return api.StoreCredentials{Key: c.Key, Secret: c.Secret, Token: c.Token, Region: c.Region,
			Expires: time.Now().Add(5*time.Minute + 100*time.Millisecond)}, err
	}
	for _, f := range more {
		f(r.server)
	}
	r.start()
	return r
}

// An agent without its own credentials publishes to a bucket, prunes, and restores on another
// machine, with lent credentials. All its requests stay within the job's prefix and are allowed by
// the policy sent to STS. The program gets no credentials.
func TestLent_KeepsCheckpoints(t *testing.T) {
	lane.Component(t, "objects")
	l := newLending(t)
	first := l.play(1, func(*api.Assignment) {})
	saved := 0
	first.server.waitFor("four checkpoints", func(m api.Message) bool {
		if m.Saved != nil {
			saved++
		}
		return saved >= 4
	})
	first.hard() // no notice
	if err := first.end(); !errors.Is(err, errHard) {
		t.Fatal(err)
	}
	kept := told(first.server, savedIn)
	newest := kept[len(kept)-1]
	second := l.play(2, func(a *api.Assignment) { a.Env["TEST_STEPS"] = fmt.Sprint(newest.Step + 320) })
	if err := second.end(); err != nil {
		t.Fatal(err)
	}
	if s := told(second.server, started)[0]; s.Restored == "" || s.Restored < newest.Manifest {
		t.Errorf("began from %+v, want %s or newer", s, newest.Manifest)
	}
	// several multipart uploads, and a program that prints its whole environment
	third := l.play(3, func(a *api.Assignment) {
		a.Args, a.Command, a.Checkpoint.Dir = nil, "env; head -c 9000000 /dev/urandom > ckpt/state", "ckpt"
	})
	if err := third.end(); err != nil {
		t.Fatal(err)
	}
	if e := told(third.server, endedIn)[0]; e.Reason != api.EndCompleted || !e.Saved ||
		!strings.Contains(string(third.server.log), "SCRIMP_JOB=job-1") {
		t.Errorf("ended %+v; it printed %s", e, third.server.log)
	}
	l.within("team/jobs/job-1/")
	l.hidden(first, second, third)
}

// within checks that all requests to the bucket stayed within the job's prefix.
func (l *lending) within(prefix string) {
	l.t.Helper()
	const bucket = "arn:aws:s3:::scrimp-test"
	sessions, actions := map[string]bool{}, map[string]int{}
	for _, x := range l.gate.Seen() {
		sessions[x.Key] = true
		actions[x.Action]++
		of, list := strings.CutPrefix(x.Resource, bucket+"/")
		if x.Action == "s3:ListBucket" && x.Prefix != nil {
			of, list = *x.Prefix, true
		}
		if !x.Allowed || !list || !strings.HasPrefix(of, prefix) {
			l.t.Errorf("%s on %s, prefix %v: allowed is %v", x.Action, x.Resource, x.Prefix, x.Allowed)
		}
	}
	for _, a := range []string{"s3:ListBucket", "s3:GetObject", "s3:PutObject", "s3:DeleteObject"} {
		if actions[a] == 0 {
			l.t.Errorf("no %s in %v", a, actions)
		}
	}
	if len(sessions) < 4 {
		l.t.Errorf("%d sessions in %d requests: none was renewed", len(sessions), len(l.gate.Seen()))
	}
	l.t.Logf("%d requests in %d sessions: %v", len(l.gate.Seen()), len(sessions), actions)
}

// hidden checks that no output of programs and no agent's log contains a secret.
func (l *lending) hidden(rigs ...*rig) {
	l.t.Helper()
	for _, r := range rigs {
		text := string(r.server.log) + r.logs.String()
		if text == "" || len(l.secrets) == 0 {
			l.t.Error("nothing to look at")
		}
		if slices.ContainsFunc(l.secrets, func(s string) bool { return strings.Contains(text, s) }) ||
			strings.Contains(string(r.server.log), "AWS_ACCESS_KEY_ID") {
			l.t.Errorf("a secret is in %s", text)
		}
	}
}

// With lent credentials a job can read no other job's objects, neither by key nor in a list, and
// gets "missing" for its own missing key and "denied" for another job's.
func TestLent_DeniesOtherJobs(t *testing.T) {
	lane.Component(t, "objects")
	l := newLending(t)
	open := func(job, prefix string) (*checkpoint.Store, error) {
		b, err := blob.OpenLent(t.Context(), l.store, blob.Loan{Prefix: prefix,
			Fetch: func(ctx context.Context) (scopedcreds.Credentials, error) { return l.of(ctx, job) }})
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { _ = b.Close() })
		if _, err := b.Attributes(t.Context(), prefix+"none"); !blob.Missing(err) {
			t.Errorf("a key that is missing: %v", err)
		}
		for _, key := range []string{"jobs/ab/claims/1", "jobs/a2/claims/1", "claims/1"} {
			if err := b.WriteAll(t.Context(), key, nil, nil); err == nil {
				t.Errorf("%s writes %s", job, key)
			}
			if _, err := b.ReadAll(t.Context(), key); err == nil || blob.Missing(err) {
				t.Errorf("%s reads %s: %v", job, key, err)
			}
			if err := b.Delete(t.Context(), key); err == nil || blob.Missing(err) {
				t.Errorf("%s deletes %s: %v", job, key, err)
			}
		}
		return checkpoint.Open(b, prefix), nil
	}
	s, err := open("a", "jobs/a/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), 1, "a.1"); err != nil {
		t.Error(err)
	}
	for _, prefix := range []string{"jobs/ab/", "jobs/b/", "jobs/"} {
		if _, err := open("a", prefix); err == nil || !strings.Contains(err.Error(), "access denied") ||
			!strings.Contains(err.Error(), "job_role") {
			t.Errorf("a opens %s: %v", prefix, err)
		}
	}
}
