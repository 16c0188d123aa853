//go:build !local

package aws

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"scrimp/internal/content/blob/scopedcreds"
	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/policy"
	"scrimp/internal/engine/aws/setting"
	"scrimp/internal/test/awstest"
	"scrimp/internal/test/awstest/iam"
	"scrimp/internal/test/blobtest"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

const jobRole = "arn:aws:iam::123456789012:role/scrimp-job"

// lends returns a site whose engine declares a store.
func lends(t *testing.T) *site {
	t.Helper()
	s := newSite(t, awstest.Options{})
	s.with.Store, s.with.JobRole = "s3://ckpt?prefix=team", jobRole
	return s
}

// gated returns the address of a real S3 server behind a gate that evaluates the policies of a site's sessions.
func gated(t *testing.T, s *site) (string, *awstest.Gate) {
	t.Helper()
	address, _ := blobtest.S3(t)
	_, query, _ := strings.Cut(address, "endpoint=")
	endpoint, _, _ := strings.Cut(query, "&")
	g := &awstest.Gate{STS: s.Server, To: endpoint, Key: os.Getenv("AWS_ACCESS_KEY_ID"),
		Secret: os.Getenv("AWS_SECRET_ACCESS_KEY"), Region: "us-east-1"}
	h := httptest.NewServer(g)
	t.Cleanup(h.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", s.Key)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s.Secret)
	return "s3://scrimp-test?endpoint=" + h.URL + "&prefix=team", g
}

// STS gets a policy for the job's prefix, the shortest lifetime, and the job's name. The policy is within STS's
// limits and reaches no other job's keys.
func TestLend_AssumesTheRoleForOneJobsPrefix(t *testing.T) {
	s := lends(t)
	d := s.driver()
	store, ok := d.Lends()
	if !ok || store.Region != "us-east-1" {
		t.Fatalf("%+v, %v", store, ok)
	}
	for _, c := range []struct{ address, job, prefix, name string }{
		{"s3://ckpt?prefix=team", "lm-1", "team/jobs/lm-1", "lm-1"},
		{"s3://ckpt?prefix=team/x", "j", "team/x/jobs/j", "j-job"},
		{"s3://ckpt?prefix=team/" + strings.Repeat("p", 507), strings.Repeat("n", 255), "", ""},
	} {
		prefix, ok := store.Of(c.address, c.job)
		if !ok || c.prefix != "" && prefix != c.prefix {
			t.Fatalf("%s: %q, %v", c.address, prefix, ok)
		}
		begin := time.Now()
		got, err := d.Lend(t.Context(), prefix, c.job)
		must.Do(t, err)
		if span := got.Expires.Sub(begin); span < 14*time.Minute || span > 16*time.Minute || got.Region != "us-east-1" {
			t.Errorf("%v, for %v", got, span)
		}
		x, known := s.Session(got.Key, got.Token)
		if !known || x.Role != jobRole || c.name != "" && x.Name != c.name || len(x.Name) > 64 {
			t.Errorf("%+v, %v", x, known)
		}
		want := policy.Prefix(policy.Scope{Account: "123456789012", Bucket: "ckpt"}, prefix)
		var sent policy.Document
		if err := json.Unmarshal([]byte(x.Policy), &sent); err != nil || !reflect.DeepEqual(sent, want) {
			t.Errorf("sent %s, %v; want %s", x.Policy, err, want)
		}
		if len(x.Policy) > 2048 { // STS's limit for a session policy
			t.Errorf("%d characters", len(x.Policy))
		}
		reaches(t, x, prefix)
	}
}

// reaches checks what a session may do: everything below its prefix, and nothing else.
func reaches(t *testing.T, x iam.Session, prefix string) {
	t.Helper()
	const bucket = "arn:aws:s3:::ckpt"
	for key, want := range map[string]bool{prefix + "/claims/1": true, prefix + "/objects/a/b": true, prefix: false,
		prefix + "0/claims/1": false, "team/jobs/other/claims/1": false, "claims/1": false} {
		for _, action := range []string{"s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:AbortMultipartUpload"} {
			if x.Allows(action, bucket+"/"+key, nil) != want {
				t.Errorf("%s on %s: want %v", action, key, want)
			}
		}
	}
	for list, want := range map[string]bool{prefix + "/": true, prefix + "/claims/": true, prefix: false, "": false,
		"team/jobs/other/": false} {
		if x.Allows("s3:ListBucket", bucket, map[string]string{"s3:prefix": list}) != want {
			t.Errorf("list %q: want %v", list, want)
		}
	}
	if x.Allows("s3:ListBucket", bucket, nil) || x.Allows("s3:PutBucketPolicy", bucket, nil) ||
		x.Allows("s3:GetObject", "arn:aws:s3:::other/"+prefix+"/x", nil) {
		t.Error("it reaches beyond the prefix")
	}
}

func TestLend_DistinguishesItsErrors(t *testing.T) {
	s := lends(t)
	d := s.driver()
	if _, err := d.connected(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		fault     awstest.Fault
		says      string
		denied    bool
		throttled bool
	}{
		{awstest.Fault{Kind: "error", Code: "AccessDenied", Status: 403, Message: "not authorized"}, "trust policy", true, false},
		{awstest.Fault{Kind: "error", Code: "RegionDisabledException", Status: 403}, jobRole, true, false},
		{awstest.Fault{Kind: "error", Code: "Throttling", Status: 400}, "Throttling", false, true},
		{awstest.Fault{Kind: "error", Code: "ExpiredToken", Status: 403}, "renew them", false, false},
		{awstest.Fault{Kind: "error", Code: "InternalFailure", Status: 500}, "InternalFailure", false, false},
		{awstest.Fault{Kind: "cut"}, "assume the role", false, false},
	} {
		c.fault.Action = "AssumeRole"
		if err := s.Inject(c.fault); err != nil {
			t.Fatal(err)
		}
		got, err := d.Lend(t.Context(), "team/jobs/lm-1", "lm-1")
		s.Clear()
		if err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, scopedcreds.ErrDenied) != c.denied ||
			errors.Is(err, engine.ErrThrottled) != c.throttled || got.Key != "" {
			t.Errorf("%+v: %v, %v", c.fault, got, err)
		}
	}
	must.Do(t, s.Inject(awstest.Fault{Action: "AssumeRole", Kind: "throttle", Count: 1}))
	if _, err := d.Lend(t.Context(), "team/jobs/lm-1", "lm-1"); err != nil {
		t.Errorf("throttled once: %v", err)
	}
}

