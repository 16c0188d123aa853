package server

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"scrimp/internal/server/auth"
	"scrimp/internal/store"
	"scrimp/internal/test/eventually"
	"scrimp/internal/wire/api"
)

// filled is a store whose disk is full while is holds.
type filled struct {
	store.Replica
	is *atomic.Bool
}

func (f filled) Append(ctx context.Context, records []store.Record) error {
	if f.is.Load() {
		return fmt.Errorf("write to the database: %w", store.ErrFull)
	}
	return f.Replica.Append(ctx, records)
}

// While nothing can be written, clients get an error at once, and are served once there is room.
func TestFullDisk_FailsRequestsAtOnce(t *testing.T) {
	t.Parallel()
	var is atomic.Bool
	w := newWorldOn(t, shut{}, nil, func(s store.Replica) store.Replica { return filled{s, &is} })
	w.must("POST", "/v1/jobs", aJob("a", ""), nil)
	is.Store(true)
	go w.ask("POST", "/v1/jobs", auth.OwnerName, aJob("b", "")) // it waits for room
	eventually.True(t, "the disk is full", func() bool { return w.control.Full() != nil })
	for _, path := range []string{"/v1/jobs", "/v1/jobs/a"} {
		if rec, p := w.ask("GET", path, auth.OwnerName, nil); rec.Code != http.StatusInsufficientStorage || p.Fix == "" || p.Detail == "" {
			t.Errorf("%s: %d %+v", path, rec.Code, p)
		}
	}
	if rec, _ := w.ask("GET", "/v1/server", auth.OwnerName, nil); rec.Code != http.StatusOK {
		t.Errorf("who answers: %d", rec.Code)
	}
	// Stopping the server does not wait.
	if rec, p := w.ask("POST", "/v1/server/stop", auth.OwnerName, api.StopServer{}); rec.Code != http.StatusNoContent || w.stopped != 1 {
		t.Errorf("the server does not end: %d %+v", rec.Code, p)
	}
	is.Store(false)
	eventually.True(t, "there is room, and the job is taken", func() bool {
		rec, _ := w.ask("GET", "/v1/jobs/b", auth.OwnerName, nil)
		return rec.Code == http.StatusOK
	})
}
