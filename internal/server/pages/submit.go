package pages

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"scrimp/client"
	"scrimp/internal/job/jobimport"
	"scrimp/internal/job/spec"
	indexes "scrimp/internal/work/groups"
)

// submitPage plans a job, from a form or a job file, and submits it.
type submitPage struct {
	File   bool        // the reader writes a job file; otherwise they fill a form
	Fields []formField // of the form
	Text   string      // the job file
	Rerun  string      // job whose work folder the new one gets
	From   string      // checkpoint that it begins from
	Jobs   []string    // checkpoints of Rerun, for From
	Old    *client.Job // the job that is run again

	System jobimport.System // the other system whose file was converted; "": none
	Lost   []jobimport.Lost // what the conversion left out

	Title   string // what is wrong; "": nothing
	Fix     string
	Wrong   []client.JobProblem // besides those of Fields
	Plan    *planView
	Confirm *confirm
}

// confirm is the form that submits a job. It repeats what was planned.
type confirm struct {
	Text, Key, Rerun, From string
	Secrets                []string // names of values that the reader must give
	Unproven, Wait         bool     // the API asks to accept this
	May                    bool     // the reader may submit in some team
	Command                string
}

// mostText bounds a job file in bytes, as in the API.
const mostText = 1 << 20

// command returns the commands that do the same.
func (p *submitPage) command() string {
	if p.Rerun == "" {
		return "scrimp plan job.yaml, then scrimp run job.yaml"
	}
	return commandOf("scrimp rerun "+p.Rerun, url.Values{"from": {p.From}}, "from")
}

// submitAt is the page with an answer to a form.
var submitAt = page{file: "submit", path: "/submit", title: "Submit a job", still: true, request: planRequests}

// planRequests are the requests that do what the page does.
const planRequests = "POST /v1/plan, then POST /v1/jobs"

// submitForm returns the page before anything is sent.
func submitForm(v *visit) (any, error) {
	q := v.r.URL.Query()
	p := &submitPage{File: q.Get("as") == "file", Rerun: strings.TrimSpace(q.Get("rerun")), From: q.Get("from")}
	p.Fields = formFields(q, v.teams())
	if p.Rerun == "" {
		return p, nil
	}
	p.File = true
	err := p.again(v)
	return p, err
}

// teams lists the teams that the reader may submit jobs for, if there are several.
func (v *visit) teams() (names []string) {
	var list []client.Team
	if v.get("/v1/teams", &list) != nil {
		return nil // the field is missing; the job file can name the team
	}
	for _, t := range list {
		if atLeast(v.role(t.Name), client.Submitter) {
			names = append(names, t.Name)
		}
	}
	if len(names) < 2 {
		return nil
	}
	return names
}

// again fills the page with a job that is to run again.
func (p *submitPage) again(v *visit) error {
	at := "/v1/jobs/" + url.PathEscape(p.Rerun)
	var old client.Job
	if err := v.get(at, &old); err != nil {
		return err
	}
	var text json.RawMessage
	if err := v.get(at+"/spec", &text); err != nil {
		return err
	}
	j, err := spec.Decode(text)
	if err == nil && old.Group != "" && old.Index != nil {
		j, err = v.member(j, old)
	}
	if err != nil {
		return err
	}
	yaml, err := j.YAML()
	if err != nil {
		return err
	}
	p.Text, p.Old = string(yaml), &old
	p.checkpoints(v)
	return nil
}

// member returns the job of an array's member with the variables of that member.
func (v *visit) member(j spec.Job, old client.Job) (spec.Job, error) {
	var g client.Group
	if err := v.get("/v1/groups/"+url.PathEscape(old.Group), &g); err != nil {
		return j, err
	}
	of := indexes.Indexes{Members: g.Members}
	if g.Array != nil {
		of.From, of.Step = g.Array.From, g.Array.Step
	}
	env, err := indexes.Again(indexes.Kind(g.Kind), g.ID, old.ID, of, *old.Index)
	if err != nil {
		if alone, ok := errors.AsType[indexes.MemberError](err); ok {
			err = &client.Problem{Status: http.StatusConflict, Field: "rerun", Title: alone.Cause, Fix: alone.Fix}
		}
		return j, err
	}
	return j.WithEnv(env)
}

