//go:build !local

package workblob

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	gcblob "gocloud.dev/blob"

	"scrimp/internal/content/blob"
	"scrimp/internal/content/blob/scopedcreds"
	"scrimp/internal/engine"
	"scrimp/internal/engine/aws"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/server/disk"
	"scrimp/internal/server/workdir"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/blobtest"
	"scrimp/internal/test/must"
)

// rig is a store of work folders, and a real S3 server behind a gate that evaluates session policies. The AWS driver
// gets the sessions from the STS of a test cloud.
type rig struct {
	t       *testing.T
	data    string // the server's folder
	objects string // the folder in which the S3 server keeps the bucket's objects as files
	store   string
	cloud   *awstest.Server
	gate    *awstest.Gate
	lender  engine.Lender
	folders *workdir.Store
	log     *logged

	mu     sync.Mutex
	before func(w http.ResponseWriter, r *http.Request) (answered bool) // called for each request to the gate; may be nil
}

// logged collects log output.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newRig(t *testing.T) *rig {
	t.Helper()
	address, dir := blobtest.S3(t)
	_, query, _ := strings.Cut(address, "endpoint=")
	endpoint, _, _ := strings.Cut(query, "&")
	c, err := awstest.New(awstest.Options{})
	must.Do(t, err)
	t.Cleanup(c.Close)
	r := &rig{t: t, data: t.TempDir(), objects: dir, cloud: c, log: &logged{}, gate: &awstest.Gate{STS: c, To: endpoint,
		Key: os.Getenv("AWS_ACCESS_KEY_ID"), Secret: os.Getenv("AWS_SECRET_ACCESS_KEY"), Region: "us-east-1"}}
	front := httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(front.Close)
	r.store = "s3://scrimp-test?endpoint=" + front.URL + "&prefix=team"
	for k, v := range map[string]string{"AWS_ACCESS_KEY_ID": c.Key, "AWS_SECRET_ACCESS_KEY": c.Secret, "AWS_SESSION_TOKEN": "",
		"AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent", "AWS_PROFILE": ""} {
		t.Setenv(k, v)
	}
	e, err := aws.Open(t.Context(), engine.Setting{Name: "aws", Kind: aws.Kind, Agents: "http://10.0.0.1:7077",
		With: engine.WithOf(setting.With{Region: "us-east-1", Endpoint: c.URL, Types: []string{"c7i.*"}, Store: r.store,
			JobRole: "arn:aws:iam::123456789012:role/scrimp-job"})}, engine.Host{})
	must.Do(t, err)
	var ok bool
	if r.lender, ok = e.Driver.(engine.Lender); !ok {
		t.Fatal("the engine lends nothing")
	}
	r.folders = newFolders(r.data)
	return r
}

// serve forwards a request to the gate.
func (r *rig) serve(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	before := r.before
	r.mu.Unlock()
	if before == nil || !before(w, q) {
		r.gate.ServeHTTP(w, q)
	}
}

// on calls f for each request before the gate; nil ends that.
func (r *rig) on(f func(w http.ResponseWriter, r *http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.before = f
}

// away answers requests like a failing bucket.
func away(w http.ResponseWriter, _ *http.Request) bool {
	w.WriteHeader(http.StatusNotImplemented) // a status that the SDK does not retry
	return true
}

// find returns the lender for a job, as the server does.
func (r *rig) find(address, job string) (engine.Lender, string) {
	if store, _ := r.lender.Lends(); true {
		if prefix, ok := store.Of(address, job); ok {
			return r.lender, prefix
		}
	}
	return nil, ""
}

// server starts a server, which runs until kill or the end of the test.
func (r *rig) server() (b *Blobs, kill func()) {
	b = New(r.folders, r.find, slog.New(slog.NewTextHandler(r.log, nil)))
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { defer close(over); b.Run(ctx) }()
	kill = func() { cancel(); <-over }
	r.t.Cleanup(kill)
	return b, kill
}

// folder gives a job a work folder of n bytes and a little more.
func (r *rig) folder(job string, n int) {
	r.t.Helper()
	dir, chance := r.t.TempDir(), rand.New(rand.NewPCG(1, uint64(n)))
	text := make([]byte, n)
	for i := range text {
		text[i] = byte(chance.Uint32())
	}
	err := errors.Join(os.WriteFile(filepath.Join(dir, "data"), text, 0o600),
		os.WriteFile(filepath.Join(dir, "train.sh"), []byte("#!/bin/sh\n"), 0o700), os.Symlink("data", filepath.Join(dir, "link")))
	if err == nil {
		err = r.folders.Copy(job, dir, r.data)
	}
	must.Do(r.t, err)
}

// sent returns the folder as the server sends it.
func (r *rig) sent(job string) []byte {
	r.t.Helper()
	f, err := r.folders.Tree(job)
	must.Do(r.t, err)
	var b bytes.Buffer
	if _, err := f.Write(r.t.Context(), &b, 0); err != nil {
		r.t.Fatal(err)
	}
	return b.Bytes()
}

// bucket opens the job's store with the credentials of the job lends.
func (r *rig) bucket(lends, prefix string) (*gcblob.Bucket, error) {
	b, err := blob.OpenLent(r.t.Context(), r.store, blob.Loan{Prefix: prefix,
		Fetch: func(ctx context.Context) (scopedcreds.Credentials, error) {
			return r.lender.Lend(ctx, "team/jobs/"+lends, lends)
		}})
	if err == nil {
		r.t.Cleanup(func() { _ = b.Close() })
	}
	return b, err
}

// file returns the path of a job's object on the S3 server.
func (r *rig) file(job, key string) string {
	return filepath.Join(r.objects, "team", "jobs", job, filepath.FromSlash(key))
}

// did counts the requests to the gate after the given number of them, and checks that all stay within a prefix.
func (r *rig) did(since int, prefix string) (actions map[string]int) {
	r.t.Helper()
	actions = map[string]int{}
	for _, x := range r.gate.Seen()[since:] {
		actions[x.Action]++
		of, is := strings.CutPrefix(x.Resource, "arn:aws:s3:::scrimp-test/")
		if x.Action == "s3:ListBucket" && x.Prefix != nil {
			of, is = *x.Prefix, true
		}
		if !x.Allowed || !is || !strings.HasPrefix(of, prefix) {
			r.t.Errorf("%s on %s, prefix %v: allowed is %v", x.Action, x.Resource, x.Prefix, x.Allowed)
		}
	}
	return actions
}

// hidden checks that the log has no session credentials.
func (r *rig) hidden() {
	r.t.Helper()
	text, keys := r.log.String(), map[string]bool{}
	for _, x := range r.gate.Seen() {
		keys[x.Key] = true
	}
	for _, secret := range append(slices.Collect(func(yield func(string) bool) {
		for k := range keys {
			if !yield(k) {
				return
			}
		}
	}), r.cloud.Secret, r.cloud.Key) {
		if strings.Contains(text, secret) {
			r.t.Errorf("%s is in the log: %s", secret, text)
		}
	}
}

func newFolders(data string) *workdir.Store { return workdir.New(data, disk.Of(data)) }
