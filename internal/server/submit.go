package server

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"scrimp/internal/api"
	"scrimp/internal/core"
	"scrimp/internal/identity"
	"scrimp/internal/ledger"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/plan"
	"scrimp/internal/policy"
	"scrimp/internal/spec"
)

// standard holds what is done where a job file does not say. Spans are wall time.
var standard = spec.Default()

// firstRestart is what moving to another machine is taken to need until one was
// measured: a local machine boots in one second and restores in another. Wall time.
const firstRestart = 3 * time.Second

// terms are Terms of a job that begins now, as this installation's.
func (s *Server) terms(j spec.Job, now time.Time) core.Terms {
	t := Terms(j, now, s.control.Clock().Stretch)
	t.Owner.Tenant = s.control.Tenant()
	return t
}

// Terms is what the core needs to know of a job, in market time from now on.
func Terms(j spec.Job, now time.Time, stretch func(time.Duration) time.Duration) core.Terms {
	t := core.Terms{
		Name: j.Name, JobKind: j.Kind, Nodes: max(1, j.Nodes), Priority: 1, Promise: cmp.Or(j.Promise, standard.Promise),
		Currency: money.USD,
		Owner: ledger.Owner{Team: j.Team, Project: j.Project, Environment: j.Environment,
			ModelVersion: j.ModelVersion, Tags: j.Tags},
		Deadline: j.Deadline.Resolve(now), GPUHours: j.Budget.GPUHours, WallClock: time.Duration(j.Budget.WallClock),
		DeadlineFirst: j.First == "deadline",
		Steps:         j.Work.Steps, Work: time.Duration(j.Work.Time), Restart: stretch(firstRestart),
		Grace: stretch(grace(j)),
		Saves: j.Checkpoint.Dir != "", IdleLimit: stretch(time.Duration(j.Idle)), MaxRetries: standard.Retry.Max,
		RetryCodes: j.Retry.Codes, Notify: j.Notify != "",
		Need: need(j),
	}
	switch j.Priority {
	case "critical":
		t.Priority = 2
	case "low":
		t.Priority = 0
	}
	if j.Retry.Max > 0 {
		t.MaxRetries = j.Retry.Max
	}
	if j.Budget.Dollars != nil {
		t.Budget, t.HasBudget = *j.Budget.Dollars, true
	}
	t.Transfer = time.Duration(j.Checkpoint.MoveTime)
	if m := j.Checkpoint.MoveCost; m != nil {
		t.Carry = *m
	}
	if i := j.Checkpoint.Interval; i != "" && i != "auto" {
		d, _ := spec.ParseDuration(i) // validated
		t.Interval = stretch(d)
	}
	t.Metric = policy.Metric{Name: j.Metric.Name, Maximize: j.Metric.Goal == "maximize", Patience: j.Metric.Patience,
		MinDelta: j.Metric.MinDelta}
	if j.Metric.Target != nil {
		t.Metric.Target, t.Metric.HasGoal = *j.Metric.Target, true
	}
	return t
}

// need is what the job asks of machines, with its alternatives and its ladder.
func need(j spec.Job) plan.Need {
	n := plan.Need{Requirements: asks(j.Resources), MaxRate: j.MaxPrice}
	for i, v := range j.AnyOf {
		w := plan.Variant{Name: variant(j, i), Requirements: n.Requirements, Throughput: v.Throughput}
		if !reflect.ValueOf(v.Resources).IsZero() {
			w.Requirements = asks(v.Resources)
		}
		n.Variants = append(n.Variants, w)
	}
	for _, r := range j.Ladder {
		rung := plan.Rung{Zones: r.Zones, Use: r.Use, MaxRate: r.MaxPrice, For: time.Duration(r.For), Failures: r.Failures}
		if r.Capacity != "" && r.Capacity != spec.AnyCapacity {
			rung.Capacity = []market.Capacity{market.Capacity(r.Capacity)}
		}
		n.Ladder = append(n.Ladder, rung)
	}
	return n
}

// quoted is args as a shell reads them, each after a space.
func quoted(args []string) string {
	var b strings.Builder
	for _, a := range args {
		b.WriteString(" '" + strings.ReplaceAll(a, "'", `'\''`) + "'")
	}
	return b.String()
}

