package artifacts

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"scrimp/client"
	"scrimp/internal/server/reply"
)

// Meta stores small values by key.
type Meta interface {
	Meta(ctx context.Context, key string) (value string, ok bool, err error)
	PutMeta(ctx context.Context, key, value string) error
}

// removedMeta is the prefix of keys that record removed files of a job.
const removedMeta = "removed/"

// Removed returns which of a job's files were removed, and when.
func (k *Kept) Removed(ctx context.Context, job string) (r client.Removed, err error) {
	text, ok, err := k.Meta.Meta(ctx, removedMeta+job)
	if ok && err == nil {
		err = json.Unmarshal([]byte(text), &r)
	}
	if err != nil {
		return r, fmt.Errorf("read what of %s was removed: %w", job, err)
	}
	return r, nil
}

// Remove records a removal. Call it before the removal, so that a user who looks for the files learns why they are
// missing.
func (k *Kept) Remove(ctx context.Context, job string, note func(*client.Removed, *time.Time)) error {
	r, err := k.Removed(ctx, job)
	if err != nil {
		return err
	}
	note(&r, new(time.Now().UTC().Truncate(time.Second)))
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return k.Meta.PutMeta(ctx, removedMeta+job, string(text))
}

// RemovedOn returns the refusal for files that were removed; nil if they were not.
func RemovedOn(at *time.Time, what, job, fix string) *reply.Refusal {
	if at == nil {
		return nil
	}
	return &reply.Refusal{Status: http.StatusGone, Title: fmt.Sprintf("the %s of %s was removed on %s to make room", what,
		job, at.Format("2006-01-02 15:04 MST")), Fix: fix}
}

// answerRemoved answers a request for removed files, and reports whether it did.
func (k *Kept) answerRemoved(w http.ResponseWriter, r *http.Request, what, job, fix string,
	of func(client.Removed) *time.Time) bool {
	is, err := k.Removed(r.Context(), job)
	if err != nil {
		return false // the caller answers that it does not exist, which is true
	}
	no := RemovedOn(of(is), what, job, fix)
	if no != nil {
		no.Answer(w)
	}
	return no != nil
}
