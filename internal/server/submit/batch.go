package submit

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/budgets"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/submit/inputs"
	"scrimp/internal/wire/api"
)

// maxBatch bounds the jobs of one batch.
const maxBatch = 1000

// used returns the keys that were used before, each with its event.
func (d *Service) used(ctx context.Context, keys ...string) (map[string]uint64, *reply.Refusal) {
	if len(keys) == 0 {
		return nil, nil
	}
	seen, err := d.Log.Seen(ctx, d.Control.Tenant(), keys...)
	if err != nil {
		return nil, unread(err)
	}
	return seen, nil
}

func unread(err error) *reply.Refusal {
	return &reply.Refusal{Status: http.StatusServiceUnavailable, Title: "cannot read the log",
		Fix: "submit it again with the same key", Err: err}
}

// earlier returns the job of a submission whose key is in event seq, if both request the same.
func (d *Service) earlier(ctx context.Context, b api.Submission, seq uint64) (job string, no *reply.Refusal) {
	records, err := d.Log.Records(ctx, seq-1, 2)
	var first, next core.Event
	if err != nil || len(records) == 0 || json.Unmarshal(records[0].Event, &first) != nil {
		return "", unread(err)
	}
	name := ""
	var text json.RawMessage
	ok := false
	switch body := first.Body.(type) {
	case core.JobSubmitted:
		name, text, ok = body.Job, body.Spec, ofGroup(b) == ""
	case core.GroupOpened:
		name, text, ok = body.Group, body.Spec, ofGroup(b) != ""
	}
	if !ok {
		return "", &reply.Refusal{Status: http.StatusConflict, Title: "the key was used for something else",
			Fix: "send another key"}
	}
	same := false
	if len(records) > 1 && json.Unmarshal(records[1].Event, &next) == nil { // its act follows it
		a, ok := next.Body.(core.Audited)
		if alone := ok && a.Act.Object == name && strings.HasPrefix(a.Act.Detail, fingerprintPrefix); alone {
			same = a.Act.Detail == fingerprint(b)
		} else { // from a batch: such a job has a job file only
			sent, err := json.Marshal(b.Spec) // in the form of the log
			same = err == nil && bytes.Equal(sent, text) && !hasExtras(b)
		}
	}
	if !same {
		return "", &reply.Refusal{Status: http.StatusConflict, Field: "key",
			Title: fmt.Sprintf("the key was used before, for %s, and asks for something else now", name),
			Fix:   "send another key with another submission"}
	}
	return name, nil
}

// hasExtras reports whether a submission has more than a job file.
func hasExtras(b api.Submission) bool {
	return b.Folder != "" || b.Work != "" || b.Rerun != "" || b.From != "" || b.Proposal != nil ||
		len(b.Secrets)+len(b.Shell) > 0
}

// hiddenKey returns the refusal of a key whose job the caller may no longer see.
func hiddenKey(field string) *reply.Refusal {
	return &reply.Refusal{Status: http.StatusConflict, Field: field,
		Title: "the key was used before, for a job of a team that you do not see any more",
		Fix:   "send another key with another submission"}
}

// again answers a submission whose key was used before: with its job if both request the same, otherwise with a
// conflict.
func (d *Service) again(w http.ResponseWriter, r *http.Request, b api.Submission) bool {
	seen, no := d.used(r.Context(), b.Key)
	if no != nil {
		no.Answer(w)
		return true
	}
	seq, ok := seen[b.Key]
	if !ok {
		return false
	}
	job, no := d.earlier(r.Context(), b, seq)
	if no != nil {
		no.Answer(w)
		return true
	}
	auth.CallOf(r).Act.Object = job
	v, ok := d.seen(auth.CallerOf(r), job, ofGroup(b) != "")
	if !ok {
		hiddenKey("key").Answer(w)
		return true
	}
	auth.CallOf(r).Written = true // recorded the first time
	reply.JSON(w, v)
	return true
}

// seen returns the named job or group if the caller may see it.
func (d *Service) seen(c identity.Caller, name string, group bool) (v any, ok bool) {
	if group {
		return d.Groups.Visible(c, name)
	}
	return d.Jobs.Visible(c, name)
}

