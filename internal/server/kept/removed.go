package kept

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"scrimp/client"
	"scrimp/internal/server/reply"
)

// Meta keeps small facts by name.
type Meta interface {
	Meta(ctx context.Context, key string) (value string, ok bool, err error)
	PutMeta(ctx context.Context, key, value string) error
}

// removedMeta begins the names of the facts that say what of a job was removed.
const removedMeta = "removed/"

// Removed says what of a job was removed, and when.
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

// Remove notes that what a job has is being removed: before it goes, so that who looks for it learns why it is gone.
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

// RemovedOn is the refusal where what is asked for was removed; nil where it was not.
func RemovedOn(at *time.Time, what, job, fix string) *reply.Refusal {
	if at == nil {
		return nil
	}
	return &reply.Refusal{Status: http.StatusGone, Title: fmt.Sprintf("the %s of %s was removed on %s to make room", what,
		job, at.Format("2006-01-02 15:04 MST")), Fix: fix}
}

// gone answers where what is asked for was removed.
func (k *Kept) gone(w http.ResponseWriter, r *http.Request, what, job, fix string,
	of func(client.Removed) *time.Time) bool {
	is, err := k.Removed(r.Context(), job)
	if err != nil {
		return false // the answer is that there is none, which is true
	}
	no := RemovedOn(of(is), what, job, fix)
	if no != nil {
		no.Answer(w)
	}
	return no != nil
}