// checkpoints lists what a job that runs again can begin from.
func (p *submitPage) checkpoints(v *visit) {
	var saved []client.Checkpoint
	if v.get("/v1/jobs/"+url.PathEscape(p.Rerun)+"/checkpoints", &saved) != nil || len(saved) == 0 {
		return // on an error, the reader can still name one
	}
	p.Jobs = append(p.Jobs, p.Rerun)
	for _, c := range saved {
		if c.Damaged == "" {
			p.Jobs = append(p.Jobs, p.Rerun+"@"+c.Name)
		}
	}
}

// submit plans or submits the job of a form.
func (s *Site) submit(w http.ResponseWriter, r *http.Request) {
	guard(w)
	if !s.mayPost(w, r) {
		return
	}
	v, err := s.visit(r)
	if err != nil {
		s.fail(w, r, v, err)
		return
	}
	f := r.PostForm
	p := &submitPage{File: f.Get("as") == "file", Text: newlines(f.Get("text")), Rerun: strings.TrimSpace(f.Get("rerun")),
		From: strings.TrimSpace(f.Get("from")), Fields: formFields(f, v.teams())}
	if p.Rerun != "" {
		p.checkpoints(v)
	}
	if f.Get("act") == "submit" {
		id, err := p.send(v, f)
		if err == nil {
			http.Redirect(w, r, "/jobs/"+url.PathEscape(id), http.StatusSeeOther)
			return
		}
		p.refused(v, f, err)
	} else if err := p.draft(v); err == nil && f.Get("act") == "json" {
		var plan json.RawMessage
		if err = p.ask(v, &plan); err == nil {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(plan)
			return
		}
		p.says(err)
	} else if err == nil && f.Get("act") == "plan" {
		err = p.plan(v)
		p.says(err)
	} else {
		p.says(err)
	}
	send(w, r, http.StatusOK, s.frame(v, submitAt, p))
}

// newlines undoes how browsers send the ends of lines.
func newlines(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// errInvisible refuses a text whose meaning the reader cannot see.
var errInvisible = &client.Problem{Status: http.StatusUnprocessableEntity, Title: "the text has invisible characters",
	Fix: "remove them: type the line again instead of pasting it"}

// draft makes the job file: it converts those of other systems, and writes that of a form.
func (p *submitPage) draft(v *visit) (err error) {
	if !p.File {
		if p.Text, err = written(p.Fields, v.now); err != nil {
			return err
		}
	}
	if strings.TrimSpace(p.Text) == "" {
		return &client.Problem{Status: http.StatusUnprocessableEntity, Title: "the job file is empty",
			Fix: "write a line such as command: exec python3 train.py, or choose Form"}
	}
	if len(p.Text) > mostText {
		return &client.Problem{Status: http.StatusUnprocessableEntity, Title: "the job file is longer than 1 MiB",
			Fix: "put what it contains into files of the work folder, and submit it with scrimp run"}
	}
	if strings.Map(sanitize, p.Text) != p.Text {
		return errInvisible
	}
	system, other := jobimport.Detect(p.Text)
	if !p.File || !other {
		return nil
	}
	got, err := jobimport.Convert("pasted", []byte(p.Text))
	if err != nil {
		return &client.Problem{Status: http.StatusUnprocessableEntity,
			Title: fmt.Sprintf("the %s file was not converted", system), Detail: err.Error(),
			Fix: "correct it, or write a job file of scrimp"}
	}
	p.System, p.Lost, p.Text = system, got.Lost, string(got.YAML)
	return nil
}

// sources returns what is wrong with the jobs from which the new one gets its work folder and its checkpoint.
func (p *submitPage) sources(v *visit) error {
	if p.Rerun != "" {
		var j client.Job
		if err := v.get("/v1/jobs/"+url.PathEscape(p.Rerun), &j); err != nil {
			return at("rerun", err)
		}
	}
	if p.From == "" {
		return nil
	}
	job, name, _ := strings.Cut(p.From, "@")
	var saved []client.Checkpoint
	if err := v.get("/v1/jobs/"+url.PathEscape(job)+"/checkpoints", &saved); err != nil {
		return at("from", err)
	}
	if !slices.ContainsFunc(saved, func(c client.Checkpoint) bool {
		return c.Damaged == "" && (name == "" || name == "latest" || c.Name == name)
	}) {
		return &client.Problem{Status: http.StatusNotFound, Field: "from", Title: "there is no checkpoint " + p.From,
			Fix: "leave it out, or name one of those that the page of " + job + " lists"}
	}
	return nil
}

// at returns the problem of a field.
func at(field string, err error) error {
	p := *asProblem(err)
	p.Field = field
	return &p
}

// plan asks the API for the plan, and makes the form that confirms it.
func (p *submitPage) plan(v *visit) error {
	var plan client.Plan
	if err := p.ask(v, &plan); err != nil {
		return err
	}
	p.Plan = viewOf(plan)
	p.confirm(v, newKey())
	return nil
}

// ask fetches the plan from the API.
func (p *submitPage) ask(v *visit, plan any) error {
	if err := p.sources(v); err != nil {
		return err
	}
	_, err := v.send(http.MethodPost, "/v1/plan", "application/yaml", []byte(p.Text), plan)
	return err
}

// confirm makes the form that submits the job file.
func (p *submitPage) confirm(v *visit, key string) {
	p.Confirm = &confirm{Text: p.Text, Key: key, Rerun: p.Rerun, From: p.From, Command: p.command(),
		May: atLeast(v.me.Best, client.Submitter)}
	if j, _, err := spec.Parse(spec.Run, "job.yaml", []byte(p.Text), "", v.now.UTC()); err == nil {
		p.Confirm.Secrets = j.Secrets
	}
}

// newKey returns a random key, which the API accepts once.
func newKey() string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // cannot fail
	return hex.EncodeToString(b)
}

