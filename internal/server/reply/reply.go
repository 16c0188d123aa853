// Package reply reads the bodies of requests and writes responses: values as JSON, and errors as RFC 9457 problems.
package reply

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"scrimp/client"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/limits"
)

// Problem sends an error as an RFC 9457 problem.
func Problem(w http.ResponseWriter, status int, title, fix string, err error) {
	FieldProblem(w, status, "", title, fix, err)
}

// FieldProblem is Problem with the request field that is wrong.
func FieldProblem(w http.ResponseWriter, status int, field, title, fix string, err error) {
	tellProblem(w, problem(status, field, title, fix, err))
}

// problem builds the response for an error. If a number out of bounds caused it, it is the client's error wherever
// it was found, since a retry would fail again.
func problem(status int, field, title, fix string, err error) api.Problem {
	p := api.Problem{Type: "about:blank", Title: title, Status: status, Field: field, Fix: fix}
	var over *limits.ExcessError
	if errors.As(err, &over) && status >= http.StatusInternalServerError {
		return api.Problem{Type: "about:blank", Title: over.Error(), Status: http.StatusUnprocessableEntity,
			Field: over.Field, Fix: over.Fix()}
	}
	if err != nil {
		p.Detail = err.Error()
	}
	return p
}

// UnknownJob answers that the job does not exist or that the caller may not see it. field is the request field with
// its name, or "" if the path has it.
func UnknownJob(w http.ResponseWriter, field, id string) {
	NoSuchJob(field, id).Answer(w)
}

// NoSuchJob returns the refusal that UnknownJob sends.
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

// JSON sends a value. A value that JSON cannot represent, such as an infinite number, is a bug of the server: the
// response is 500, and the log names the value.
func JSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	err := json.NewEncoder(w).Encode(v) // writes all or nothing
	if !unencodable(err) {
		return // the client has it or has left
	}
	if k, ok := w.(*Writer); ok {
		k.fault = err
	}
	Problem(w, http.StatusInternalServerError, "the response cannot be written as JSON",
		"this is a bug of scrimp: report it with what the server's log says", nil)
}

// unencodable reports whether an encoder failed because of its value.
func unencodable(err error) bool {
	var value *json.UnsupportedValueError
	var kind *json.UnsupportedTypeError
	var own *json.MarshalerError
	return errors.As(err, &value) || errors.As(err, &kind) || errors.As(err, &own)
}

// errNotText means that a body is not UTF-8, so it cannot be JSON.
var errNotText = errors.New("it is not UTF-8")

// Body decodes the body of a request, one JSON value within the bounds of its type, or answers what is wrong with
// it.
func Body[T any](w http.ResponseWriter, r *http.Request) (T, bool) {
	body, ok := Text(w, r, limits.Body(reflect.TypeFor[T]()))
	if !ok {
		var none T
		return none, false
	}
	return Decode[T](w, body, howToAsk)
}

const howToAsk = "send what GET /v1/openapi.json describes"

// FromAgent is Body for the messages of agents. It ignores unknown fields: an agent may be newer than the server.
func FromAgent[T any](w http.ResponseWriter, r *http.Request) (v T, ok bool) {
	body, ok := Text(w, r, limits.Body(reflect.TypeFor[T]()))
	if !ok {
		return v, false
	}
	return decode[T](w, body, howToAsk, json.Unmarshal)
}

// Decode decodes a body. If it is not the expected JSON, or has a field that would be ignored, unknown or written
// twice, it answers with the given fix.
func Decode[T any](w http.ResponseWriter, body []byte, fix string) (T, bool) {
	return decode[T](w, body, fix, func(body []byte, v any) error {
		if err := once(body, reflect.TypeFor[T]()); err != nil {
			return err
		}
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		if err := d.Decode(v); err != nil {
			if u := unknownIn(body, reflect.TypeFor[T]()); u != nil {
				return u
			}
			return err
		}
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return errors.New("text follows the JSON value")
		}
		return nil
	})
}

// once returns what is wrong with a body for a struct that is null or has a field twice. Fields within fields are left
// to their readers: those of a job file name the line.
func once(body []byte, of reflect.Type) error {
	if of.Kind() != reflect.Struct {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true))
	if d.PeekKind() != '{' {
		return errors.New("it is not an object")
	}
	seen := map[string]bool{}
	for _, err := d.ReadToken(); d.PeekKind() != '}'; err = d.SkipValue() {
		if err != nil {
			return err
		}
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if seen[name.String()] {
			return fmt.Errorf("%.60q is there twice", name.String())
		}
		seen[name.String()] = true
	}
	return nil
}

func decode[T any](w http.ResponseWriter, body []byte, fix string, read func([]byte, any) error) (T, bool) {
	var v T
	var over *limits.ExcessError
	if err := limits.Check(reflect.TypeFor[T](), body); errors.As(err, &over) {
		FieldProblem(w, http.StatusUnprocessableEntity, over.Field, over.Error(), over.Fix(), nil)
		return v, false
	}
	err := read(body, &v)
	if err == nil {
		return v, true
	}
	if u, ok := errors.AsType[*unknownField](err); ok {
		FieldProblem(w, http.StatusBadRequest, fmt.Sprintf("%.100s", u.path), "this field is unknown", u.fix(fix), nil)
		return v, false
	}
	field := ""
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		field = kind.Field
	}
	FieldProblem(w, http.StatusBadRequest, field, "the request body has the wrong form", fix, err)
	return v, false
}

// Text reads the body of a request, at most limit bytes of UTF-8, or answers what is wrong with it.
func Text(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, bool) {
	body, ok := Bytes(w, r, limit)
	if ok && !utf8.Valid(body) { // some values are stored unchanged, and a database for text would fail on them
		Problem(w, http.StatusBadRequest, "cannot read the request", "send what GET /v1/openapi.json describes", errNotText)
		return nil, false
	}
	return body, ok
}

// Bytes reads the body of a request, at most limit bytes of any kind, or answers what is wrong with it.
func Bytes(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, bool) {
	body, err := read(w, r, limit)
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		Problem(w, http.StatusRequestEntityTooLarge, "the request is too large",
			fmt.Sprintf("send at most %d bytes", limit), nil)
	case errors.Is(err, ErrCrowded):
		w.Header().Set("Retry-After", "1")
		Problem(w, http.StatusTooManyRequests, "too many bytes at once",
			"send it again in a second, and send less at once", err)
	case err != nil:
		Problem(w, http.StatusBadRequest, "cannot read the request",
			"send what GET /v1/openapi.json describes", err)
	}
	return body, err == nil
}

// ErrCrowded means that request bodies use all the memory that they may.
var ErrCrowded = errors.New("requests in progress use all the memory for bodies")

// Holder is a body that counts its bytes in memory.
type Holder interface {
	// Hold counts n more bytes until the request ends, or returns an error if there is no room.
	Hold(n int64) error
}

// firstRead is the initial size of a body's buffer in bytes, where Content-Length does not claim less: most bodies are
// smaller.
const firstRead = 4 << 10

// read reads a body. It allocates memory as bytes arrive, not as Content-Length claims.
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
			if n := r.ContentLength; len(body) == 0 && n > 0 && n < firstRead {
				more = int(n) + 1 // room to find the end
			}
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

// List returns the list, or an empty list for nil, which JSON would encode as null.
func List[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Guard sets the headers that keep a browser from rendering a response as a page.
func Guard(w http.ResponseWriter) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
}
