package submit

import (
	"encoding/json"
	"mime"
	"net/http"
	"reflect"
	"slices"

	"scrimp/client"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/bound"
)

// Draft returns the job of a request for a plan, or answers what is wrong with it. The body is a PlanRequest, or the
// bare job file as YAML. A job without a team gets the one that its submission would give it.
func (d *Desk) Draft(w http.ResponseWriter, r *http.Request) (j spec.Job, ok bool) {
	text, ok := reply.Text(w, r, bound.Body(reflect.TypeFor[client.PlanRequest]()))
	if !ok {
		return j, false
	}
	var b client.PlanRequest
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if slices.Contains(yamlTypes, kind) {
		b.Spec, _ = json.Marshal(string(text)) // marshaling a string cannot fail
	} else if b, ok = reply.Decode[client.PlanRequest](w, text, howToSend); !ok {
		return j, false
	}
	j, no := d.jobOf(&api.Submission{Spec: b.Spec})
	if no != nil {
		no.Answer(w)
		return j, false
	}
	if c := auth.CallerOf(r); c.Token != "" || c.User != auth.OwnerName {
		d.Gate.People.Read(func(b *identity.Book) {
			if team, project, _, err := b.Place(c, j.Team, j.Project); err == nil { // a viewer may plan for no team
				j.Team, j.Project = team, project
			}
		})
	}
	return j, true
}

// Invalid answers that a job is not valid, with the fields that are wrong.
func (d *Desk) Invalid(w http.ResponseWriter, err error) { invalidJob(err).Answer(w) }
