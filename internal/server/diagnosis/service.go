// Package diagnosis names the causes of poor machine use of the jobs that the server knows.
package diagnosis

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"scrimp/client"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/ask"
	"scrimp/internal/server/reply"
	"scrimp/internal/view/convert"
	"scrimp/internal/work/diagnose"
	"scrimp/internal/work/diagnose/class"
	"scrimp/internal/work/diagnose/profile"
)

const (
	mostDiagnosed = 200 // jobs in one answer
	mostProfiles  = 32  // of one job
	mostKept      = 1000
	// fresh is how long a diagnosis is kept, because a page that is open asks for it at each change.
	fresh = 30 * time.Second
)

// Service diagnoses jobs.
type Service struct {
	// Job and the other handlers answer requests for what the server knows of a job, and Jobs lists jobs.
	Job, Jobs, Telemetry, Receipt, Output, Spec http.HandlerFunc
	Now                                         func() time.Time
	// SeesTeam reports whether a team may have jobs that the caller may see.
	SeesTeam func(r *http.Request, team string) bool

	turn chan struct{} // has room for the jobs that are diagnosed at once
	mu   sync.Mutex
	kept map[string]kept // by job
}

// kept is a diagnosis and its time.
type kept struct {
	at     time.Time
	report client.Diagnosis
}

// New returns a service that has diagnosed no job yet.
func New(d *Service) *Service {
	d.turn, d.kept = make(chan struct{}, 2), map[string]kept{}
	return d
}

// Get diagnoses a job.
func (d *Service) Get(w http.ResponseWriter, r *http.Request) {
	report, no := d.report(r, r.PathValue("id"))
	if no != nil {
		no.Send(w)
		return
	}
	reply.JSON(w, report)
}

// Post diagnoses a job with profiles of the caller.
func (d *Service) Post(w http.ResponseWriter, r *http.Request) {
	body, ok := reply.Body[client.DiagnoseWith](w, r)
	if !ok {
		return
	}
	profiles := convert.To[[]profile.Profile](body.Profiles)
	wrong := error(nil)
	if len(profiles) > mostProfiles {
		wrong = fmt.Errorf("%d profiles are more than %d", len(profiles), mostProfiles)
	}
	for i, p := range profiles {
		if err := p.Check(); err != nil {
			wrong = cmp.Or(wrong, fmt.Errorf("profile %d: %w", i+1, err))
		}
	}
	if wrong != nil {
		reply.FieldProblem(w, http.StatusUnprocessableEntity, "profiles", wrong.Error(),
			"let scrimp diagnose JOB --profile FILE summarize the profiler's file", nil)
		return
	}
	end, no := d.wait(r)
	if no != nil {
		no.Send(w)
		return
	}
	defer end()
	in, no := d.evidence(r, r.PathValue("id"))
	if no != nil {
		no.Send(w)
		return
	}
	in.Profiles = profiles
	for _, p := range profiles {
		for _, o := range p.Operators {
			in.Framework = cmp.Or(in.Framework, class.FrameworkOf(o.Name))
		}
	}
	reply.JSON(w, convert.To[client.Diagnosis](diagnose.Diagnose(in)))
}

// List diagnoses the newest jobs of a team, or the running jobs, newest first.
func (d *Service) List(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	wanted, no := d.selected(q)
	if no != nil {
		no.Answer(w)
		return
	}
	var jobs []client.Job
	if no := ask.Get(r, d.Jobs, "/v1/jobs?"+wanted.Encode(), "", &jobs); no != nil {
		no.Send(w)
		return
	}
	team := q.Get("team")
	if len(jobs) == 0 && team != "" && !d.SeesTeam(r, team) {
		reply.FieldProblem(w, http.StatusNotFound, "team", fmt.Sprintf("there is no team %.60q that you may see", team),
			"scrimp teams lists the teams", nil)
		return
	}
	list := []client.Diagnosis{}
	for _, j := range slices.Backward(jobs) {
		report, no := d.report(r, j.ID)
		switch {
		case r.Context().Err() != nil:
			return
		case no != nil:
			report = client.Diagnosis{Job: j.ID, Use: map[string]float64{}, Causes: []client.DiagnosisCause{},
				Note: "The server cannot read what was measured of this job."}
		}
		list = append(list, report)
	}
	reply.JSON(w, list)
}

// moment parses a time, or a span until now.
func (d *Service) moment(text string) (at time.Time, ok bool) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, !at.IsZero()
	}
	span, err := spec.ParseDuration(text)
	return d.Now().Add(-span), err == nil && span > 0
}

// selected returns the query for the jobs to diagnose.
func (d *Service) selected(q url.Values) (url.Values, *reply.Refusal) {
	wanted := url.Values{"before": {""}, "limit": {fmt.Sprint(mostDiagnosed)}}
	if team := q.Get("team"); team != "" {
		wanted.Set("team", team)
	}
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > mostDiagnosed {
			return nil, &reply.Refusal{Status: http.StatusBadRequest, Field: "limit",
				Title: fmt.Sprintf("limit %.20q is not a number from 1 to %d", text, mostDiagnosed),
				Fix:   fmt.Sprintf("leave it out for %d jobs", mostDiagnosed)}
		}
		wanted.Set("limit", text)
	}
	switch q.Get("running") {
	case "1":
		wanted.Set("state", "running")
	case "":
	default:
		return nil, &reply.Refusal{Status: http.StatusBadRequest, Field: "running", Title: "running is 1 or left out",
			Fix: "write running=1 for running jobs alone"}
	}
	since := q.Get("since")
	if since == "" && q.Get("running") == "" {
		since = "7d"
	}
	if since == "" {
		return wanted, nil
	}
	at, ok := d.moment(since)
	if !ok {
		return nil, &reply.Refusal{Status: http.StatusBadRequest, Field: "since",
			Title: fmt.Sprintf("since %.40q is neither a span nor a time", since),
			Fix:   "write a span until now, such as 7d, or a time such as 2026-12-01T18:00:00Z"}
	}
	wanted.Set("since", at.UTC().Format(time.RFC3339))
	return wanted, nil
}

// report returns the diagnosis of a job, which may be as old as fresh. Readers who ask at once share it.
func (d *Service) report(r *http.Request, id string) (client.Diagnosis, *ask.Answer) {
	if report, known := d.known(id); known {
		return report, nil
	}
	end, no := d.wait(r)
	if no != nil {
		return client.Diagnosis{}, no
	}
	defer end()
	if report, known := d.known(id); known {
		return report, nil
	}
	in, no := d.evidence(r, id)
	if no != nil {
		return client.Diagnosis{}, no
	}
	report := convert.To[client.Diagnosis](diagnose.Diagnose(in))
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.kept) >= mostKept {
		clear(d.kept)
	}
	d.kept[id] = kept{d.Now(), report}
	return report, nil
}

// known returns a diagnosis that is fresh.
func (d *Service) known(id string) (client.Diagnosis, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	old, known := d.kept[id]
	return old.report, known && d.Now().Sub(old.at) < fresh
}

// wait waits for a turn, because evidence may need much memory.
func (d *Service) wait(r *http.Request) (end func(), no *ask.Answer) {
	select {
	case d.turn <- struct{}{}:
		return func() { <-d.turn }, nil
	case <-r.Context().Done():
		return nil, &ask.Answer{Err: r.Context().Err()}
	}
}
