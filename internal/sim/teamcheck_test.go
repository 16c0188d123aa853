package sim

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
)

// limited is a limit in force, with the amounts that it cannot bound.
type limited struct {
	limit   budget.Limit
	from    time.Time
	until   time.Time    // zero while it is in force
	spent   money.Amount // in its window when it was set
	room    money.Amount // spent and held when it was set, if more than the limit
	jobs    int          // open jobs when it was set, if more than the limit
	running int          // jobs with a machine when it was set
	gpus    float64
	open    bool                       // the maximum cost of its jobs was unknown when it was set
	late    money.Amount               // bills for ended jobs, and orphans
	credit  money.Amount               // credits
	carry   map[time.Time]money.Amount // not booked yet when the window began
}

// landed sees each durable event.
func (t *tenants) landed(e core.Event, out core.Outcome) {
	w := t.w
	user, isUser := strings.CutPrefix(e.Actor, "user:")
	rules, _ := w.m.Rules()
	switch b := e.Body.(type) {
	case core.IdentityChanged:
		t.truth.Apply(b.Change)
	case core.JobSubmitted:
		t.by[b.Job] = user
		t.mayAct(user, b.Terms.Owner.Team, "submitted "+b.Job)
		if err := rules.Tags.Check(b.Terms.Owner); err != nil {
			w.breaks("tags: %s was let in: %v", b.Job, err)
		}
		t.count(b.Job)
		j, _ := w.m.Job(b.Job)
		t.asking[b.Job] = slices.ContainsFunc(out.Facts, func(f core.Fact) bool { _, held := f.(state.JobHeld); return held })
		w.limitsAsk(rules, t.budgetJob(b.Job, user, j.Terms()), t.asking[b.Job])
		if want := w.job(b.Job).terms; j.Terms().Budget != want.Budget || j.Terms().HasBudget != want.HasBudget {
			w.breaks("approval: %s has the budget %v, wanted %v", b.Job, j.Terms().Budget, want.Budget)
		}
	case core.JobReviewed:
		u, _ := t.truth.User(user)
		if j, ok := w.m.Job(b.Job); ok && !t.mayReview(identity.Caller{User: user, Grants: u.Grants}, j) {
			w.breaks("role: %s reviewed %s of %s", user, b.Job, j.Terms().Owner.Team)
		}
		if b.Approved {
			t.asking[b.Job] = false
			t.count(b.Job)
		}
	case core.JobEnded:
		if j, ok := w.m.Job(b.Job); ok && isUser {
			t.mayAct(user, j.Terms().Owner.Team, "ended "+b.Job)
		}
	case core.BudgetsSet:
		t.rulesSet(b.Rules)
	}
	for _, f := range out.Facts {
		if f, ok := f.(state.JobEnding); ok && f.Why == core.LimitSpent {
			w.saw("stopped at a limit")
		}
	}
	for _, a := range out.Actions {
		if l, ok := a.(core.Launch); ok {
			if t.asking[l.Job] {
				w.breaks("approval: %s was launched without it", l.Job)
			}
			t.countRunning(l.Job)
		}
	}
	for _, p := range out.Postings {
		part := cost(p)
		for _, l := range t.limits {
			switch {
			case part.IsZero() || !l.limit.Scope.Holds(p.Owner, t.payer(p)):
			case part.Sign() < 0:
				l.credit = l.credit.Sub(part)
			case p.Owner.Job == "" || t.closed[p.Owner.Job]:
				l.late = l.late.Add(part)
			}
		}
	}
	for j := range w.m.Jobs() {
		if t.closed[j.ID()] = isClosed(j); j.Terms().HasBudget && !j.Terms().DeadlineFirst {
			if over := j.Spent(w.m.Now()).Sub(j.Terms().Budget); over.Cmp(t.over[j.ID()]) > 0 {
				t.over[j.ID()] = over
			}
		}
	}
}

// mayAct verifies that users did only what their roles allowed at the time.
func (t *tenants) mayAct(user, team, what string) {
	if user == "owner" {
		return
	}
	u, _ := t.truth.User(user)
	if (identity.Caller{User: user, Grants: u.Grants}).Role(team) < identity.Submitter {
		t.w.breaks("role: %s %s of %s", user, what, team)
	}
}

