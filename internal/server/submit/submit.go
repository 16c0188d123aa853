package submit

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/budgets"
	"scrimp/internal/server/proposals"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/submit/inputs"
	"scrimp/internal/server/submit/request"
	"scrimp/internal/server/terms"
	"scrimp/internal/wire/api"
)

// terms returns the terms of a job that is submitted now to this installation.
func (d *Service) terms(j spec.Job, now time.Time) core.Terms {
	t := terms.Of(j, now, d.Control.Clock().Stretch, d.Control.Starts())
	if len(j.Data) > 0 { // the prices are a file
		t.Need.Reads = terms.Reads(j, d.Charges(), d.Control.Kinds())
	}
	t.Owner.Tenant = d.Control.Tenant()
	return t
}

// One submits a job.
func (d *Service) One(w http.ResponseWriter, r *http.Request) {
	b, ok := request.Submission(w, r)
	if !ok || d.refuseWhenFull(w, r) {
		return
	}
	if field := ofGroup(b); field != "" {
		reply.FieldProblem(w, http.StatusUnprocessableEntity, field, "a group of jobs is not one job",
			"submit it with POST /v1/groups", nil)
		return
	}
	id, ok := d.take(w, r, b, d.takeIn)
	if !ok {
		return
	}
	var v api.Job
	d.Control.Job(id, func(m *core.Machine, j *core.Job) { v = d.Jobs.Show(m, j) })
	reply.JSON(w, v)
}

// take validates a submission and passes it to in, unless its key was used before. Otherwise it answers the request.
func (d *Service) take(w http.ResponseWriter, r *http.Request, b api.Submission,
	in func(*http.Request, api.Submission, spec.Job) (string, *reply.Refusal)) (id string, ok bool) {
	j, no := d.Reader.Job(&b)
	if no == nil {
		no = checkValues(r, b, j)
	}
	if no == nil && b.Proposal != nil {
		no = proposals.Check(b.Proposal)
	}
	if no != nil {
		no.Answer(w)
		return "", false
	}
	c := auth.CallerOf(r)
	if j.Team, j.Project, ok = d.ownerOf(w, c, j); !ok {
		return "", false
	}
	if no = d.checkStore(c, j); no != nil {
		no.Answer(w)
		return "", false
	}
	if (b.Folder != "" || b.Rerun != "" || b.From != "") && !d.mayTake(w, r, b, j.Team) {
		return "", false
	}
	if b.Key, ok = keyOf(w, r, b.Key); !ok {
		return "", false
	}
	if b.Key != "" {
		defer d.Turns.Alone("key " + b.Key)()
		if d.again(w, r, b) {
			return "", false
		}
	}
	if no = d.proven(r.Context(), c, b, j); no == nil {
		no = d.checkOffers(b, j)
	}
	if no == nil {
		no = inputs.New(r, d.Control.Kinds()).Refuses(r.Context(), j, len(b.After) > 0)
	}
	if no == nil {
		id, no = in(r, b, j)
	}
	if no != nil {
		no.Answer(w)
		return "", false
	}
	return id, true
}

// keyOf returns the key of a submission with the caller's name as prefix, or "" for none. If the key is wrong, it
// answers that.
func keyOf(w http.ResponseWriter, r *http.Request, sent string) (key string, ok bool) {
	key = cmp.Or(r.Header.Get("Idempotency-Key"), sent)
	if wrong := wrongKey(key); wrong != "" {
		reply.FieldProblem(w, http.StatusBadRequest, "key", wrong, "send a random one of 24 digits", nil)
		return "", false
	}
	if c := auth.CallerOf(r); key != "" && c.Token != "" {
		key = c.User + "/" + key // keys of other users are separate
	}
	return key, true
}

