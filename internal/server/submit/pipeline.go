package submit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path"
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/stages"
	"scrimp/internal/server/submit/group"
	"scrimp/internal/server/submit/inputs"
	"scrimp/internal/server/workdir"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/pipeline"
)

// ofPipeline sets a placeholder command in the job file of a whole pipeline, which only names the pipeline, its
// owner and its budget.
func ofPipeline(b *api.Submission) *reply.Refusal {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b.Spec, &fields); err != nil {
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "spec", Err: err,
			Title: "the job of a pipeline is not an object",
			Fix:   "send name, team, project, tags and budget of the whole in spec"}
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
func (d *Service) stageJobs(r *http.Request, b api.Submission, whole spec.Job, t *core.GroupTerms) (
	specs []json.RawMessage, no *reply.Refusal) {
	ctx, probe := r.Context(), inputs.New(r, d.Control.Kinds())
	t.GPUHours, t.WallClock = whole.Budget.GPUHours, time.Duration(whole.Budget.WallClock)
	byName := map[string]int{}
	for i, s := range b.Pipeline.Stages {
		byName[s.Name] = i
	}
	now := d.Control.Now()
	t.Stages, specs = make([]core.Terms, 0, len(t.Pipeline.Stages)), make([]json.RawMessage, 0, len(t.Pipeline.Stages))
	for n := range t.Pipeline.Stages {
		stage := &t.Pipeline.Stages[n]
		i := byName[stage.Base()]
		one := api.Submission{Spec: b.Pipeline.Stages[i].Job, AcceptUnproven: b.AcceptUnproven, AcceptWait: b.AcceptWait}
		if len(one.Spec) == 0 {
			one.Spec = json.RawMessage("{}")
		}
		j, no := d.Reader.Job(&one)
		if no == nil {
			no = group.FitsStage(j)
		}
		if no == nil {
			no = d.checkOffers(one, j)
		}
		if no == nil {
			no = probe.Refuses(ctx, j, len(b.After)+len(stage.Needs) > 0)
		}
		if no != nil {
			no.Field = fmt.Sprintf("pipeline.stages[%d].job.%s", i, no.Field)
			no.Title = "stage " + stage.Name + ": " + no.Title
			return nil, no
		}
		j.Name, j.Team, j.Project, j.Tags = spec.Label(whole.Name+"-"+stage.Label()), whole.Team, whole.Project, whole.Tags
		j.Environment, j.ModelVersion = whole.Environment, whole.ModelVersion
		j.Outputs = slices.Clone(stage.Outs)
		if stage.Sample != "" {
			j.Env = maps.Clone(j.Env)
			if j.Env == nil {
				j.Env = map[string]string{}
			}
			j.Env[spec.SampleVariable] = stage.Sample
		}
		if stage.Program, no = group.Program(j, d.inherited(b, whole), whole.Name, stage.Warm); no != nil {
			return nil, no
		}
		text, err := j.Encode()
		if err != nil {
			return nil, &reply.Refusal{Status: http.StatusInternalServerError, Title: "a job file was not written", Err: err}
		}
		terms := d.terms(j, now)
		if most := t.GPUHours; most > 0 && (terms.GPUHours == 0 || terms.GPUHours > most) {
			terms.GPUHours = most // limits on GPU-hours count what a stage may use
		}
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
func (d *Service) inherited(b api.Submission, whole spec.Job) string {
	if len(whole.Inherit) == 0 {
		return ""
	}
	text, _ := json.Marshal(b.Shell) // marshaling strings cannot fail
	sum := hmac.New(sha256.New, []byte(d.Gate.Owner))
	sum.Write(text)
	return hex.EncodeToString(sum.Sum(nil))
}

// checkInputs refuses a pipeline with a stage input that is neither in the work folder nor an output of a stage.
func (d *Service) checkInputs(id string, b api.Submission, t *core.GroupTerms) *reply.Refusal {
	items, err := d.Uploads.Store.Items(id)
	if err != nil {
		return &reply.Refusal{Status: http.StatusServiceUnavailable, Title: "cannot read the work folder", Err: err,
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
	sent, positions := stages.NewTree(items), map[string]int{}
	for n := range t.Pipeline.Stages {
		positions[t.Pipeline.Stages[n].Name] = n
	}
	for i, s := range b.Pipeline.Stages {
		at := positions[s.Name]
		deps := slices.DeleteFunc(slices.Concat(t.Pipeline.Stages[at].Deps,
			t.Pipeline.Stages[at].Drift.Files()), isMade)
		warm := t.Pipeline.Stages[at].Warm
		there := sent
		if warm != nil {
			there = stages.NewTree(d.starts(t, *warm, items))
		}
		if warm != nil && there.Absent([]string{warm.To}) != "" {
			return &reply.Refusal{Status: http.StatusUnprocessableEntity,
				Field: fmt.Sprintf("pipeline.stages[%d].warm_start", i),
				Title: fmt.Sprintf("stage %s has nothing to begin with: no version of %s with %s is deployed, and %s is not "+
					"in the work folder", s.Name, t.Member.Name, warm.From, warm.To),
				Fix: "put there what the first run begins with: a model, or a file that the command takes for none"}
		}
		if dep := there.Absent(deps); dep != "" {
			return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: fieldOf(i, s.Deps, dep),
				Title: fmt.Sprintf("stage %s reads %s, which is not in the work folder and which no stage makes", s.Name, dep),
				Fix:   "correct the path, or take it back in .scrimpignore where that leaves it out"}
		}
	}
	if b.Pipeline.Sample != nil {
		inputs, err := stages.Sampled(t.Pipeline, items)
		if err == nil {
			err = stages.CheckRows(d.Uploads.Store, inputs, items)
		}
		if err != nil {
			return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "pipeline.sample", Err: err,
				Title: "the sample is not valid", Fix: "correct sample of the pipeline file"}
		}
	}
	return nil
}

// fieldOf names the place of a dependency of stage i.
func fieldOf(i int, deps []string, dep string) string {
	if at := slices.Index(deps, dep); at >= 0 {
		return fmt.Sprintf("pipeline.stages[%d].deps[%d]", i, at)
	}
	return fmt.Sprintf("pipeline.stages[%d].deps", i)
}

// starts returns the paths of a work folder with that of a warm start, if a deployed version has something for it.
func (d *Service) starts(t *core.GroupTerms, w pipeline.Warm, items []workdir.Item) []workdir.Item {
	d.Control.Read(func(m *core.Machine) {
		if job, _ := m.State().WarmOf(&state.Group{Terms: *t}, w); job != "" {
			items = append(slices.Clone(items), workdir.Item{Path: w.To})
		}
	})
	return items
}
