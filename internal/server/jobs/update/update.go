// Package update changes, pauses and resumes jobs.
package update

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/policy"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/budgets"
	"scrimp/internal/server/jobs"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/secret"
	"scrimp/internal/wire/api"
	"scrimp/money"
)

// Service changes the jobs of another service.
type Service struct {
	*jobs.Service
	pace *auth.Pace
}

// New returns a Service. The log keeps each change for ever, and a user could repeat them on one job without end, so a
// user may make 5 a second, and 300 at once.
func New(of *jobs.Service) *Service { return &Service{of, auth.NewBurst(5, 300)} }

// oneChange is the advice to a caller who makes many changes.
const oneChange = "one request changes several terms of a job"

// Pause lets a job save, release its machine and wait.
func (d *Service) Pause(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[api.Pause](w, r)
	if !ok || !auth.Allowed(w, r, d.pace, oneChange) {
		return
	}
	id := r.PathValue("id")
	done := false
	var no *reply.Refusal
	if !d.Control.Job(id, func(_ *core.Machine, j *core.Job) { done, no = checkPause(j, b.Force) }) {
		reply.UnknownJob(w, "", id)
		return
	}
	if no != nil {
		no.Answer(w)
		return
	}
	if done {
		auth.CallOf(r).Written = true // it is in the log already
	} else if !d.proposeEvent(w, r, id, core.JobPaused{Job: id}) {
		return
	}
	d.Get(w, r)
}

// checkPause returns why a job cannot be paused. done means that it is paused or will be.
func checkPause(j *core.Job, force bool) (done bool, no *reply.Refusal) {
	is := fmt.Sprintf("job %s is %s", j.ID(), j.State())
	switch {
	case j.State() == core.Paused, j.Pausing():
		return true, nil
	case j.State().Over():
		return false, over(j)
	case j.State() == core.Held:
		return false, &reply.Refusal{Status: http.StatusConflict, Title: is,
			Fix: "it holds nothing while it waits for approval; scrimp cancel ends it"}
	case jobs.Undecided(j) != nil:
		return false, jobs.Undecided(j)
	case j.Ending() != "":
		return false, &reply.Refusal{Status: http.StatusConflict, Title: fmt.Sprintf("job %s is being ended", j.ID()),
			Fix: "scrimp resume takes it up again once it is over"}
	case !force && !j.Terms().Saves && len(j.Attempts()) > 0:
		return false, &reply.Refusal{Status: http.StatusConflict, Field: "force",
			Title: fmt.Sprintf("job %s keeps no checkpoints: what it has done would be lost", j.ID()),
			Fix:   "write checkpoint.dir in the job file, or lose it with --force"}
	}
	return false, nil
}

// proposeEvent writes an event about a job, or answers that it could not.
func (d *Service) proposeEvent(w http.ResponseWriter, r *http.Request, id string, b core.Body) bool {
	e := d.Gate.Event(r, b)
	if err := d.Gate.Propose(r, id, e); err != nil {
		no := budgets.Denied(auth.CallerOf(r), err, "the change was not saved", "try again")
		if _, resumes := b.(core.JobResumed); resumes && no.Field == "tags" {
			no.Title, no.Fix = "a tag is now required here", "submit it again with tags in the job file"
		}
		no.Answer(w)
		return false
	}
	d.Odds.Forget(id) // the forecast was for the old terms
	return true
}

// Change updates the terms of a job that has not ended.
func (d *Service) Change(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[api.Changes](w, r)
	if !ok || !auth.Allowed(w, r, d.pace, oneChange) {
		return
	}
	if b == (api.Changes{AcceptLate: b.AcceptLate}) {
		reply.Problem(w, http.StatusUnprocessableEntity, "the change is empty",
			"send deadline, budget, gpu_hours, wall_clock or priority", nil)
		return
	}
	id := r.PathValue("id")
	defer d.Turns.Alone("terms " + id)()
	c, no := changesOf(b, d.Control.Now())
	if no == nil {
		no = d.Settled(r.Context())
	}
	if no != nil {
		no.Answer(w)
		return
	}
	was, found := d.copyOf(id)
	switch {
	case !found:
		reply.UnknownJob(w, "", id)
		return
	case was.State().Over():
		over(was).Answer(w)
		return
	case was.Ending() != "" && !was.Pausing(): // a higher limit would come too late, and look as if it had been taken
		reply.Problem(w, http.StatusConflict, fmt.Sprintf("job %s is being ended", id),
			"once it is over, scrimp resume takes it up again, with other terms", nil)
		return
	}
	if no = d.usedUp(was, c); no == nil {
		d.Control.ReadUncommitted(func(m *core.Machine) { no = tooSoon(m, was, c, b.AcceptLate) })
	}
	if no != nil {
		no.Answer(w)
		return
	}
	if d.proposeEvent(w, r, id, core.JobUpdated{Job: id, Changes: c}) {
		d.Get(w, r)
	}
}