// limitsAsk verifies that a job above an approval threshold waits for approval.
func (w *World) limitsAsk(r budget.Rules, j budget.Job, asks bool) {
	if _, must := budget.Approval(r.Limits, j, w.now, asStated); must && !asks {
		w.breaks("approval: %s was let in and nobody is asked", j.ID)
	}
}

// under counts the jobs of a limit.
func (t *tenants) under(l *limited, counts func(*core.Job) bool) (n int) {
	for j := range t.w.m.Jobs() {
		if by, known := t.by[j.ID()]; known && counts(j) && l.limit.Scope.Holds(j.Terms().Owner, by) {
			n++
		}
	}
	return n
}

// lives reports whether a job counts under a limit of concurrent jobs: it is open and waits for no approval.
func lives(j *core.Job) bool { return !isClosed(j) && j.State() != core.Held }

// works reports whether a job has or requests a machine.
func works(j *core.Job) bool {
	return j.Asked() != nil || slices.ContainsFunc(j.Attempts(), (*core.Attempt).Live)
}

// count checks the limits of concurrent jobs after a submission.
func (t *tenants) count(job string) {
	j, _ := t.w.m.Job(job)
	for _, l := range t.limits {
		if l.limit.Jobs == nil || !l.until.IsZero() || !l.limit.Scope.Holds(j.Terms().Owner, t.by[job]) {
			continue
		}
		if n := t.under(l, lives); n > max(*l.limit.Jobs, l.jobs) {
			t.w.breaks("quota: %s holds %d jobs, %d with %s", l.limit.Name(), *l.limit.Jobs, n, job)
		}
	}
}

// countRunning checks the limits of running jobs after a launch.
func (t *tenants) countRunning(job string) {
	j, _ := t.w.m.Job(job)
	for _, l := range t.limits {
		if l.limit.Running == nil || !l.until.IsZero() || !l.limit.Scope.Holds(j.Terms().Owner, t.by[job]) {
			continue
		}
		if n := t.under(l, works); n > *l.limit.Running {
			t.w.breaks("quota: %s lets %d jobs run at once, %d do with %s", l.limit.Name(), *l.limit.Running, n, job)
		}
	}
}

func (t *tenants) rulesSet(r budget.Rules) {
	w := t.w
	t.tallied, t.sums = 0, map[string]tallied{}
	b := t.books(r)
	for _, l := range t.limits {
		if l.until.IsZero() && !slices.ContainsFunc(r.Limits, func(o budget.Limit) bool { return reflect.DeepEqual(o, l.limit) }) {
			l.until = w.m.Now()
		}
	}
	for _, l := range r.Limits {
		if slices.ContainsFunc(t.limits, func(o *limited) bool { return o.until.IsZero() && reflect.DeepEqual(o.limit, l) }) {
			continue
		}
		u := b.Use(l)
		set := &limited{limit: l}
		t.limits = append(t.limits, &limited{
			running: t.under(set, works),
			limit:   l, from: w.m.Now(), spent: u.Spent, room: u.Spent.Add(u.Held), jobs: u.Jobs, gpus: u.GPUSpent + u.GPUHeld,
			open: u.Unbounded != "", carry: map[time.Time]money.Amount{},
		})
	}
}

// midnight records what is not booked yet when a window ends: it counts in the next window.
func (t *tenants) midnight() {
	w := t.w
	w.after(24*time.Hour, t.midnight)
	for _, l := range t.limits {
		begin := l.limit.Window.Begin(w.now)
		if !begin.Equal(w.now) {
			continue
		}
		for j := range w.m.Jobs() {
			for _, a := range j.Attempts() {
				if !a.Live() || !l.limit.Scope.Holds(j.Terms().Owner, t.by[j.ID()]) {
					continue
				}
				open := a.Cost(w.now)
				if t.v.idle() {
					open = open.Sub(a.Posted())
				}
				l.carry[begin] = l.carry[begin].Add(open)
			}
		}
	}
}

// check verifies at the end of a life what the server promises to several teams.
func (t *tenants) check() {
	t.checkAnswers()
	t.checkAudit()
	t.checkOwners()
	for _, l := range t.limits {
		t.checkLimit(l)
	}
	for _, key := range sortedKeys(t.waits) {
		if t.waits[key] >= 25 && t.told[key] == 0 {
			t.w.breaks("warned: nobody was told of %s", key)
		}
	}
}

