// Package reply reads the bodies of requests and answers them: with values as JSON, and with problems
// as RFC 9457 has them.
package reply

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"unicode/utf8"

	"scrimp/client"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/bound"
)

// Problem answers with an error as RFC 9457 has it.
func Problem(w http.ResponseWriter, status int, title, fix string, err error) {
	FieldProblem(w, status, "", title, fix, err)
}

// FieldProblem is Problem with the field of the request that is wrong.
func FieldProblem(w http.ResponseWriter, status int, field, title, fix string, err error) {
	tellProblem(w, problem(status, field, title, fix, err))
}

// problem is what is answered of an error. What a number out of its bounds has led to is its sender's fault, wherever
// that was found: who sends it again is answered the same.
func problem(status int, field, title, fix string, err error) api.Problem {
	p := api.Problem{Type: "about:blank", Title: title, Status: status, Field: field, Fix: fix}
	var over *bound.ExcessError
	if errors.As(err, &over) && status >= http.StatusInternalServerError {
		return api.Problem{Type: "about:blank", Title: over.Error(), Status: http.StatusUnprocessableEntity,
			Field: over.Field, Fix: over.Fix()}
	}
	if err != nil {
		p.Detail = err.Error()
	}
	return p
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
		p.Detail = k.hidden(p.Detail)
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

// JSON answers with a value. One that JSON cannot hold, such as a number that is not finite, is a bug of
// ours: the answer is 500, and the log says which.
func JSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	err := json.NewEncoder(w).Encode(v) // it writes all or nothing
	if !unencodable(err) {
		return // the client has it, or has gone
	}
	if k, ok := w.(*Writer); ok {
		k.fault = err
	}
	Problem(w, http.StatusInternalServerError, "the answer cannot be written as JSON",
		"this is a bug of scrimp: report it with what the server's log says", nil)
}

// unencodable reports whether an encoder failed for its value's sake.
func unencodable(err error) bool {
	var value *json.UnsupportedValueError
	var kind *json.UnsupportedTypeError
	var own *json.MarshalerError
	return errors.As(err, &value) || errors.As(err, &kind) || errors.As(err, &own)
}

// errNotText is a body that no JSON is, whatever its form.
var errNotText = errors.New("it is not encoded as UTF-8")

// Body decodes a request's body, one JSON value within the bounds of its type, or answers what is wrong with it.
func Body[T any](w http.ResponseWriter, r *http.Request) (T, bool) {
	body, ok := Text(w, r, bound.Body(reflect.TypeFor[T]()))
	if !ok {
		var none T
		return none, false
	}
	return Decode[T](w, body, "send what GET /v1/openapi.json describes")
}

// Decode decodes a body, or answers that it is not the JSON that is wanted, with what fixes it.
func Decode[T any](w http.ResponseWriter, body []byte, fix string) (T, bool) {
	var v T
	var over *bound.ExcessError
	if err := bound.Check(reflect.TypeFor[T](), body); errors.As(err, &over) {
		FieldProblem(w, http.StatusUnprocessableEntity, over.Field, over.Error(), over.Fix(), nil)
		return v, false
	}
	err := json.Unmarshal(body, &v)
	if err == nil {
		return v, true
	}
	field := ""
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		field = kind.Field
	}
	FieldProblem(w, http.StatusBadRequest, field, "the request is not the JSON that is wanted here", fix, err)
	return v, false
}

// Text reads a request's body of at most limit bytes, or answers what is wrong with it.
func Text(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, bool) {
	body, ok := Bytes(w, r, limit)
	if ok && !utf8.Valid(body) { // what passes through as it came would break a database that takes text only
		Problem(w, http.StatusBadRequest, "the request was not read", "send what GET /v1/openapi.json describes", errNotText)
		return nil, false
	}
	return body, ok
}

// Bytes reads a request's body of at most limit bytes, whatever they are, or answers what is wrong with it.
func Bytes(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, bool) {
	body, err := read(w, r, limit)
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		Problem(w, http.StatusRequestEntityTooLarge, "the request is too large",
			fmt.Sprintf("send at most %d bytes", limit), nil)
	case errors.Is(err, ErrCrowded):
		w.Header().Set("Retry-After", "1")
		Problem(w, http.StatusTooManyRequests, "too much is sent at once", "send it again in a second, and less at once", err)
	case err != nil:
		Problem(w, http.StatusBadRequest, "the request was not read",
			"send what GET /v1/openapi.json describes", err)
	}
	return body, err == nil
}

// ErrCrowded says that bodies take as much memory as they may.
var ErrCrowded = errors.New("requests that are on their way take as much memory as the server gives them")

// Holder is a body whose bytes in memory are counted.
type Holder interface {
	// Hold counts n more bytes until the request is over, or says why there is no room for them.
	Hold(n int64) error
}

// firstRead is how much of a body is taken before it grows: most are smaller.
const firstRead = 4 << 10

// read reads a body. It takes memory as the bytes come, not as their sender says that they will.
func read(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	hold := func(int64) error { return nil }
	if h, ok := r.Body.(Holder); ok {
		hold = h.Hold
	}
	from, body := http.MaxBytesReader(w, r.Body, limit), []byte(nil)
	for {
		if len(body) == cap(body) {
			more := max(firstRead, cap(body))
			if err := hold(int64(more)); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, cap(body)+more), body...)
		}
		n, err := from.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return nil, err
		}
	}
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