// copyOf returns a copy of the job in its present state.
func (d *Service) copyOf(id string) (j *core.Job, found bool) {
	found = d.Control.Job(id, func(_ *core.Machine, job *core.Job) { j = job.Copy() })
	return j, found
}

// usedUp returns which limit of its own a job with the new terms has used up.
func (d *Service) usedUp(j *core.Job, c core.Changes) (no *reply.Refusal) {
	d.Control.ReadUncommitted(func(m *core.Machine) {
		now, ok := m.Job(j.ID())
		if !ok { // the job is archived
			now = j
		}
		no = usedUp(m, now, c.Apply(*j.Terms()))
	})
	return no
}

// Resume continues a job that is paused, or that has ended without success.
func (d *Service) Resume(w http.ResponseWriter, r *http.Request) {
	b, ok := reply.Body[api.Resume](w, r)
	if !ok || !auth.Allowed(w, r, d.pace, oneChange) {
		return
	}
	id := r.PathValue("id")
	defer d.Turns.Alone("terms " + id)()
	e, no := d.resumeEvent(r, b)
	if no == nil {
		no = d.Settled(r.Context())
	}
	switch {
	case no != nil:
		no.Answer(w)
		return
	case d.hasSecrets(w, e, secret.Values{Secrets: b.Secrets, Shell: b.Shell}) && d.proposeEvent(w, r, id, e):
		d.Get(w, r)
	}
}

// resumeEvent returns the event that resumes a job.
func (d *Service) resumeEvent(r *http.Request, b api.Resume) (e core.JobResumed, no *reply.Refusal) {
	id := r.PathValue("id")
	j, found := d.copyOf(id)
	if !found {
		return e, reply.NoSuchJob("", id)
	}
	if no := mayResume(j); no != nil {
		return e, no
	}
	e.Job = id
	if is, err := d.Removed(r.Context(), id); err == nil && is.Work != nil {
		return e, &reply.Refusal{Status: http.StatusGone, Title: fmt.Sprintf("the work folder of %s was removed on %s to "+
			"make room", id, is.Work.Format("2006-01-02 15:04 MST")),
			Fix: "submit it again from its folder, with scrimp run"}
	}
	if no := checkBudgetRaised(j, b.Changes); no != nil {
		return e, no
	}
	if e.Changes, no = changesOf(b.Changes, d.Control.Now()); no != nil {
		return e, no
	}
	if no := d.usedUp(j, e.Changes); no != nil {
		return e, no
	}
	if e.Changes.IdleLimit, no = d.idleLimit(j, b.Idle); no != nil {
		return e, no
	}
	e.Spec, no = d.newSpec(r, j, b)
	return e, no
}

// checkBudgetRaised refuses to resume a job that its budget has stopped, unless the budget is raised.
func checkBudgetRaised(j *core.Job, c api.Changes) *reply.Refusal {
	if !j.State().Over() || j.Why() != string(policy.BudgetSpent) && j.Why() != string(policy.BudgetShort) {
		return nil
	}
	no := &reply.Refusal{Status: http.StatusConflict, Field: "budget", Title: "its budget has stopped it",
		Fix: "give it a larger one with --budget, or --budget none",
		Err: fmt.Errorf("it has %s", money.Short(j.Terms().Budget, j.Terms().Currency))}
	if c.Budget == nil {
		return no
	}
	if more, err := spec.ParseAmount(*c.Budget); err == nil && more.Cmp(j.Terms().Budget) <= 0 {
		return no
	}
	return nil
}