// Many submits many jobs in one transaction. An error in one refuses all.
func (d *Service) Many(w http.ResponseWriter, r *http.Request) {
	list, ok := reply.Body[[]api.Submission](w, r)
	if !ok || d.refuseWhenFull(w, r) {
		return
	}
	if len(list) == 0 || len(list) > maxBatch {
		title := fmt.Sprintf("a batch has 1 to %d jobs, this one %d", maxBatch, len(list))
		reply.Problem(w, http.StatusUnprocessableEntity, title, "send several batches", nil)
		return
	}
	jobs, ok := d.readBatch(w, r, list)
	if !ok {
		return
	}
	keys, twice := sortedKeys(list)
	if twice {
		title := "two jobs of the batch have the same key"
		reply.FieldProblem(w, http.StatusBadRequest, "key", title, "give each its own", nil)
		return
	}
	b := &batch{d: d, r: r, list: list, jobs: jobs, ids: make([]string, len(list))}
	defer b.release()
	for _, key := range keys {
		b.held = append(b.held, d.Turns.Alone("key "+key))
	}
	seen, no := d.used(r.Context(), keys...)
	if no == nil {
		no = b.make(seen)
	}
	if no == nil {
		no = b.submit()
	}
	if no != nil {
		no.Answer(w)
		return
	}
	reply.JSON(w, b.shown())
}

// sortedKeys returns the keys of a batch, sorted, so that two batches cannot deadlock. twice reports a repeated key.
func sortedKeys(list []api.Submission) (keys []string, twice bool) {
	for _, b := range list {
		if b.Key != "" {
			keys = append(keys, b.Key)
		}
	}
	slices.Sort(keys)
	return keys, len(slices.Compact(slices.Clone(keys))) < len(keys)
}

// batch is the submission of a batch.
type batch struct {
	d    *Service
	r    *http.Request
	list []api.Submission
	jobs []spec.Job
	ids  []string
	held []func() // release the locks on its keys and names

	events []core.Event
	all    hash.Hash // hash over all requests
}

func (b *batch) release() {
	for _, release := range b.held {
		release()
	}
}

// make builds the events of the new jobs; seen are the keys of earlier ones.
func (b *batch) make(seen map[string]uint64) *reply.Refusal {
	if no := b.d.Settled(b.r.Context()); no != nil {
		return no
	}
	b.all = sha256.New()
	now, probe := b.d.Control.Now(), inputs.New(b.r, b.d.Control.Kinds())
	for i := range b.list {
		if seq, ok := seen[b.list[i].Key]; ok {
			if no := b.again(i, seq); no != nil {
				return no
			}
			continue
		}
		no := b.d.proven(b.r.Context(), auth.CallerOf(b.r), b.list[i], b.jobs[i])
		if no == nil {
			no = b.d.checkOffers(b.list[i], b.jobs[i])
		}
		if no == nil {
			no = probe.Refuses(b.r.Context(), b.jobs[i], len(b.list[i].After) > 0)
		}
		if no != nil {
			no.Field = fmt.Sprintf("[%d].%s", i, no.Field)
			return no
		}
		if no := b.one(i, now); no != nil {
			return no
		}
	}
	return nil
}

// again adds a job that was submitted before.
func (b *batch) again(i int, seq uint64) *reply.Refusal {
	field := fmt.Sprintf("[%d].key", i)
	id, no := b.d.earlier(b.r.Context(), b.list[i], seq)
	if no != nil {
		no.Field = field
		return no
	}
	if _, ok := b.d.Jobs.Visible(auth.CallerOf(b.r), id); !ok {
		return hiddenKey(field)
	}
	b.ids[i] = id
	return nil
}

// one adds a new job.
func (b *batch) one(i int, now time.Time) (no *reply.Refusal) {
	id, done, err := b.d.Names.Reserve(b.r.Context(), b.jobs[i].Name)
	if err != nil {
		return unread(err)
	}
	b.held = append(b.held, done)
	b.ids[i] = id
	if err := b.d.Vault.Forget(id); err != nil { // left by an interrupted submission
		return unread(err)
	}
	t := b.d.terms(b.jobs[i], now)
	if t.After, no = b.d.after(b.r, b.list[i].After); no != nil {
		return no
	}
	b.all.Write(b.list[i].Spec)
	b.events = append(b.events, core.Event{
		At: now, Schema: core.Schema, Tenant: b.d.Control.Tenant(), Actor: auth.Actor(auth.CallerOf(b.r).User),
		Key:  b.list[i].Key,
		Body: core.JobSubmitted{Job: id, Terms: t, Spec: b.list[i].Spec, Stored: &state.Stored{}},
	})
	return nil
}

