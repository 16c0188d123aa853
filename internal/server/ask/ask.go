// Package ask lets a handler of the API use other handlers, with the rights of its own caller.
package ask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"scrimp/internal/server/reply"
)

// Get calls a handler as the caller of r, and decodes its answer. The id is that of the path, if it has one. Get
// returns the answer if that is a refusal.
func Get(r *http.Request, do http.HandlerFunc, path, id string, out any) *Answer {
	got := &Answer{Most: mostAnswer}
	err := Call(r.Context(), r, do, path, id, got)
	switch {
	case err != nil:
	case got.over:
		err = errLong
	case got.Status >= http.StatusBadRequest:
		return got
	default:
		err = json.Unmarshal(got.Body.Bytes(), out)
	}
	if err != nil {
		return &Answer{Status: http.StatusInternalServerError, Err: fmt.Errorf("%s: %w", path, err)}
	}
	return nil
}

// Call calls a handler as the caller of r.
func Call(ctx context.Context, r *http.Request, do http.HandlerFunc, path, id string, got *Answer) error {
	of, err := http.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody)
	if err != nil {
		return err
	}
	of.RemoteAddr, of.Header = r.RemoteAddr, r.Header
	of.SetPathValue("id", id)
	do(got, of)
	return nil
}

// mostAnswer bounds an answer of the API, in bytes: the telemetry of a thousand machines.
const mostAnswer = 256 << 20

var errLong = errors.New("the answer is too long")

// Answer keeps an answer, up to a limit.
type Answer struct {
	Body   bytes.Buffer
	Status int
	Most   int    // bytes
	Stop   func() // called once the limit is exceeded; may be nil
	Err    error  // why there is no answer; nil: the body says it

	header http.Header
	over   bool
}

// Header implements http.ResponseWriter.
func (a *Answer) Header() http.Header {
	if a.header == nil {
		a.header = http.Header{}
	}
	return a.header
}

// WriteHeader implements http.ResponseWriter.
func (a *Answer) WriteHeader(status int) {
	if a.Status == 0 {
		a.Status = status
	}
}

// Write implements http.ResponseWriter.
func (a *Answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	room := min(len(b), a.Most-a.Body.Len())
	a.Body.Write(b[:room])
	if room < len(b) {
		if a.over = true; a.Stop != nil {
			a.Stop()
		}
		return room, errLong
	}
	return len(b), nil
}

// Send sends a refusal on to the caller.
func (a *Answer) Send(w http.ResponseWriter) {
	if a.Err != nil {
		reply.Problem(w, http.StatusInternalServerError, "the server did not understand its own answer",
			"look at the server's log", a.Err)
		return
	}
	w.Header().Set("Content-Type", a.Header().Get("Content-Type"))
	w.WriteHeader(a.Status)
	_, _ = w.Write(a.Body.Bytes()) // w keeps its error
}
