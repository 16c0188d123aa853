package submit

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/budgets"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/submit/group"
	"scrimp/internal/server/submit/request"
	"scrimp/internal/wire/api"
)

// ofGroup returns the field that makes a submission a group of jobs; "" for one job.
func ofGroup(b api.Submission) string {
	switch {
	case b.Pipeline != nil:
		return "pipeline"
	case b.Study != nil:
		return "study"
	case b.Array != "":
		return "array"
	}
	return ""
}

// Group submits a job as an array or a study, or stages as a pipeline.
func (d *Service) Group(w http.ResponseWriter, r *http.Request) {
	b, ok := request.Submission(w, r)
	if !ok || d.refuseWhenFull(w, r) {
		return
	}
	if b.Pipeline != nil {
		if no := ofPipeline(&b); no != nil {
			no.Answer(w)
			return
		}
	}
	terms, field, err := group.Terms(b)
	if err == nil && b.From != "" {
		field, err = "from", fmt.Errorf("a group cannot start from a checkpoint: submit a single job from %s", b.From)
	}
	if err == nil && b.Proposal != nil {
		field, err = "proposal", errors.New("a group cannot be a proposal: propose a single job")
	}
	if err != nil {
		reply.FieldProblem(w, http.StatusUnprocessableEntity, field, "the "+ofGroup(b)+" is not valid", "correct "+field, err)
		return
	}
	id, ok := d.take(w, r, b, func(r *http.Request, b api.Submission, j spec.Job) (string, *reply.Refusal) {
		return d.openGroup(r, b, j, terms)
	})
	if !ok {
		return
	}
	v, _ := d.Groups.Visible(auth.CallerOf(r), id)
	reply.JSON(w, v)
}

// noIndex refuses an array whose job sets the variables that its members get.
func noIndex(b api.Submission, j spec.Job) *reply.Refusal {
	for _, name := range slices.Sorted(maps.Keys(j.Env)) {
		if b.Array != "" && strings.HasPrefix(name, spec.ArrayPrefix) {
			return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "env." + name,
				Title: name + " is set by scrimp for each member of an array", Fix: "leave it out"}
		}
	}
	return nil
}

// openGroup names a group, stores its work folder, and opens it in the log.
func (d *Service) openGroup(r *http.Request, b api.Submission, j spec.Job, t core.GroupTerms) (id string,
	no *reply.Refusal) {
	id, done, err := d.Names.Reserve(r.Context(), j.Name)
	if err != nil {
		return id, unread(err)
	}
	defer done()
	if no := noIndex(b, j); no != nil {
		return id, no
	}
	member := d.terms(j, d.Control.Now())
	if member.HasBudget && member.DeadlineFirst {
		return id, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "first",
			Title: "the budget of a group comes before its deadline", Fix: "leave out first: deadline, or the budget"}
	}
	t.Owner, t.Budget, t.HasBudget, t.Member = member.Owner, member.Budget, member.HasBudget, &member
	t.Grace, t.Rate = member.Grace, member.Need.MaxRate
	if unfit := group.Fits(&t, j); unfit != nil {
		return id, unfit
	}
	if t.Study != nil {
		var least money.Amount
		d.Control.Read(func(m *core.Machine) { least = m.LeastOfTrial(&member) })
		if short := group.Short(&t, least); short != nil {
			return id, short
		}
	}
	run, specs, no := d.runOf(r, b, j, &t)
	if no != nil {
		return id, no
	}
	if t.After, no = d.after(r, b.After); no != nil {
		return id, no
	}
	member.Budget, member.HasBudget = core.Terms{}.Budget, false // each member gets its share
	if t.Study != nil {
		member.GPUHours = t.Study.GPUHours // limits on GPU-hours count what a trial may use
	}
	c := auth.CallerOf(r)
	body := core.GroupOpened{Group: id, Terms: t, Spec: b.Spec, Specs: specs}
	e := d.Gate.Event(r, body)
	e.Key = b.Key
	if no = d.Settled(r.Context()); no == nil {
		no = d.wouldRefuse(c, e)
	}
	if no == nil {
		body.Stored, no = d.store(r, id, j.Team, b)
		e.Body = body
	}
	if no == nil && run.Pipeline != nil {
		no = d.checkInputs(id, b, run)
	}
	lost := false // the outcome of the write is unknown
	if no == nil {
		auth.CallOf(r).Act.Detail = fingerprint(b)
		if err := d.Gate.Propose(r, id, e); err != nil {
			no = budgets.Denied(c, err, "the group was not written", "submit it again with the same key")
			lost = no.Status >= http.StatusInternalServerError
		}
	}
	if no != nil && !lost {
		_ = d.Uploads.Store.Drop(id) // on an error, the next submission of that name replaces it
		d.Forget(id)
	}
	return id, no
}

// runOf returns the terms of a single run of a group, and the job files of a pipeline's stages. The run of a pipeline
// without a schedule, and of any other group, is the group t itself; with a schedule t becomes the schedule.
func (d *Service) runOf(r *http.Request, b api.Submission, j spec.Job, t *core.GroupTerms) (run *core.GroupTerms,
	specs []json.RawMessage, no *reply.Refusal) {
	if t.Pipeline == nil {
		return t, nil, nil
	}
	if specs, no = d.stageJobs(r, b, j, t); no == nil {
		no = group.ShortPipeline(t)
	}
	if no != nil || b.Pipeline.Schedule == nil {
		return t, specs, no
	}
	run = new(*t)
	*t, no = d.scheduled(r.Context(), auth.CallerOf(r), run, b.Pipeline.Schedule)
	return run, specs, no
}

// after parses the dependencies of a submission. It omits those that are met.
func (d *Service) after(r *http.Request, list []string) (after []state.Dependency, no *reply.Refusal) {
	wrong := func(format string, a ...any) *reply.Refusal {
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "after",
			Title: "it cannot run after that job", Err: fmt.Errorf(format, a...),
			Fix: "name jobs as scrimp jobs lists them, such as prep-2 or prep-2:any, or arrays as scrimp groups does"}
	}
	for _, text := range list {
		on, how, said := strings.Cut(text, ":")
		if said && how != "ok" && how != "any" {
			return nil, wrong("%q: write %s, which must succeed, or %s:any", text, on, on)
		}
		if slices.ContainsFunc(after, func(d state.Dependency) bool { return d.On == on }) {
			return nil, wrong("%s is named twice", on)
		}
		dep := state.Dependency{On: on, Any: how == "any"}
		c := auth.CallerOf(r)
		if seen, archived, ok := d.Groups.Succeeded(c, on); seen {
			if archived && !ok && !dep.Any {
				return nil, wrong("%s is over and not all of its members succeeded: write %s:any", on, on)
			}
			if !archived {
				after = append(after, dep)
			}
			continue
		}
		v, seen := d.Jobs.Visible(c, on)
		var here bool
		d.Control.Read(func(m *core.Machine) { _, here = m.Job(on) })
		switch {
		case !seen:
			return nil, wrong("there is no job or group %q", on)
		case here:
			after = append(after, dep)
		case v.State != string(core.Succeeded) && !dep.Any:
			return nil, wrong("%s is over and did not succeed: resume it first, or write %s:any", on, on)
		}
	}
	return after, nil
}
