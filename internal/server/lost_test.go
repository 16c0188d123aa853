package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"scrimp/internal/server/auth"
	"scrimp/internal/store"
)

// full is a store whose disk becomes full: appends start, wait for leave, and fail.
type full struct {
	store.Replica
	is    atomic.Bool
	begun chan struct{}
	leave chan struct{}
}

func (f *full) Append(ctx context.Context, records []store.Record) error {
	if !f.is.Load() {
		return f.Replica.Append(ctx, records)
	}
	f.begun <- struct{}{}
	<-f.leave
	return errors.New("the disk is full")
}

// Nobody sees a job whose submission could not be written, on any page, before or after the failure.
func TestFailedWrite_IsNeverShown(t *testing.T) {
	t.Parallel()
	f := &full{begun: make(chan struct{}), leave: make(chan struct{})}
	w := newWorldOn(t, shut{}, nil, func(s store.Replica) store.Replica { f.Replica = s; return f })
	w.must("POST", "/v1/jobs", aJob("kept", ""), nil)
	f.is.Store(true)
	submitted := make(chan int, 1)
	go func() {
		rec, _ := w.ask("POST", "/v1/jobs", auth.OwnerName, aJob("lost", ""))
		submitted <- rec.Code
	}()
	<-f.begun // the core has applied it
	pages := []string{"/v1/jobs/lost", "/v1/jobs/lost/receipt", "/v1/jobs/lost/spec", "/v1/jobs/lost/log",
		"/v1/jobs/lost/watch", "/v1/jobs/nobody", "/v1/jobs", "/v1/server", "/v1/market", "/v1/costs", "/v1/budgets",
		"/metrics"}
	type shown struct {
		page, body string
		code       int
	}
	answers := make(chan shown)
	read := func() {
		for _, p := range pages {
			go func() {
				rec, _ := w.ask("GET", p, auth.OwnerName, nil)
				answers <- shown{p, rec.Body.String(), rec.Code}
			}()
		}
	}
	look := func(when string, fails bool) {
		for range pages {
			a := <-answers
			if strings.Contains(a.body, `"lost"`) {
				t.Errorf("%s: %s shows a job that is in no log: %d %s", when, a.page, a.code, a.body)
			}
			if a.code == http.StatusOK && fails || a.code == http.StatusNotFound && strings.Contains(a.page, "lost") {
				t.Errorf("%s: %s is answered with %d %s", when, a.page, a.code, a.body)
			}
		}
	}
	read()
	close(f.leave)
	if code := <-submitted; code != http.StatusServiceUnavailable {
		t.Errorf("the submission that is not written is answered with %d", code)
	}
	look("while the write fails", false) // earlier responses do not depend on it
	read()
	look("after it has failed", true)
}