// variant names an alternative: by its name, else by its place.
func variant(j spec.Job, i int) string {
	if name := j.AnyOf[i].Name; name != "" {
		return name
	}
	return fmt.Sprintf("any_of[%d]", i)
}

func asks(r spec.Resources) plan.Requirements {
	a := plan.Requirements{CPUs: r.CPUs.Min, Memory: int64(r.Memory.Min), Zones: r.Zones}
	for _, c := range r.Capacity {
		a.Capacity = append(a.Capacity, market.Capacity(c))
	}
	a.Accelerator, a.Accelerators = r.GPUs()
	return a
}

func grace(j spec.Job) time.Duration {
	if j.Grace > 0 {
		return time.Duration(j.Grace)
	}
	return time.Duration(standard.Grace)
}

func (s *Server) postJob(w http.ResponseWriter, r *http.Request) {
	b, ok := read[api.Submission](w, r, 8<<20)
	if !ok || s.crowded(w, r) {
		return
	}
	j, no := s.jobOf(b.Spec)
	if no != nil {
		no.answer(w)
		return
	}
	if (b.Folder != "" || b.Rerun != "" || b.From != "") && !s.takesFrom(w, r, b) {
		return
	}
	c := callerOf(r)
	if j.Team, j.Project, ok = s.place(w, c, j); !ok {
		return
	}
	if key := r.Header.Get("Idempotency-Key"); key != "" {
		b.Key = key
	}
	if wrong := wrongKey(b.Key); wrong != "" {
		fieldProblem(w, http.StatusBadRequest, "key", wrong, "send a random one of 24 digits", nil)
		return
	}
	if b.Key != "" {
		if c.Token != "" {
			b.Key = c.User + "/" + b.Key // keys of others say nothing of theirs
		}
		defer s.alone("key " + b.Key)()
		if s.again(w, r, b) {
			return
		}
	}
	if no = s.proven(c, b, j); no != nil {
		no.answer(w)
		return
	}
	id, no := s.takeIn(r, b, j)
	if no != nil {
		no.answer(w)
		return
	}
	var v api.Job
	s.control.Job(id, func(m *core.Machine, j *core.Job) { v = s.show(m, j) })
	answer(w, v)
}

// takeIn gives the job a name, keeps its work folder, lets it in and writes it.
func (s *Server) takeIn(r *http.Request, b api.Submission, j spec.Job) (id string, no *refusal) {
	id, done := s.name(j.Name)
	defer done()
	if err := s.keepWork(r, id, b); err != nil {
		return id, &refusal{
			status: http.StatusUnprocessableEntity, title: "the work folder was not copied",
			fix: "give another with workdir, or leave out what cannot be read with .scrimpignore", err: err,
		}
	}
	c, now := callerOf(r), s.control.Now()
	body := core.JobSubmitted{Job: id, Terms: s.terms(j, now), Spec: b.Spec}
	e := core.Event{At: now, Schema: core.Schema, Tenant: s.control.Tenant(), Actor: actor(c.User), Key: b.Key}
	no = s.settled(r.Context())
	if no == nil && b.From != "" {
		e.Body = body
		if no = s.wouldRefuse(c, e); no == nil { // what is refused copies nothing
			body.From, no = s.seed(r.Context(), id, j, b.From)
		}
	}
	lost := false // whether it will be there nobody knows
	if no == nil {
		e.Body = body
		callOf(r).act.Detail = fingerprint(b)
		if err := s.tell(r, id, e); err != nil {
			no = denied(c, err, "the job was not written", "submit it again with the same key")
			lost = no.status >= http.StatusInternalServerError
		}
	}
	if no != nil && !lost {
		_ = os.RemoveAll(filepath.Join(s.opts.Dir, "work", id)) // the next of that name removes it else
		s.forget(id)
	}
	return id, no
}

// wouldRefuse says why a job would not be let in as things are.
func (s *Server) wouldRefuse(c identity.Caller, e core.Event) (no *refusal) {
	s.control.ReadUncommitted(func(m *core.Machine) {
		if why := m.Refuses(e); why != nil {
			no = denied(c, why, "", "")
		}
	})
	return no
}

