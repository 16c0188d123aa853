package submit

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"scrimp/internal/server/reply"
	"scrimp/internal/server/webhook"
	"scrimp/internal/spec"
)

// jobOf reads the job file of a submission, or says which field of it is wrong.
func (d *Desk) jobOf(raw json.RawMessage) (spec.Job, *reply.Refusal) {
	if len(raw) == 0 || string(raw) == "null" {
		return spec.Job{}, &reply.Refusal{Status: http.StatusBadRequest, Field: "spec", Title: "the submission has no job",
			Fix: "send a job file as JSON in spec, as GET /v1/openapi.json describes"}
	}
	j, err := spec.Decode(raw)
	var kind *json.UnmarshalTypeError
	if err != nil {
		no := &reply.Refusal{Status: http.StatusBadRequest, Field: "spec", Title: "the job is not in the form of a job file",
			Fix: "send what GET /v1/openapi.json describes; scrimp run does", Err: err}
		if errors.As(err, &kind) && kind.Field != "" {
			no.Field = kind.Field
		}
		return j, no
	}
	if d.Hooks.Refuses(j.Notify) {
		return j, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "notify",
			Title: "the webhook leads inside the server's network", Fix: webhook.InsideFix}
	}
	err = j.Validate(d.Control.Now())
	if err == nil {
		return j, notRun(j)
	}
	no := &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "spec", Title: "the job is not valid",
		Fix: "fix the fields that are named", Err: err}
	var list spec.Problems
	if errors.As(err, &list) && len(list) > 0 && list[0].Field != "" {
		if no.Field = list[0].Field; len(list) == 1 && list[0].Fix != "" {
			no.Fix = list[0].Fix
		}
	}
	return j, no
}

// notRun refuses a job that would be run otherwise than its file says.
func notRun(j spec.Job) *reply.Refusal {
	if j.Nodes <= 1 {
		return nil
	}
	return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "nodes",
		Title: fmt.Sprintf("a job of %d machines is not run yet: it would run on one", j.Nodes),
		Fix:   "leave nodes out; one machine may have several accelerators (resources.accelerator: H100:8)"}
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
