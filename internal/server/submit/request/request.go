// Package request reads the job files that requests send.
package request

import (
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"net/url"
	"path"
	"reflect"
	"slices"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/webhook"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/limits"
)

// howToSend is the fix for a submission without a readable job file.
const howToSend = "send the job file as an object in spec, or alone as YAML with Content-Type: application/yaml; " +
	"GET /v1/openapi.json has examples"

// yamlTypes lists the media types of YAML.
var yamlTypes = []string{"application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml", "text/vnd.yaml"}

// A Reader reads job files. It refuses what the server cannot accept from anyone, such as an invalid field.
type Reader struct {
	Hooks webhook.Sender
	Mails bool             // whether the server sends e-mail
	Now   func() time.Time // reads deadlines such as in 24h
}

// Submission parses a submission: a JSON object, or the bare job file as YAML with the key in a header. Both may set
// further fields in the query.
func Submission(w http.ResponseWriter, r *http.Request) (b api.Submission, ok bool) {
	if b, ok = bodyOf(w, r, func(b *api.Submission) *client.Raw { return &b.Spec }); !ok {
		return b, false
	}
	if field := parseQuery(r.URL.Query(), &b); field != "" {
		reply.FieldProblem(w, http.StatusBadRequest, field, "the query says "+field+"="+r.URL.Query().Get(field),
			"write "+field+"=1, or leave it out", nil)
		return b, false
	}
	return b, true
}

// bodyOf parses a JSON object with a job file, or the bare job file as YAML.
func bodyOf[T any](w http.ResponseWriter, r *http.Request, file func(*T) *client.Raw) (b T, ok bool) {
	text, ok := reply.Text(w, r, limits.Body(reflect.TypeFor[T]()))
	if !ok {
		return b, false
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); !slices.Contains(yamlTypes, kind) {
		return reply.Decode[T](w, text, howToSend)
	}
	*file(&b), _ = json.Marshal(string(text)) // marshaling a string cannot fail
	return b, true
}

// Plan returns the job of a request for a plan, or answers what is wrong with it.
func (rd Reader) Plan(w http.ResponseWriter, r *http.Request) (j spec.Job, ok bool) {
	b, ok := bodyOf(w, r, func(b *client.PlanRequest) *client.Raw { return &b.Spec })
	if !ok {
		return j, false
	}
	j, no := rd.Job(&api.Submission{Spec: b.Spec})
	if no != nil {
		no.Answer(w)
	}
	return j, no == nil
}

// parseQuery sets the fields that the query has. wrong is a flag in it that is neither true nor false.
func parseQuery(q url.Values, b *api.Submission) (wrong string) {
	for name, to := range map[string]*string{"work": &b.Work, "rerun": &b.Rerun, "from": &b.From} {
		if q.Has(name) {
			*to = q.Get(name)
		}
	}
	for name, to := range map[string]*bool{"accept_unproven": &b.AcceptUnproven, "accept_wait": &b.AcceptWait} {
		switch q.Get(name) {
		case "":
		case "1", "true":
			*to = true
		default:
			wrong = name
		}
	}
	return wrong
}

// Job parses the job file of a submission, or returns which field is wrong. It replaces the job file in the
// submission with its canonical form for the log.
func (rd Reader) Job(b *api.Submission) (spec.Job, *reply.Refusal) {
	if len(b.Spec) == 0 || string(b.Spec) == "null" {
		return spec.Job{}, &reply.Refusal{Status: http.StatusBadRequest, Field: "spec", Title: "the submission has no job",
			Fix: howToSend}
	}
	j, err := rd.read(b)
	if err != nil {
		return j, Invalid(err)
	}
	if err := runhistory.Sound(j.Model); err != nil && j.Model.Named() {
		return j, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "model", Title: "this model is not valid",
			Fix: "correct it, or leave it out", Err: err}
	}
	if no := rd.Hook(j.Notify.Webhook, "notify.webhook"); no != nil {
		return j, no
	}
	if len(j.Notify.Email) > 0 && !rd.Mails {
		return j, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "notify.email",
			Title: "the server sends no e-mail", Fix: "leave it out, or start the server with scrimp serve --smtp"}
	}
	if b.Spec, err = j.Encode(); err != nil {
		return j, &reply.Refusal{Status: http.StatusInternalServerError, Field: "spec", Err: err,
			Title: "the job file was not written"}
	}
	return j, nil
}

// Hook returns why the server does not call a webhook, which a field names; nil: it does, or there is none.
func (rd Reader) Hook(address, field string) *reply.Refusal {
	switch {
	case address != "" && !spec.IsHook(address):
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: field, Title: "the webhook is not an address",
			Fix: "give an http or https URL"}
	case rd.Hooks.Refuses(address):
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: field,
			Title: "the webhook leads inside the server's network", Fix: webhook.InsideFix}
	}
	return nil
}

// read parses the job file as users write it: an object, or a string with YAML text. It refuses a deadline without a
// zone: the server does not know the user's.
func (rd Reader) read(b *api.Submission) (j spec.Job, err error) {
	now := rd.Now().UTC()
	name := ""
	if b.Folder != "" {
		name = path.Base(b.Folder)
	}
	var text string
	if b.Spec[0] == '"' && json.Unmarshal(b.Spec, &text) == nil {
		j, _, err = spec.Parse(spec.Run, "job.yaml", []byte(text), name, now)
	} else {
		j, _, err = spec.ParseJSON(spec.Run, b.Spec, name, now)
	}
	return j, err
}

// Invalid returns the refusal of a job file, with the same messages as the commands.
func Invalid(err error) *reply.Refusal {
	no := &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "spec", Title: "the job is not valid",
		Fix: "fix the fields that are named", Err: err}
	var list spec.Problems
	if !errors.As(err, &list) || len(list) == 0 {
		return no
	}
	for _, p := range list {
		no.Problems = append(no.Problems,
			client.JobProblem{Field: p.Field, Line: p.Line, Column: p.Column, Cause: p.Cause, Fix: p.Fix})
	}
	first := list[0]
	if first.Field != "" {
		no.Field = first.Field
	} else { // an error of the whole text, not of a field
		no.Status, no.Title = http.StatusBadRequest, "the job does not have the form of a job file"
	}
	if no.Line = first.Line; len(list) == 1 && first.Fix != "" {
		no.Fix = first.Fix
	}
	return no
}