// checkAnswers verifies that everything acknowledged has happened.
func (t *tenants) checkAnswers() {
	w := t.w
	for _, x := range t.wishes {
		if !x.acked {
			continue
		}
		if _, known := w.m.Job(x.id); !known || t.v.keys[x.key] != x.id {
			w.breaks("lost: %s of %s was answered and is not there", x.id, x.user)
		}
	}
}

// checkAudit verifies that each acknowledged act has its audit line, and that a line directly follows each act in the
// log.
func (t *tenants) checkAudit() {
	w := t.w
	lines := map[string]int{}
	named := func(n int, object, who string) bool {
		for ; n < len(w.log); n++ {
			r, err := w.log[n].back()
			if err != nil {
				return false
			}
			switch b := r.event.Body.(type) {
			case core.Audited:
				return b.Act.Object == object && b.Act.Who == who
			case core.IdentityChanged: // several in one act
			default:
				return false
			}
		}
		return false
	}
	for n := range w.log {
		r, err := w.log[n].back()
		if err != nil {
			w.breaks("replay: %v", err)
			return
		}
		who, isUser := strings.CutPrefix(r.event.Actor, "user:")
		missing := false
		switch b := r.event.Body.(type) {
		case core.Audited:
			lines[b.Act.Who+" "+b.Act.Route+" "+b.Act.Object+" "+b.Act.Outcome]++
		case core.JobSubmitted:
			missing = !named(n+1, b.Job, who)
		case core.JobEnded:
			missing = isUser && !named(n+1, b.Job, who)
		case core.BudgetsSet, core.IdentityChanged:
			if n+1 == len(w.log) {
				missing = true
			} else if next, err := w.log[n+1].back(); err == nil {
				_, line := next.event.Body.(core.Audited)
				_, more := next.event.Body.(core.IdentityChanged)
				missing = !line && !more
			}
		}
		if missing {
			w.breaks("audit: event %d, %s of %s, has no line", n+1, r.event.Body.Kind(), r.event.Actor)
		}
	}
	for _, act := range sortedKeys(t.acts) {
		if lines[act] < t.acts[act] {
			w.breaks("audit: %q was answered %d times and has %d lines", act, t.acts[act], lines[act])
		}
	}
}

// checkOwners verifies that the ledger and the provider's bills have exactly the same sums for every project, user and
// tag. checkMoney covers teams.
func (t *tenants) checkOwners() {
	w := t.w
	posted, billed := map[string]money.Amount{}, map[string]money.Amount{}
	add := func(sums map[string]money.Amount, o ledger.Owner, part money.Amount) {
		for _, of := range []string{"project " + o.Team + "/" + o.Project, "user " + t.by[o.Job], "tag env=" + o.Tags["env"], "user and project " + t.by[o.Job] + "/" + o.Project} {
			sums[of] = sums[of].Add(part)
		}
	}
	owned := map[string]bool{}  // others belong to nobody and are booked as such
	shared := map[string]bool{} // among jobs of other projects too: checkMoney checks the total of each
	for _, i := range w.m.State().Instances() {
		shared[i.ID()] = i.Shared()
	}
	for _, p := range w.postings {
		if shared[p.Owner.Instance] {
			continue
		}
		add(posted, p.Owner, cost(p))
		owned[p.Owner.Instance] = owned[p.Owner.Instance] || p.Owner.Job != ""
	}
	for _, i := range w.order {
		o := ledger.Owner{}
		if j := w.jobOf(i.key); j != nil && owned[i.id] {
			o = j.terms.Owner
			o.Job = j.id
		}
		for _, l := range i.bill {
			if !shared[i.id] {
				add(billed, o, l.Amount)
			}
		}
	}
	for _, of := range sortedKeys(posted) {
		if posted[of] != billed[of] {
			w.breaks("owners: the postings of %s say %v, the bills %v", of, posted[of], billed[of])
		}
	}
	for _, of := range sortedKeys(billed) {
		if _, known := posted[of]; !known && !billed[of].IsZero() {
			w.breaks("owners: %s was billed %v and nothing was posted", of, billed[of])
		}
	}
}
