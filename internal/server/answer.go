package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"scrimp/client"
	"scrimp/internal/api"
	"scrimp/internal/spec"
)

// problem answers with an error as RFC 9457 has it.
func problem(w http.ResponseWriter, status int, title, fix string, err error) {
	fieldProblem(w, status, "", title, fix, err)
}

// fieldProblem is problem with the field of the request that is wrong.
func fieldProblem(w http.ResponseWriter, status int, field, title, fix string, err error) {
	p := api.Problem{Type: "about:blank", Title: title, Status: status, Field: field, Fix: fix}
	if err != nil {
		p.Detail = err.Error()
	}
	tellProblem(w, p)
}

// unknownJob answers that there is no such job, or none that the caller may know of. The
// field is that of the request which names it, "" where its path does.
func unknownJob(w http.ResponseWriter, field, id string) {
	noSuchJob(field, id).answer(w)
}

// noSuchJob is the refusal of that.
func noSuchJob(field, id string) *refusal {
	return &refusal{status: http.StatusNotFound, field: field, code: client.JobUnknown,
		title: fmt.Sprintf("job %s is not known", id), fix: "scrimp jobs lists them"}
}

func tellProblem(w http.ResponseWriter, p api.Problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	if k, ok := w.(*status); ok {
		k.title = p.Title
	}
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// errNotText is a body that no JSON is, whatever its form.
var errNotText = errors.New("it is not encoded as UTF-8")

// read decodes a request's body of at most limit bytes: one JSON value.
func read[T any](w http.ResponseWriter, r *http.Request, limit int64) (T, bool) {
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
		problem(w, http.StatusRequestEntityTooLarge, "the request is too large",
			fmt.Sprintf("send at most %d bytes", limit), nil)
	case errors.As(err, &kind):
		fieldProblem(w, http.StatusBadRequest, kind.Field, "the request is not the JSON that is wanted here",
			"send what GET /v1/openapi.json describes", err)
	default:
		problem(w, http.StatusBadRequest, "the request is not the JSON that is wanted here",
			"send what GET /v1/openapi.json describes", err)
	}
	return v, false
}

// jobOf reads the job file of a submission, or says which field of it is wrong.
func (s *Server) jobOf(raw json.RawMessage) (spec.Job, *refusal) {
	if len(raw) == 0 || string(raw) == "null" {
		return spec.Job{}, &refusal{status: http.StatusBadRequest, field: "spec", title: "the submission has no job",
			fix: "send a job file as JSON in spec, as GET /v1/openapi.json describes"}
	}
	j, err := spec.Decode(raw)
	var kind *json.UnmarshalTypeError
	if err != nil {
		no := &refusal{status: http.StatusBadRequest, field: "spec", title: "the job is not in the form of a job file",
			fix: "send what GET /v1/openapi.json describes; scrimp run does", err: err}
		if errors.As(err, &kind) && kind.Field != "" {
			no.field = kind.Field
		}
		return j, no
	}
	if s.hooksInside(j.Notify) {
		return j, &refusal{status: http.StatusUnprocessableEntity, field: "notify",
			title: "the webhook leads inside the server's network", fix: hookFix}
	}
	err = j.Validate(s.control.Now())
	if err == nil {
		return j, nil
	}
	no := &refusal{status: http.StatusUnprocessableEntity, field: "spec", title: "the job is not valid",
		fix: "fix the fields that are named", err: err}
	var list spec.Problems
	if errors.As(err, &list) && len(list) > 0 && list[0].Field != "" {
		if no.field = list[0].Field; len(list) == 1 && list[0].Fix != "" {
			no.fix = list[0].Fix
		}
	}
	return j, no
}

// maxKey is how many bytes the key of a submission has at most.
const maxKey = 255

// wrongKey says what is wrong with the key of a submission, "" for nothing. A
// database keeps keys as text, and not every one takes every byte in it.
func wrongKey(key string) string {
	switch {
	case len(key) > maxKey:
		return fmt.Sprintf("the key is longer than %d bytes", maxKey)
	case !utf8.ValidString(key) || strings.ContainsFunc(key, unicode.IsControl):
		return "the key holds bytes that are no text"
	}
	return ""
}