// takeIn names the job, stores its work folder, and submits it to the core.
func (d *Service) takeIn(r *http.Request, b api.Submission, j spec.Job) (id string, no *reply.Refusal) {
	id, done, err := d.Names.Reserve(r.Context(), j.Name)
	if err != nil {
		return id, unread(err)
	}
	defer done()
	if j, err = d.Measured(r, j); err != nil {
		return id, unread(err)
	}
	c, now := auth.CallerOf(r), d.Control.Now()
	body := core.JobSubmitted{Job: id, Terms: d.terms(j, now), Spec: b.Spec}
	if body.Terms.After, no = d.after(r, b.After); no != nil {
		return id, no
	}
	var first []core.Event // the act of a submission follows its event
	if b.Proposal != nil {
		body.Asking = &budget.PendingApproval{Proposal: true, Until: now.Add(d.Control.Clock().Stretch(proposals.Within))}
		made, err := proposals.Of(r, d.Gate, body, b.Proposal, d.Foresee(r, j))
		if err != nil {
			return id, &reply.Refusal{Status: http.StatusInternalServerError, Title: "the proposal was not written", Err: err}
		}
		first = append(first, made)
	}
	e := core.Event{At: now, Schema: core.Schema, Tenant: d.Control.Tenant(), Actor: auth.Actor(c.User), Key: b.Key}
	if no = d.Settled(r.Context()); no == nil && (b.From != "" || b.Folder != "") {
		e.Body = body
		no = d.wouldRefuse(c, e) // a refused job need not copy its checkpoint
	}
	if no == nil {
		body.Stored, no = d.store(r, id, j.Team, b)
	}
	if no == nil && b.From != "" {
		body.From, no = d.Kept.Seed(r.Context(), id, c.User, j, b.From)
	}
	lost := false // the outcome of the write is unknown
	if no == nil {
		e.Body = body
		auth.CallOf(r).Act.Detail = fingerprint(b)
		if err := d.Gate.Propose(r, id, append(first, e)...); err != nil {
			no = budgets.Denied(c, err, "the job was not written", "submit it again with the same key")
			lost = no.Status >= http.StatusInternalServerError
		}
	}
	if no != nil && !lost {
		_ = d.Uploads.Store.Drop(id) // on an error, the next submission of that name replaces it
		d.Forget(id)
	}
	return id, no
}

// wouldRefuse returns why the core would refuse a job now; nil: it would not.
func (d *Service) wouldRefuse(c identity.Caller, e core.Event) (no *reply.Refusal) {
	d.Control.ReadUncommitted(func(m *core.Machine) {
		if why := m.Refuses(e); why != nil {
			no = budgets.Denied(c, why, "", "")
		}
	})
	return no
}

// ownerOf returns the owner of the job, or answers what is wrong.
func (d *Service) ownerOf(w http.ResponseWriter, c identity.Caller, j spec.Job) (team, project string, ok bool) {
	if c.Token == "" && c.User == auth.OwnerName { // on their own server, the job file decides
		return j.Team, j.Project, true
	}
	var field string
	var err error
	d.Gate.People.Read(func(b *identity.Book) { team, project, field, err = b.Place(c, j.Team, j.Project) })
	if err != nil {
		status := http.StatusUnprocessableEntity
		if field == "team" && j.Team != "" {
			status = http.StatusForbidden
		}
		reply.FieldProblem(w, status, field, "the job cannot be placed", "write "+field+" in the job file", err)
		return "", "", false
	}
	return team, project, true
}

// mayTake reports whether the caller may use the folder or the job from which the submission takes its work folder
// or checkpoint; if not, it answers that. Files stay in the team that sent them: only an admin of that team may show
// them to another.
func (d *Service) mayTake(w http.ResponseWriter, r *http.Request, b api.Submission, team string) bool {
	if b.Folder != "" && !auth.BySocket(r) { // only the data folder's owner may name a path of this host
		reply.FieldProblem(w, http.StatusForbidden, "folder", "a folder of the server's machine is taken from its owner only",
			"upload the folder, as scrimp run does", nil)
		return false
	}
	from, _, _ := strings.Cut(b.From, "@")
	for _, other := range []struct{ field, job string }{{"rerun", b.Rerun}, {"from", from}} {
		if other.job == "" {
			continue
		}
		seen, owner, c := false, "", auth.CallerOf(r)
		d.Control.Job(other.job, func(_ *core.Machine, j *core.Job) {
			seen, owner = auth.Sees(c, j), j.Terms().Owner.Team
		})
		if !seen {
			reply.UnknownJob(w, other.field, other.job)
			return false
		}
		if owner != team && c.Role(owner) < identity.Admin {
			reply.FieldProblem(w, http.StatusForbidden, other.field,
				fmt.Sprintf("job %s is of another team than this one", other.job),
				"submit it for the same team, or ask an admin of that team", nil)
			return false
		}
	}
	return true
}

// fingerprintPrefix is the prefix of a fingerprint.
const fingerprintPrefix = "asks for "

// fingerprint identifies what a submission requests. It omits the values of secrets, because readers of the audit
// log could test guesses.
func fingerprint(b api.Submission) string {
	b.Key = ""
	names := slices.Sorted(maps.Keys(b.Secrets))
	b.Secrets, b.Shell = nil, nil // a retry may come from another shell
	text, err := json.Marshal(struct {
		api.Submission
		Names []string
	}{b, names})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return fingerprintPrefix + hex.EncodeToString(sum[:8])
}
