//go:build !local

package inputs

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"scrimp/internal/job/spec"
	"scrimp/internal/server/reply"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/lane"
)

// A store's plain word that a bucket does not exist refuses the job. A store that denies access, or a server without
// credentials, proves nothing.
func TestRefuses_MissingBuckets(t *testing.T) {
	lane.Component(t, "whole")
	status, code := http.StatusNotFound, "NoSuchBucket"
	asked := 0
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<Error><Code>"+code+"</Code></Error>")
	}))
	defer store.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	j := spec.Job{Data: []spec.Data{{Name: "x", Path: "s3://gone/x?region=r&endpoint=" + store.URL}}}
	refuses := func(own bool) bool {
		p := &Probe{own: own, until: time.Now().Add(eventually.Limit), asked: map[string]string{}}
		first := p.Refuses(t.Context(), j, true)
		before := asked
		if again := p.Refuses(t.Context(), j, true); (again != nil) != (first != nil) || asked != before {
			t.Errorf("the second stage with this input: %+v after %d more requests", again, asked-before)
		}
		return first != nil
	}
	if !refuses(true) {
		t.Error("a bucket that does not exist is accepted")
	}
	if status, code = http.StatusBadRequest, "InvalidBucketName"; !refuses(true) {
		t.Error("a bucket that cannot exist is accepted")
	}
	status, code = http.StatusNotFound, "NoSuchBucket"
	if asked = 0; refuses(false) || asked > 0 {
		t.Errorf("for another user's endpoint the server made %d requests", asked)
	}
	if status, code = http.StatusForbidden, "AccessDenied"; refuses(true) {
		t.Error("a bucket that the server may not read is refused")
	}
}

// Checkpoints need a bucket that exists before the program has run for hours.
func TestRefuses_MissingBucketsOfCheckpoints(t *testing.T) {
	lane.Component(t, "whole")
	status := http.StatusNotFound
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<ListBucketResult></ListBucketResult>")
	}))
	defer store.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	j := spec.Job{Checkpoint: spec.Checkpoint{Store: "s3://gone?prefix=team&region=r&endpoint=" + store.URL}}
	asks := func() *reply.Refusal {
		return (&Probe{own: true, until: time.Now().Add(eventually.Limit), asked: map[string]string{}}).Refuses(t.Context(), j, false)
	}
	if no := asks(); no == nil || no.Field != "checkpoint.store" {
		t.Errorf("a missing bucket: %+v", no)
	}
	status = http.StatusOK
	if no := asks(); no != nil {
		t.Errorf("an empty bucket: %+v", no)
	}
}
