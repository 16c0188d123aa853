package submit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"

	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/stages"
	"scrimp/internal/server/submit/group"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/groups"
	"scrimp/internal/work/schedule"
)

// ofPipeline sets a placeholder command in the job file of a whole pipeline, which only names the pipeline, its
// owner and its budget.
func ofPipeline(b *api.Submission) *reply.Refusal {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b.Spec, &fields); err != nil {
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "spec", Err: err,
			Title: "the job of a pipeline is no object", Fix: "send name, team, project, tags and budget of the whole in spec"}
	}
	for _, name := range []string{"command", "args"} {
		if _, there := fields[name]; there {
			return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: name, Fix: "write it into its stages",
				Title: "a pipeline as a whole runs nothing"}
		}
	}
	fields["command"] = json.RawMessage(`"true"`)
	b.Spec, _ = json.Marshal(fields) // marshaling raw JSON cannot fail
	return nil
}

// stageJobs adds the stages of a pipeline to its terms, and returns their job files. The stages have the owner of
// the pipeline.
func (d *Desk) stageJobs(b api.Submission, whole spec.Job, t *core.GroupTerms) (specs []json.RawMessage,
	no *reply.Refusal) {
	byName := map[string]int{}
	for i, s := range b.Pipeline.Stages {
		byName[s.Name] = i
	}
	now := d.Control.Now()
	for n := range t.Pipeline.Stages {
		stage := &t.Pipeline.Stages[n]
		i := byName[stage.Name]
		one := api.Submission{Spec: b.Pipeline.Stages[i].Job, AcceptUnproven: b.AcceptUnproven, AcceptWait: b.AcceptWait}
		if len(one.Spec) == 0 {
			one.Spec = json.RawMessage("{}")
		}
		j, no := d.jobOf(&one)
		if no == nil {
			no = group.FitsStage(j)
		}
		if no == nil {
			no = d.checkOffers(one, j)
		}
		if no != nil {
			no.Field = fmt.Sprintf("pipeline.stages[%d].job.%s", i, no.Field)
			no.Title = "stage " + stage.Name + ": " + no.Title
			return nil, no
		}
		j.Name, j.Team, j.Project, j.Tags = spec.Label(whole.Name+"-"+stage.Label()), whole.Team, whole.Project, whole.Tags
		j.Environment, j.ModelVersion = whole.Environment, whole.ModelVersion
		j.Outputs = slices.Clone(stage.Outs)
		if stage.Program, no = programOf(j, d.inherited(b, whole)); no != nil {
			return nil, no
		}
		text, err := j.Encode()
		if err != nil {
			return nil, &reply.Refusal{Status: http.StatusInternalServerError, Title: "a job file was not written", Err: err}
		}
		terms := d.terms(j, now)
		t.Grace, t.Rate = max(t.Grace, terms.Grace), max(t.Rate, terms.Need.MaxRate)
		t.Stages, specs = append(t.Stages, terms), append(specs, text)
	}
	if slices.ContainsFunc(t.Stages, func(s core.Terms) bool { return s.Need.MaxRate == 0 }) {
		t.Rate = 0 // the highest for sale
	}
	return specs, nil
}

// inherited returns a keyed digest of the values that programs inherit from the submitter's shell; "": none. The key
// keeps readers of the log from testing guesses of the values.
func (d *Desk) inherited(b api.Submission, whole spec.Job) string {
	if len(whole.Inherit) == 0 {
		return ""
	}
	text, _ := json.Marshal(b.Shell) // marshaling strings cannot fail
	sum := hmac.New(sha256.New, []byte(d.Gate.Owner))
	sum.Write(text)
	return hex.EncodeToString(sum.Sum(nil))
}

// checkInputs refuses a pipeline with a stage input that is neither in the work folder nor an output of a stage.
func (d *Desk) checkInputs(id string, b api.Submission, t *core.GroupTerms) *reply.Refusal {
	items, err := d.Uploads.Store.Items(id)
	if err != nil {
		return &reply.Refusal{Status: http.StatusServiceUnavailable, Title: "the work folder was not read", Err: err,
			Fix: "submit it again"}
	}
	made, above := map[string]bool{}, map[string]bool{} // outputs of stages, and their parent folders
	for i := range t.Pipeline.Stages {
		for _, o := range t.Pipeline.Stages[i].Outs {
			made[o] = true
			for up := path.Dir(o); up != "."; up = path.Dir(up) {
				above[up] = true
			}
		}
	}
	isMade := func(dep string) bool {
		for up := dep; up != "."; up = path.Dir(up) {
			if made[up] {
				return true
			}
		}
		return above[dep]
	}
	for i, s := range b.Pipeline.Stages {
		at := t.Pipeline.Find(s.Name)
		deps := slices.DeleteFunc(slices.Clone(t.Pipeline.Stages[at].Deps), isMade)
		if dep := stages.Absent(items, deps); dep != "" {
			return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: fmt.Sprintf("pipeline.stages[%d].deps", i),
				Title: fmt.Sprintf("stage %s reads %s, which is not in the work folder and which no stage makes", s.Name, dep),
				Fix:   "correct the path, or take it back in .scrimpignore where that leaves it out"}
		}
	}
	return nil
}

// programOf returns a digest of the parts of a job, other than its inputs, that determine its outputs.
func programOf(j spec.Job, inherited string) (string, *reply.Refusal) {
	text, err := json.Marshal(struct {
		Command, Setup, Image, Inherited string
		Args                             []string
		Env                              map[string]string
	}{j.Command, j.Setup, j.Image, inherited, j.Args, j.Env})
	if err != nil {
		return "", &reply.Refusal{Status: http.StatusInternalServerError, Title: "a stage has no key", Err: err}
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// scheduled returns the terms of a schedule with runs of the given terms.
func (d *Desk) scheduled(run *core.GroupTerms, b *api.Schedule) (t core.GroupTerms, no *reply.Refusal) {
	y := schedule.Spec{Cron: b.Cron, Zone: b.Zone, Runs: b.Runs, NoCatchUp: b.NoCatchUp}
	if b.Until != nil {
		y.Until = *b.Until
	}
	if err := y.Check(d.Control.Now()); err != nil {
		return t, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "pipeline.schedule", Err: err,
			Title: "the schedule is not valid", Fix: "correct it"}
	}
	if b.Budget.Sign() <= 0 {
		return t, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "pipeline.schedule.budget",
			Title: "a schedule needs a budget",
			Fix:   "write how much all runs together may cost, as budget: $200 of the schedule"}
	}
	var worst money.Amount
	d.Control.Read(func(m *core.Machine) { worst = m.WorstOf(*run) })
	if b.Budget.Cmp(worst) < 0 {
		return t, &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "pipeline.schedule.budget",
			Title: fmt.Sprintf("one run can cost %s with the grace and the minimum charges of its stages, and all runs "+
				"together may cost %s", money.Format(worst, money.USD, 6), money.Short(b.Budget, money.USD)),
			Fix: "give all runs together more, or one run less"}
	}
	t = *run
	t.Kind, t.Schedule, t.Run, t.Pipeline, t.Stages = groups.Schedule, &y, run, nil, nil
	t.Budget, t.HasBudget = b.Budget, true
	return t, nil
}