// place says whose the job is, or answers what is wrong.
func (s *Server) place(w http.ResponseWriter, c identity.Caller, j spec.Job) (team, project string, ok bool) {
	if c.Token == "" && c.User == ownerName { // their own server: the job file says it all
		return j.Team, j.Project, true
	}
	s.people.RLock()
	defer s.people.RUnlock()
	team, project, field, err := s.book.Place(c, j.Team, j.Project)
	if err != nil {
		status := http.StatusUnprocessableEntity
		if field == "team" && j.Team != "" {
			status = http.StatusForbidden
		}
		fieldProblem(w, status, field, "the job cannot be placed", "write "+field+" in the job file", err)
		return "", "", false
	}
	return team, project, true
}

// takesFrom reports whether the caller may use the folder or the job that the
// submission takes its work folder from, or answers that they may not.
func (s *Server) takesFrom(w http.ResponseWriter, r *http.Request, b api.Submission) bool {
	if b.Folder != "" && !bySocket(r) { // a path here is none of theirs
		fieldProblem(w, http.StatusForbidden, "folder", "a folder of the server's machine is taken from its owner only",
			"upload the folder, as scrimp run does", nil)
		return false
	}
	from, _, _ := strings.Cut(b.From, "@")
	for _, other := range []struct{ field, job string }{{"rerun", b.Rerun}, {"from", from}} {
		if other.job == "" {
			continue
		}
		ok := false
		s.control.Job(other.job, func(_ *core.Machine, j *core.Job) { ok = sees(callerOf(r), j) })
		if !ok {
			unknownJob(w, other.field, other.job)
			return false
		}
	}
	return true
}

// alone waits until nobody else does what has that name, and returns what ends it.
func (s *Server) alone(what string) (done func()) {
	for {
		s.mu.Lock()
		before, busy := s.busy[what]
		if !busy {
			mine := make(chan struct{})
			s.busy[what] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				delete(s.busy, what)
				s.mu.Unlock()
				close(mine)
			}
		}
		s.mu.Unlock()
		<-before
	}
}

// asksFor begins what a fingerprint says.
const asksFor = "asks for "

// fingerprint says whether two submissions ask for the same. Values of secrets
// are left out: who reads the audit trail could try values until one fits.
func fingerprint(b api.Submission) string {
	b.Key = ""
	names := slices.Sorted(maps.Keys(b.Secrets))
	b.Secrets = nil
	text, err := json.Marshal(struct {
		api.Submission
		Names []string
	}{b, names})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return asksFor + hex.EncodeToString(sum[:8])
}

// name returns a name that no job has, and takes it until done: the job's own,
// with a number from the second on.
func (s *Server) name(wanted string) (id string, done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.control.ReadUncommitted(func(m *core.Machine) { // a name that is being written is taken
		first := max(1, s.numbers[wanted]) // lower ones are taken for ever, and can be very many
		for n := first; ; n++ {
			if id = wanted; n > 1 {
				id = fmt.Sprintf("%s-%d", wanted, n)
			}
			_, taken := m.Job(id)
			if taken && n == first {
				first++
			}
			if _, busy := s.busy["name "+id]; !taken && !busy {
				break
			}
		}
		if first > 1 {
			s.numbers[wanted] = first
		}
	})
	s.busy["name "+id] = nil
	return id, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.busy, "name "+id)
	}
}

// keepWork copies the work folder and keeps the secrets apart from the log.
func (s *Server) keepWork(r *http.Request, id string, b api.Submission) error {
	dir := filepath.Join(s.opts.Dir, "work", id)
	from := b.Folder
	if b.Rerun != "" {
		from = filepath.Join(s.opts.Dir, "work", b.Rerun)
		if _, err := os.Stat(from); errors.Is(err, os.ErrNotExist) { // it had none
			from = ""
		}
	}
	if err := os.RemoveAll(dir); err != nil { // of a submission that was cut short
		return err
	}
	// else the folder is made when it is wanted: to make a million would keep commits waiting
	if from != "" || b.Work != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	switch {
	case from != "":
		if err := copyFolder(from, dir, s.opts.Dir); err != nil {
			return err
		}
	case b.Work != "":
		if err := s.unpackUpload(callerOf(r), b.Work, dir); err != nil {
			return err
		}
	}
	if len(b.Secrets) == 0 {
		return nil
	}
	return s.vault().Keep(id, b.Secrets)
}