// submit writes the events and then one act for all, in one transaction. Each event names its submitter.
func (b *batch) submit() *reply.Refusal {
	n := len(b.events)
	if n == 0 {
		auth.CallOf(b.r).Written = true // recorded the first time
		return nil
	}
	first, last := b.events[0].Body.(core.JobSubmitted).Job, b.events[n-1].Body.(core.JobSubmitted).Job
	detail := fmt.Sprintf("%d jobs, from %s to %s, %s%x", n, first, last, fingerprintPrefix, b.all.Sum(nil)[:8])
	err := b.d.Gate.ProposeWith(b.r, first, detail, b.events...)
	if err != nil {
		no := budgets.Denied(auth.CallerOf(b.r), err, "the jobs were not written", "submit them again with the same keys")
		var of *core.Refusal
		if errors.As(err, &of) {
			no.Field = fmt.Sprintf("[%d].%s", slices.Index(b.ids, of.Job), no.Field)
		}
		return no
	}
	return nil
}

// shown returns the jobs of the batch as the API shows them.
func (b *batch) shown() []api.Job {
	shown := make([]api.Job, len(b.ids))
	var archived []int // of an earlier submission
	b.d.Control.ReadUpTo(func(m *core.Machine) (last uint64) {
		for i, id := range b.ids {
			if j, ok := m.Job(id); ok {
				shown[i], last = b.d.Jobs.Show(m, j), max(last, m.ChangedAt(j))
			} else {
				archived = append(archived, i)
			}
		}
		return last
	})
	for _, i := range archived {
		b.d.Control.Job(b.ids[i], func(m *core.Machine, j *core.Job) { shown[i] = b.d.Jobs.Show(m, j) })
	}
	return shown
}

// readBatch returns the job files of a batch, or answers what is wrong with one. It prefixes keys with the caller's
// name.
func (d *Service) readBatch(w http.ResponseWriter, r *http.Request, list []api.Submission) ([]spec.Job, bool) {
	c := auth.CallerOf(r)
	jobs := make([]spec.Job, len(list))
	for i := range list {
		b := &list[i]
		j, no := d.Reader.Job(b)
		switch {
		case no != nil:
		case ofGroup(*b) != "":
			no = &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: ofGroup(*b),
				Title: "a group of jobs is in the batch", Fix: "submit it alone, with POST /v1/groups"}
		case b.Proposal != nil:
			no = &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "proposal",
				Title: "a proposal is in the batch", Fix: "submit it alone, with POST /v1/jobs"}
		case hasExtras(*b):
			no = &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "spec",
				Title: "a job with a work folder or secrets is in the batch", Fix: "submit it alone, with POST /v1/jobs"}
		case len(j.Secrets) > 0:
			no = &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: "spec.secrets",
				Title: "a job with secrets is in the batch", Fix: "submit it alone, with POST /v1/jobs"}
		case len(j.Inherit) > 0:
			no = checkValues(r, *b, j)
		case d.checkStore(c, j) != nil:
			no = d.checkStore(c, j)
		case wrongKey(b.Key) != "":
			no = &reply.Refusal{Status: http.StatusBadRequest, Field: "key", Title: wrongKey(b.Key),
				Fix: "send a random one of 24 digits"}
		}
		if no != nil {
			no.Field = fmt.Sprintf("[%d].%s", i, no.Field)
			no.Answer(w)
			return nil, false
		}
		var ok bool
		if j.Team, j.Project, ok = d.ownerOf(w, c, j); !ok {
			return nil, false
		}
		if b.Key != "" && c.Token != "" {
			b.Key = c.User + "/" + b.Key // as for single jobs
		}
		jobs[i] = j
	}
	return jobs, true
}
