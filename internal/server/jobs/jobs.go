package jobs

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/reply"
	"scrimp/internal/wire/api"
)

// find returns the job as the API shows it.
func (d *Service) find(id string) (api.Job, bool) {
	var v api.Job
	found := d.Control.Job(id, func(m *core.Machine, j *core.Job) { v = d.Show(m, j) })
	if found {
		d.fresh(&v)
	}
	return v, found
}

func (d *Service) job(w http.ResponseWriter, r *http.Request) (api.Job, bool) {
	j, ok := d.find(r.PathValue("id"))
	if !ok {
		reply.UnknownJob(w, "", r.PathValue("id"))
	}
	return j, ok
}

// Get returns a job.
func (d *Service) Get(w http.ResponseWriter, r *http.Request) {
	if j, ok := d.job(w, r); ok {
		j.Notices, j.Undelivered = d.Notices(j.ID)
		d.explainSparing(&j)
		reply.JSON(w, j)
	}
}

// Watch streams the job at each change, and at least once a second while it is live.
func (d *Service) Watch(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	for last := uint64(0); ; {
		changed := d.Control.Changed()
		j, ok, err := d.feed.one(r.Context(), r.PathValue("id"))
		switch {
		case last > 0 && (err != nil || !ok):
			return
		case err != nil:
			reply.Problem(w, http.StatusServiceUnavailable, "cannot read the log", "try again", err)
			return
		case !ok:
			reply.UnknownJob(w, "", r.PathValue("id"))
			return
		}
		sent := 0
		if j.number != last { // otherwise only other jobs have changed
			last, sent = j.number, len(j.text)
			if reply.Flush(w, append(slices.Clip(j.text), '\n')) != nil {
				return
			}
		}
		if j.closed || d.watching.Next(r, changed, beatEvery, sent) != nil {
			return
		}
	}
}

// End ends a job.
func (d *Service) End(w http.ResponseWriter, r *http.Request) {
	j, ok := d.job(w, r)
	if !ok {
		return
	}
	b, ok := reply.Body[api.End](w, r)
	if !ok {
		return
	}
	if j.Closed { // nothing is left to end; repeating it leaves no trace
		auth.CallOf(r).Written = true
		reply.JSON(w, j)
		return
	}
	id := r.PathValue("id")
	if b.Save {
		if no := d.Undecided(id); no != nil {
			no.Answer(w)
			return
		}
	}
	e := d.Gate.Event(r, core.JobEnded{Job: id, Save: b.Save})
	if err := d.Gate.Propose(r, id, e); err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "the change was not saved", "try again", err)
		return
	}
	d.Get(w, r)
}

// Undecided refuses a change of a job whose machine belongs to an earlier incarnation of the log and awaits a decision:
// its agent may belong to another server.
func (d *Service) Undecided(id string) (no *reply.Refusal) {
	d.Control.Job(id, func(_ *core.Machine, j *core.Job) { no = Undecided(j) })
	return no
}

// Undecided is Service.Undecided for a job.
func Undecided(j *core.Job) *reply.Refusal {
	if j.Live() == nil || !j.Live().Disowned() {
		return nil
	}
	return &reply.Refusal{Status: http.StatusConflict,
		Title: fmt.Sprintf("the machine of job %s is of an earlier incarnation of the log, and another server may have it",
			j.ID()),
		Fix: "scrimp adopt or scrimp release says whose it is; scrimp cancel ends the job here at once"}
}

// deadline sets the deadline of a job, and the time that was left at its end or is left now.
func (d *Service) deadline(j *core.Job, v *api.Job, now time.Time) {
	at := j.Terms().Deadline
	if at.IsZero() {
		return
	}
	end := now
	if j.State().Over() {
		end = j.Finished()
	}
	left := at.Sub(end).Seconds()
	v.Deadline, v.DeadlineMarket, v.TimeLeft = new(d.Control.Clock().ToWall(at)), new(at), &left
}

// Show returns the job as the API shows it, from the core's state alone.
func (d *Service) Show(m *core.Machine, j *core.Job) api.Job {
	clock, now := d.Control.Clock(), d.Control.Now()
	v := api.Job{
		ID: j.ID(), Name: j.Terms().Name, State: string(j.State()), Why: j.Why(), Detail: j.Detail(), Closed: j.Priced(),
		Submitted: clock.ToWall(j.Submitted()),
		Currency:  j.Terms().Currency, Spent: j.Spent(now), Step: j.Step(), Metrics: j.Metrics(), SavedStep: j.SavedStep(),
		Speed: clock.Speed, Outputs: j.Outputs(), OutputsDigest: j.OutputsDigest(),
		Exit: j.Exit(), Tags: j.Terms().Owner.Tags, Team: j.Terms().Owner.Team,
		Project: j.Terms().Owner.Project, User: j.User(), Approval: d.approval(j), Session: j.Terms().Session,
	}
	if limit := j.Terms().IdleLimit; limit > 0 {
		v.IdleLimit = new(clock.Shrink(limit).Seconds())
		if a := j.Live(); a != nil && !a.IdleFrom().IsZero() {
			v.IdleSince = new(clock.ToWall(a.IdleFrom()))
		}
	}
	if v.Group = j.Terms().Group; v.Group != "" {
		v.Index = new(j.Terms().Index)
	}
	d.explainWait(m, j, &v)
	explainPause(j, &v)
	d.explainPreemption(m, j, &v)
	v.Detail = strings.TrimSpace(v.Detail + " " + saveTrouble(j.SaveTrouble()))
	if rate := j.Rate(); rate > 0 {
		v.StepRate = &rate
		if j.Pace().Looks > 0 {
			spread := j.Pace().Spread()
			v.StepSpread = &spread
		}
	}
	if !j.Finished().IsZero() {
		v.Finished = new(clock.ToWall(j.Finished()))
	}
	d.deadline(j, &v, now)
	if j.Terms().HasBudget {
		v.Budget = new(j.Terms().Budget)
	}
	if j.Total() > 0 {
		v.Total = new(j.Total())
	}
	for i, a := range j.Attempts() {
		if at := a.From(); i == 0 && !at.IsZero() {
			v.Started = new(clock.ToWall(at))
		}
		v.Attempts++
		if a.Taken() {
			v.Interruptions++
		}
	}
	runsOn(j, &v, now)
	return v
}