func TestExamine_TriesRoleAndBucketAndPrintsThePolicy(t *testing.T) {
	lane.Component(t, "objects")
	s, gate := lends(t), (*awstest.Gate)(nil)
	s.with.Store, gate = gated(t, s)
	find := func() (store, rights engine.Finding) {
		for _, f := range s.driver().Examine(t.Context()) {
			switch f.Name {
			case "store":
				store = f
			case "rights":
				rights = f
			}
		}
		return store, rights
	}
	store, rights := find()
	if !store.OK || !strings.Contains(store.Text, jobRole) || s.Calls("AssumeRole") != 1 {
		t.Errorf("%+v", store)
	}
	did := map[string]int{}
	for _, x := range gate.Seen() {
		if did[x.Action]++; !x.Allowed || x.Prefix == nil && !strings.Contains(x.Resource, "/team/jobs/scrimp-doctor/") {
			t.Errorf("%+v", x)
		}
	}
	if did["s3:PutObject"] != 2 || did["s3:GetObject"] == 0 || did["s3:DeleteObject"] != 1 {
		t.Errorf("%v", did)
	}
	s.with.Store = strings.Replace(s.with.Store, "scrimp-test", "scrimp-none", 1)
	if store, _ := find(); store.OK || !strings.Contains(store.Text, "scrimp-none") {
		t.Errorf("a bucket that is not there: %+v", store)
	}
	s.with.Store = strings.Replace(s.with.Store, "scrimp-none", "scrimp-test", 1)
	for _, want := range []string{"arn:aws:s3:::scrimp-test/*", `"sts:AssumeRole"`, jobRole, "s3:PutObject"} {
		if !strings.Contains(rights.Text, want) {
			t.Errorf("no %s in %s", want, rights.Text)
		}
	}
	must.Do(t, s.Inject(awstest.Fault{Action: "AssumeRole", Kind: "error", Code: "AccessDenied", Status: 403}))
	if store, _ = find(); store.OK || !strings.Contains(store.Text, "trust policy") {
		t.Errorf("%+v", store)
	}
	s.Clear()
	s.with.Store, s.with.JobRole = "", ""
	store, rights = find()
	if store.Name != "" || strings.Contains(rights.Text, "s3:") || strings.Contains(rights.Text, "sts:") {
		t.Errorf("without a store: %+v, %s", store, rights.Text)
	}
	if _, ok := s.driver().Lends(); ok {
		t.Error("it lends without a store")
	}
}

func TestSettings_RefuseAnInvalidStoreOrRole(t *testing.T) {
	lane.Component(t, "whole")
	for _, c := range []struct{ store, role, says string }{
		{"s3://ckpt", "", "job_role"}, {"", jobRole, "store: s3://"}, {"s3://ckpt", "scrimp-job", "arn:aws:iam"},
		{"s3://ckpt", "arn:aws:iam::1:role/x", "arn:aws:iam"}, {"s3://ckpt/team", jobRole, "?prefix=team"},
		{"s3://ckpt?prefix=*", jobRole, "letters"}, {"file:///tmp", jobRole, "s3://BUCKET"},
	} {
		_, err := Open(t.Context(), engine.Setting{Name: "aws", Kind: Kind, Agents: "http://10.0.0.1:7077",
			With: engine.WithOf(setting.With{Region: "us-east-1", Types: []string{"c7i.*"}, Store: c.store, JobRole: c.role})},
			engine.Host{})
		if err == nil || !strings.Contains(err.Error(), "with: ") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if got := setting.RoleOf("arn:aws-cn:iam::123456789012:role/a/b/scrimp-job"); got.JobRole != "a/b/scrimp-job" ||
		got.Partition != "aws-cn" || got.Account != "123456789012" {
		t.Errorf("%+v", got)
	}
}
