package sim

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
)

// ask submits every wish at its time, some in batches.
func (t *tenants) ask() {
	w := t.w
	for n := 0; n < len(t.wishes); {
		size := min(1+w.rng.IntN(3)*w.rng.IntN(2), len(t.wishes)-n)
		batch := slices.Clone(t.wishes[n : n+size])
		slices.SortStableFunc(batch, func(a, b *wish) int { return cmp.Compare(b.job.terms.Priority, a.job.terms.Priority) })
		n += size
		at := time.Duration(0)
		if w.chance(0.7) {
			at = time.Duration(w.rng.IntN(1200)) * time.Minute
		}
		w.after(at, func() { t.submit(batch) })
	}
}

// submit submits a batch until there is an answer: the server accepts all of it or nothing.
func (t *tenants) submit(batch []*wish) {
	w := t.w
	again := func() { w.after(time.Minute, func() { t.submit(batch) }) }
	if !t.v.idle() {
		again()
		return
	}
	var asked []*wish
	var group []core.Event
	for _, x := range batch {
		id, seen := t.v.keys[x.key]
		if seen && (w.fault != FaultNoSeen || t.v.epoch == 0) {
			w.saw("the same key again")
			t.accepted(x, id)
			continue
		}
		if no := t.admit(x); no != "" {
			t.notIn(batch, x.user, no)
			return
		}
		asked = append(asked, x)
		e := core.Event{Key: x.key, Body: core.JobSubmitted{Job: x.id, Terms: x.asked(), Spec: x.job.spec}}
		group = append(group, e)
		if w.fault != FaultNoAudit { // one line each, as the server does
			group = append(group, body(core.Audited{Act: identity.Act{At: w.now, Who: x.user, Route: "POST /v1/jobs", Object: x.id, Outcome: "done"}}))
		}
		for n := range group {
			if e := &group[n]; e.Tenant == "" {
				e.At, e.Schema, e.Tenant, e.Actor = w.event(core.Tick{}).At, core.Schema, "default", "user:"+x.user
			}
		}
	}
	if len(asked) == 0 {
		return
	}
	if len(asked) > 1 {
		w.saw("a batch")
	}
	if no := t.refuses(group); no != "" {
		t.notIn(batch, asked[0].user, no)
		return
	}
	if !w.through(group...) {
		again()
		return
	}
	for _, x := range asked {
		t.acts[x.user+" POST /v1/jobs "+x.id+" done"]++
		t.accepted(x, x.id)
		if j, ok := w.m.Job(x.id); ok && j.State() == core.Held {
			w.saw("a job waits for approval")
		}
	}
	if w.chance(w.faults.Twice) { // the client missed the answer
		again()
	}
}

// notIn tells the users of a batch that it was refused.
func (t *tenants) notIn(batch []*wish, who, why string) {
	w := t.w
	w.saw("let in: no, " + why)
	if !t.act(who, "POST /v1/jobs", "", "refused") {
		w.after(time.Minute, func() { t.submit(batch) })
		return
	}
	for _, y := range batch {
		t.refused(y, why)
	}
}

// asked returns the terms with which a wish is submitted.
func (x *wish) asked() core.Terms {
	t := x.asks
	t.Name = x.id
	return t
}

// accepted handles a wish whose job exists; its user may end it, or another may try to.
func (t *tenants) accepted(x *wish, id string) {
	w := t.w
	if x.acked {
		return
	}
	x.id, x.acked, x.over = id, true, true
	w.tell("%s has %s", x.user, id)
	if x.tries > 1 {
		w.saw("let in later")
	}
	for range 1 + w.rng.IntN(2) { // some list the jobs that wait for approval
		by := t.users[w.rng.IntN(len(t.users))]
		if w.chance(0.4) {
			by = t.users[0] // an admin
		}
		w.after(time.Duration(w.rng.IntN(1200))*time.Minute, func() { t.review(x, by, w.chance(0.75)) })
	}
	who, save := x.user, w.chance(0.5)
	if w.chance(0.3) {
		who = t.users[w.rng.IntN(len(t.users))]
	}
	if w.chance(0.4) {
		w.after(time.Duration(w.rng.IntN(600))*time.Minute, func() { t.end(x, who, save) })
	}
	waits := x.job.terms.HasBudget                                                    // for a price that suits its budget
	if x.job.terms.Need.MaxRate > 0 || !x.job.terms.Saves || waits || w.chance(0.2) { // some give up
		w.after(72*time.Hour, func() { t.end(x, "owner", false) })
	}
}

// end requests a job's end until there is an answer.
func (t *tenants) end(x *wish, who string, save bool) {
	w := t.w
	w.until(func() bool {
		if !t.v.idle() {
			return false
		}
		j, known := w.m.Job(x.id)
		if !known {
			w.breaks("lost: %s was answered and is not there", x.id)
			return true
		}
		if t.caller(t.server(), who).Role(j.Terms().Owner.Team) < identity.Submitter {
			w.saw("an end is refused")
			return t.act(who, "POST /v1/jobs/{id}/end", x.id, "refused")
		}
		if !t.act(who, "POST /v1/jobs/{id}/end", x.id, "done", body(core.JobEnded{Job: x.id, Save: save})) {
			return false
		}
		if j, _ := w.m.Job(x.id); !j.State().Over() && j.Ending() == "" {
			w.breaks("lost: the end of %s was answered, and it goes on", x.id)
		}
		return true
	})
}

// review approves or rejects a job that waits for it, or tries to. An approved job is admitted again, because it held
// nothing.
func (t *tenants) review(x *wish, who string, yes bool) {
	w := t.w
	w.until(func() bool {
		if !t.v.idle() {
			return false
		}
		j, known := w.m.Job(x.id)
		if !known || j.State() != core.Held {
			return true
		}
		e := w.event(core.JobReviewed{Job: x.id, Approved: yes})
		switch {
		case !t.mayReview(t.caller(t.server(), who), j) && w.fault != FaultOwnWord:
			w.saw("a review is refused")
			return t.act(who, "POST /v1/jobs/{id}/review", x.id, "refused")
		case t.refuses([]core.Event{e}) != "":
			w.saw("approved too late for the budget")
			return t.act(who, "POST /v1/jobs/{id}/review", x.id, "refused")
		}
		if !t.act(who, "POST /v1/jobs/{id}/review", x.id, "done", body(core.JobReviewed{Job: x.id, Approved: yes})) {
			return false
		}
		w.saw(map[bool]string{true: "approved", false: "rejected"}[yes])
		return true
	})
}

// asStated converts wall time to market time; in these lives they are equal.
func asStated(d time.Duration) time.Duration { return d }

// mayReview reports whether the caller may review the job: operators of the job's team, except for their own jobs, and
// admins always.
func (t *tenants) mayReview(c identity.Caller, j *core.Job) bool {
	role := c.Role(j.Terms().Owner.Team)
	return role >= identity.Admin || role >= identity.Operator && c.User != t.by[j.ID()]
}

// refused handles a refused wish: it is submitted again later, alone, or given up.
func (t *tenants) refused(x *wish, why string) {
	w := t.w
	if x.over {
		return
	}
	w.jobs = slices.DeleteFunc(slices.Clone(w.jobs), func(j simJob) bool { return j.id == x.id })
	x.id = ""
	if x.tries++; x.tries > 3 || why == "role" {
		x.over = true
		return
	}
	w.after(time.Duration(30+w.rng.IntN(1500))*time.Minute, func() { t.submit([]*wish{x}) })
}
