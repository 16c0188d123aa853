// Package reply reads the bodies of requests and answers them: with values as JSON, and with problems
// as RFC 9457 has them.
package reply

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"

	"scrimp/client"
	"scrimp/internal/api"
)

// Problem answers with an error as RFC 9457 has it.
func Problem(w http.ResponseWriter, status int, title, fix string, err error) {
	FieldProblem(w, status, "", title, fix, err)
}

// FieldProblem is Problem with the field of the request that is wrong.
func FieldProblem(w http.ResponseWriter, status int, field, title, fix string, err error) {
	p := api.Problem{Type: "about:blank", Title: title, Status: status, Field: field, Fix: fix}
	if err != nil {
		p.Detail = err.Error()
	}
	tellProblem(w, p)
}

// UnknownJob answers that there is no such job, or none that the caller may know of. The
// field is that of the request which names it, "" where its path does.
func UnknownJob(w http.ResponseWriter, field, id string) {
	NoSuchJob(field, id).Answer(w)
}

// NoSuchJob is the refusal of that.
func NoSuchJob(field, id string) *Refusal {
	return &Refusal{Status: http.StatusNotFound, Field: field, Code: client.JobUnknown,
		Title: fmt.Sprintf("job %s is not known", id), Fix: "scrimp jobs lists them"}
}

func tellProblem(w http.ResponseWriter, p api.Problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	if k, ok := w.(*Writer); ok {
		k.title = p.Title
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

// JSON answers with a value.
func JSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// errNotText is a body that no JSON is, whatever its form.
var errNotText = errors.New("it is not encoded as UTF-8")

// Body decodes a request's body of at most limit bytes, one JSON value, or answers what is wrong with it.
func Body[T any](w http.ResponseWriter, r *http.Request, limit int64) (T, bool) {
	var v T
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err == nil && !utf8.Valid(body) { // what passes through as it came would break a database that takes text only
		err = errNotText
	}
	if err == nil {
		err = json.Unmarshal(body, &v)
	}
	if err == nil {
		return v, true
	}
	var big *http.MaxBytesError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &big):
		Problem(w, http.StatusRequestEntityTooLarge, "the request is too large",
			fmt.Sprintf("send at most %d bytes", limit), nil)
	case errors.As(err, &kind):
		FieldProblem(w, http.StatusBadRequest, kind.Field, "the request is not the JSON that is wanted here",
			"send what GET /v1/openapi.json describes", err)
	default:
		Problem(w, http.StatusBadRequest, "the request is not the JSON that is wanted here",
			"send what GET /v1/openapi.json describes", err)
	}
	return v, false
}

// List is never null on the wire.
func List[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Guard sets what keeps a browser from taking an answer for a page.
func Guard(w http.ResponseWriter) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
}