func mayResume(j *core.Job) *reply.Refusal {
	switch {
	case j.State() == core.Paused, j.Pausing():
		return nil
	case j.State() == core.Succeeded:
		return over(j)
	case !j.State().Over():
		return &reply.Refusal{Status: http.StatusConflict, Title: fmt.Sprintf("job %s is %s, not paused", j.ID(), j.State()),
			Fix: "scrimp update changes its terms while it waits or runs"}
	}
	return nil
}

// newSpec returns the job file with the changes to its environment; nil if there are none. A job that had ended
// needs the values of its secrets and shell variables again.
func (d *Service) newSpec(r *http.Request, j *core.Job, b api.Resume) (json.RawMessage, *reply.Refusal) {
	raw, _, err := d.Control.Spec(r.Context(), j.ID())
	if err != nil {
		return nil, &reply.Refusal{Status: http.StatusServiceUnavailable, Title: "cannot read the job file",
			Fix: "try again",
			Err: err}
	}
	file, err := spec.Decode(raw)
	if err != nil && len(raw) > 0 {
		return nil, &reply.Refusal{Status: http.StatusInternalServerError, Title: "cannot read the job file", Err: err,
			Fix: "submit the job again"}
	}
	for _, name := range file.Secrets {
		if _, ok := b.Secrets[name]; !ok && j.State().Over() {
			return nil, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "secrets",
				Title: "the secret " + name + " was forgotten when the job was over", Fix: "send it again"}
		}
	}
	if file, err = file.WithEnv(b.Env); err != nil {
		return nil, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "env",
			Title: "the environment is not valid",
			Fix:   "write NAME=VALUE", Err: err}
	}
	if j.State().Over() || len(b.Shell) > 0 {
		if no := jobs.Shell(auth.BySocket(r), b.Shell, file.Inherit); no != nil {
			return nil, no
		}
	}
	if len(b.Env) == 0 && b.Idle == nil {
		return nil, nil
	}
	if b.Idle != nil {
		idle, _ := spec.ParseDuration(*b.Idle) // idleLimit has checked it
		file.Idle = spec.Duration(idle)
	}
	text, err := json.Marshal(file)
	if err != nil {
		return nil, &reply.Refusal{Status: http.StatusInternalServerError, Title: "the job file was not written", Err: err}
	}
	return text, nil
}

// idleLimit returns the new idle limit of a session that is resumed, in market time; nil: it keeps its own.
func (d *Service) idleLimit(j *core.Job, text *string) (*time.Duration, *reply.Refusal) {
	if text == nil {
		return nil, nil
	}
	no := &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "idle", Title: "the value is not valid",
		Fix: "write a span above zero, such as 20m"}
	idle, err := spec.ParseDuration(*text)
	switch {
	case j.Terms().Session == "":
		no.Title, no.Fix = fmt.Sprintf("%s is not a session", j.ID()), "leave idle out"
	case err != nil:
		no.Err = err
	case idle <= 0:
		no.Err = fmt.Errorf("%q is not above zero", *text)
	case idle > quantity.Decade:
		no.Err = fmt.Errorf("%q is above ten years", *text)
	default:
		return new(d.Control.Clock().Stretch(idle)), nil
	}
	return nil, no
}

// hasSecrets stores the secrets of a resumption, or answers that it could not.
func (d *Service) hasSecrets(w http.ResponseWriter, e core.JobResumed, values secret.Values) bool {
	defer d.Turns.Alone("secrets " + e.Job)()
	if err := d.Vault.Keep(e.Job, values); err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "the secrets were not kept", "try again", err)
		return false
	}
	return true
}

// over refuses what a job that has ended no longer takes. Only a new job can follow one that has succeeded.
func over(j *core.Job) *reply.Refusal {
	id := j.ID()
	switch {
	case j.State() == core.Succeeded && j.Terms().Saves:
		return &reply.Refusal{Status: http.StatusConflict, Title: fmt.Sprintf("job %s has succeeded", id),
			Fix: "scrimp rerun " + id + " runs it again, and scrimp rerun --from " + id + " begins from its checkpoint"}
	case j.State() == core.Succeeded:
		return &reply.Refusal{Status: http.StatusConflict, Title: fmt.Sprintf("job %s has succeeded", id),
			Fix: "scrimp rerun " + id + " runs it again as a new job"}
	}
	return &reply.Refusal{Status: http.StatusConflict, Title: fmt.Sprintf("job %s has ended: %s", id, j.State()),
		Fix: "scrimp resume takes it up again, with other terms"}
}