// runsOn shows the offer that a job has requested, or the machine that it has.
func runsOn(j *core.Job, v *api.Job, now time.Time) {
	if asked := j.Asked(); asked != nil {
		v.Offer, v.Phase = string(asked.Offer()), string(state.StageRequested)
		if why := asked.Detail(); why != "" {
			v.Detail = why
		}
		return
	}
	a := j.Live()
	if a == nil {
		return
	}
	v.Machine, v.Offer, v.Phase, v.Rate = a.Instance(), string(a.Offer()), string(a.Stage()), new(a.Rate())
	v.Nodes = nodesOf(a, now)
	at := market.Offer{Provider: a.Provider(), Region: a.Region()}
	if cost, ok := j.Terms().Need.ReadCosts(&at, a.Nodes()); ok && !cost.IsZero() {
		v.Reads = &cost
	}
	if a.Disowned() {
		v.Detail = "its machine is of an earlier incarnation of the log: scrimp adopt or scrimp release says whose it is"
	}
}

// nodesOf returns the machines of an attempt that has several.
func nodesOf(a *core.Attempt, now time.Time) (list []api.JobNode) {
	if a.Nodes() == 1 {
		return nil
	}
	for _, k := range a.Tasks() {
		list = append(list, api.JobNode{Node: k.Rank(), Machine: k.Instance(), Phase: string(k.Phase()), Rate: k.Rate(),
			Cost: k.Cost(now).Add(k.Rules()), Taken: k.Taken()})
	}
	return list
}

// explainPause describes how a paused or pausing job continues.
func explainPause(j *core.Job, v *api.Job) {
	switch {
	case j.Pausing():
		v.Detail = "it saves a checkpoint and then pauses"
		if !j.Terms().Saves {
			v.Detail = "its program ends, then it pauses; without checkpoints it starts from the beginning when it is resumed"
		}
	case j.State() == core.Paused:
		v.Detail = "scrimp resume " + j.ID() + " takes it up"
		if !j.Terms().Deadline.IsZero() {
			v.Detail += "; its deadline runs on"
		}
	}
}

// saveTrouble says why a job's newest checkpoint is incomplete; "": it is complete.
func saveTrouble(why string) string {
	if why == "" {
		return ""
	}
	return "Not saved: " + why + "."
}

// fresh adds what is newer than the last event.
func (d *Service) fresh(v *api.Job) {
	if v.Phase != "" {
		attempt, known := "", ""
		d.Control.Job(v.ID, func(_ *core.Machine, j *core.Job) {
			known = j.SaveTrouble()
			if j.Attempt() != nil {
				attempt = j.Attempt().ID()
				if a := j.Attempt(); !a.Started().IsZero() && v.Step > a.First() {
					if wall := d.Control.Clock().Shrink(d.Control.Now().Sub(a.Started())).Seconds(); wall > 1 {
						v.StepsPerSecond = new(float64(max(v.Step, j.Step())-a.First()) / wall)
					}
				}
			}
		})
		l, ok := d.Control.Latest(attempt)
		if ok && l.Step.Step > 0 {
			v.Step, v.Metrics = l.Step.Step, l.Step.Metrics
		}
		if ok && l.Trouble != "" {
			if strings.Contains(l.Trouble, known) { // do not repeat it
				v.Detail = strings.TrimSuffix(v.Detail, saveTrouble(known))
			}
			v.Detail = strings.TrimSpace(v.Detail + " On the machine: " + l.Trouble + ".")
		}
	}
	if v.State == string(core.Queued) {
		v.Estimate = d.Odds.Estimate(v.ID)
	}
	if v.State == string(core.Running) {
		v.Outlook = d.Odds.Outlook(v.ID)
		if v.Deadline != nil {
			v.Odds = d.Odds.InTime(v.ID)
		}
	}
}

// Spec returns the validated job file.
func (d *Service) Spec(w http.ResponseWriter, r *http.Request) {
	spec, ok, err := d.Control.Spec(r.Context(), r.PathValue("id"))
	if err != nil {
		reply.Problem(w, http.StatusServiceUnavailable, "cannot read the log", "try again", err)
		return
	}
	if !ok {
		d.job(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(spec)
}