// send submits the job that the reader has confirmed, and returns its id.
func (p *submitPage) send(v *visit, f url.Values) (id string, err error) {
	if strings.Map(sanitize, p.Text) != p.Text {
		return "", errInvisible
	}
	text, err := json.Marshal(p.Text)
	if err != nil {
		return "", err
	}
	b := client.Submission{Key: f.Get("key"), Spec: text, Rerun: p.Rerun, From: p.From,
		AcceptUnproven: f.Get("unproven") != "", AcceptWait: f.Get("wait") != ""}
	for name, values := range f {
		if secret, ok := strings.CutPrefix(name, "secret-"); ok && len(values) == 1 && values[0] != "" {
			if b.Secrets == nil {
				b.Secrets = map[string]string{}
			}
			b.Secrets[secret] = values[0]
		}
	}
	var j client.Job
	_, err = v.ask(http.MethodPost, "/v1/jobs", b, &j)
	return j.ID, err
}

// refused says why the API refuses a submission, and offers to send it again with the same key.
func (p *submitPage) refused(v *visit, f url.Values, err error) {
	p.File = true
	p.says(err)
	p.confirm(v, f.Get("key"))
	field := asProblem(err).Field
	p.Confirm.Unproven = field == "accept_unproven" || f.Get("unproven") != ""
	p.Confirm.Wait = field == "accept_wait" || f.Get("wait") != ""
}

// says shows an error beside the fields that caused it.
func (p *submitPage) says(err error) {
	if err == nil {
		return
	}
	problem := asProblem(err)
	var list spec.Problems
	if errors.As(err, &list) {
		problem = &client.Problem{Status: http.StatusUnprocessableEntity, Title: "the job is not valid",
			Fix: "correct the fields that are named"}
		for _, one := range list {
			problem.Problems = append(problem.Problems,
				client.JobProblem{Field: one.Field, Line: one.Line, Column: one.Column, Cause: one.Cause, Fix: one.Fix})
		}
	}
	p.Title = problem.Title
	if len(problem.Problems) == 0 && problem.Field == "" {
		p.Fix = problem.Fix
		if problem.Detail != "" {
			p.Title += ": " + problem.Detail
		}
		return
	}
	if p.Wrong = problemsOf(problem); !p.File {
		p.Wrong = blame(p.Fields, problem)
	}
}

// Marked reports whether the page marks a field or a line.
func (p *submitPage) Marked() bool {
	return len(p.Wrong) > 0 || slices.ContainsFunc(p.Fields, func(f formField) bool { return len(f.Wrong) > 0 })
}

// Line returns a line of the job file, from 1; "" if there is none.
func (p *submitPage) Line(n int) string {
	lines := strings.Split(p.Text, "\n")
	if n < 1 || n > len(lines) {
		return ""
	}
	return lines[n-1]
}

// planView is a plan for people.
type planView struct {
	client.Plan
	Cost, Finish template.HTML        // drawings of the ranges
	Because      string               // why it begins where it does
	Opens        bool                 // it begins when its window opens
	Offers       []client.PlanRefusal // that it does not take, the cheapest first; unknown costs last
	MoreOffers   int                  // that the page leaves out
	Never        bool                 // the job ends as soon as it starts
}
