package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"scrimp/internal/budget"
	"scrimp/internal/core"
	"scrimp/internal/identity"
	"scrimp/internal/ledger"
	"scrimp/internal/market"
	"scrimp/internal/money"
	"scrimp/internal/policy"
)

// The faults that can be planted in a server that several teams share.
const (
	PlantNoHold     Plant = "no-hold"            // what is set aside for jobs that are let in is not counted
	PlantOneBook    Plant = "one-book"           // jobs that come together are each weighed as if alone
	PlantNoGuard    Plant = "no-budget-guard"    // what runs is not stopped where a budget is spent
	PlantRulesGone  Plant = "rules-forgotten"    // a server that takes over does not know the limits
	PlantNoSeen     Plant = "keys-forgotten"     // a server that takes over does not know the keys of submissions
	PlantNoAudit    Plant = "no-audit"           // some acts leave no line
	PlantNoRole     Plant = "no-role"            // everybody may do everything
	PlantNoTags     Plant = "no-tags"            // jobs are let in without the tags that they need
	PlantNoWarning  Plant = "warned-before-told" // a warning is noted before the webhook has heard it
	PlantNoAsking   Plant = "no-approval"        // jobs that can cost much begin without anybody's approval
	PlantOwnWord    Plant = "own-approval"       // everybody may approve what they submitted
	PlantStaleRoles Plant = "roles-of-before"    // a server knows the roles that were when it began
)

// cheap are policies whose tables take no time.
var cheap = []policy.Rule{policy.UniformProgress2, policy.UniformProgress, policy.Greedy}

// look is how often budgets are looked at in a drawn life.
const look = 3 * time.Minute

// tenants are the users of a shared server, and what the server does for them
// beside the core: who may do what, budgets, and the audit trail.
type tenants struct {
	w      *World
	v      *vault
	users  []string
	teams  []string
	wishes []*wish
	gpus   int

	book  *identity.Book // of the server, read by the leader of epoch
	epoch int
	told  map[string]int // warnings that a webhook has heard
	noted map[string]bool
	waits map[string]int // looks at which a warning was due and nobody had heard it

	tallied int
	sums    map[string]tallied

	// What the checks know from the log alone.
	truth  *identity.Book
	by     map[string]string // who submitted the job
	closed map[string]bool
	limits []*limited
	asking map[string]bool         // it waits for approval
	over   map[string]money.Amount // by how much the job has passed its budget
	acts   map[string]int          // acts that were answered, by who, what and how it ended
}

type tallied struct {
	begin time.Time
	spent money.Amount
}

// wish is a job that somebody wants.
type wish struct {
	key, user, id       string
	name, project, team string
	job                 simJob
	tries               int
	acked, over         bool
}

// RunTeams lives a life of several teams on a server that fails and follows
// itself, and checks every property of it.
func RunTeams(seed uint64, plant Plant) *World {
	w, v, t := drawnTeams(seed, plant)
	t.live()
	if plant != PlantNone && len(w.Broken) > 0 {
		return w // it was cut off
	}
	w.check()
	v.check()
	t.check()
	return w
}

func drawnTeams(seed uint64, plant Plant) (*World, *vault, *tenants) {
	w := newWorld(rand.New(rand.NewPCG(seed, 0x7ea5)), epoch)
	w.seed, w.plant = seed, plant
	odds := func(p float64) float64 {
		if w.chance(0.5) {
			return 0
		}
		return p
	}
	w.faults = faults{
		Refuse: odds(0.3), LoseAnswer: odds(0.2), Late: odds(0.3), Twice: odds(0.3), Silent: odds(0.05), TermFail: odds(0.3),
		Unlisted: odds(0.06), onDemandFails: w.chance(0.3),
	}
	if w.chance(0.2) {
		w.faults = faults{}
	}
	v := newVault(w)
	t := &tenants{
		w: w, v: v, told: map[string]int{}, noted: map[string]bool{}, waits: map[string]int{}, sums: map[string]tallied{},
		truth: identity.NewBook(), by: map[string]string{}, closed: map[string]bool{}, acts: map[string]int{}, over: map[string]money.Amount{}, asking: map[string]bool{},
	}
	v.twin = newTwin(w)
	w.watch, v.each = v.twin.watch, t.landed
	t.draw()
	return w, v, t
}

func (t *tenants) draw() {
	w := t.w
	w.firmDelay = time.Duration(w.rng.IntN(180)) * time.Second
	w.untried = w.chance(0.3)
	if w.chance(0.4) {
		t.gpus = 1 + w.rng.IntN(8)
	}
	for range 1 + w.rng.IntN(3) {
		w.drawZone(t.gpus)
	}
	for n := range 2 + w.rng.IntN(2) {
		t.teams = append(t.teams, fmt.Sprintf("team%d", n))
	}
	for n := range 3 + w.rng.IntN(3) {
		t.users = append(t.users, fmt.Sprintf("u%d", n))
	}
	at := time.Duration(0)
	for n := range 4 + w.rng.IntN(7) {
		x := &wish{key: fmt.Sprintf("key-%d", n), user: t.users[w.rng.IntN(len(t.users))], team: t.teams[w.rng.IntN(len(t.teams))], project: []string{"p", "q"}[w.rng.IntN(2)]}
		x.job = w.drawJob(fmt.Sprintf("j%d", n), t.gpus)
		if w.chance(0.6) { // else with the one before
			at = time.Duration(w.rng.IntN(1200)) * time.Minute
		}
		o := ledger.Owner{Team: x.team, Project: x.project, Tags: map[string]string{}}
		if w.chance(0.9) {
			o.Tags["env"] = []string{"dev", "dev", "dev", "prod", "prod", "play"}[w.rng.IntN(6)]
		}
		if t.gpus > 0 && w.chance(0.5) {
			x.job.terms.Need.Accelerators = 1
		}
		x.job.terms.Owner = o
		if w.chance(0.5) && !x.job.terms.HasBudget {
			x.job.terms.Budget, _ = money.Estimated(x.job.terms.Work.Hours() * (0.7 + 3*w.rng.Float64()))
			x.job.terms.HasBudget = true
		}
		if !x.job.terms.Deadline.IsZero() {
			x.job.terms.Deadline = x.job.terms.Deadline.Add(at)
		}
		if x.name = x.job.id; n > 0 && w.chance(0.2) { // two want the same name
			x.name = t.wishes[n-1].name
		}
		t.wishes = append(t.wishes, x)
	}
}

func (t *tenants) live() {
	w := t.w
	cfg := core.DefaultConfig()
	cfg.MaxRunning, cfg.Detect = 1+w.rng.IntN(4), detect
	cfg.Policy = cheap[w.rng.IntN(len(cheap))]
	w.until(func() bool { return w.step(core.Configured{Config: cfg}) })
	w.until(func() bool { return t.found() })
	w.quotes()
	w.after(time.Minute, w.housekeeping)
	w.after(look, t.guard)
	w.after(time.Duration(w.rng.IntN(2400))*time.Minute, t.v.note)
	w.at(w.now.Truncate(24*time.Hour).Add(24*time.Hour), t.midnight)
	for range 1 + w.rng.IntN(4) {
		at := time.Duration(0)
		if w.chance(0.4) {
			at = time.Duration(w.rng.IntN(900)) * time.Minute
		}
		w.after(at, func() { t.setLimit() })
	}
	if w.chance(0.4) {
		w.after(time.Duration(w.rng.IntN(300))*time.Minute, t.setTag)
	}
	for range w.rng.IntN(4) {
		w.after(time.Duration(w.rng.IntN(1200))*time.Minute, t.changeRoles)
	}
	if w.chance(0.2) {
		w.after(time.Duration(w.rng.IntN(300))*time.Minute, func() { w.orphan(w.zones[0]) })
	}
	t.ask()
	end := horizon / 2
	if w.plant != PlantNone {
		end = horizon / 6
	}
	for len(w.heap) > 0 && w.now.Sub(epoch) < end {
		w.next()
		if w.plant != PlantNone && len(w.Broken) > 0 {
			break
		}
		if t.v.idle() && w.m.Quiet() && w.allTold() && t.content() {
			break
		}
	}
}

// until does something again until it is done.
func (w *World) until(do func() bool) {
	if !do() {
		w.after(time.Minute, func() { w.until(do) })
	}
}

// content reports whether everybody has what they wanted, or was told no.
func (t *tenants) content() bool {
	return !slices.ContainsFunc(t.wishes, func(x *wish) bool { return !x.over })
}

// act takes the events of one act and its line of the audit trail, in one
// transaction. It reports whether who asks is told so.
func (t *tenants) act(who, route, object, outcome string, bodies ...core.Event) bool {
	w := t.w
	if !t.v.idle() {
		return false
	}
	actor := "user:" + who
	for n := range bodies {
		bodies[n].At, bodies[n].Schema, bodies[n].Tenant, bodies[n].Actor = w.event(core.Tick{}).At, core.Schema, "default", actor
	}
	if line := w.event(core.Audited{Act: identity.Act{At: w.now, Who: who, Route: route, Object: object, Outcome: outcome}}); w.plant != PlantNoAudit || !w.chance(0.2) {
		line.Actor = actor
		bodies = append(bodies, line)
	}
	if len(bodies) == 0 {
		return true
	}
	if !w.through(bodies...) {
		return false
	}
	t.acts[who+" "+route+" "+object+" "+outcome]++
	return true
}

func body(b core.Body) core.Event { return core.Event{Body: b} }

// found makes the teams and the users.
func (t *tenants) found() bool {
	w := t.w
	var events []core.Event
	for _, name := range t.teams {
		team := identity.Team{Name: name, Projects: []string{"p", "q"}}
		events = append(events, body(core.IdentityChanged{Change: identity.Change{Team: &team}}))
	}
	for n, name := range t.users {
		u := identity.User{Name: name, Made: epoch}
		for _, team := range t.teams {
			if w.chance(0.85) {
				u.Grants = append(u.Grants, identity.Grant{Team: team, Role: []identity.Role{identity.Viewer, identity.Submitter, identity.Submitter, identity.Submitter, identity.Operator, identity.Operator}[w.rng.IntN(6)]})
			}
		}
		if n == 0 {
			u.Grants = []identity.Grant{{Team: identity.Everywhere, Role: identity.Admin}}
		}
		events = append(events, body(core.IdentityChanged{Change: identity.Change{User: &u}}))
	}
	return t.act("owner", "PUT /v1/users", "all", "done", events...)
}

// changeRoles takes a user's roles away, or gives other ones.
func (t *tenants) changeRoles() {
	w := t.w
	u, _ := t.truth.User(t.users[1+w.rng.IntN(len(t.users)-1)])
	u.Grants = []identity.Grant{{Team: t.teams[0], Role: []identity.Role{identity.Viewer, identity.Submitter}[w.rng.IntN(2)]}}
	w.until(func() bool {
		return t.act("owner", "PUT /v1/users", u.Name, "done", body(core.IdentityChanged{Change: identity.Change{User: &u}}))
	})
}

// server returns the book of who may do what, as the leader of now has read it.
func (t *tenants) server() *identity.Book {
	if t.book != nil && t.epoch == t.v.epoch && t.w.plant == PlantStaleRoles {
		return t.book
	}
	t.book, t.epoch = identity.NewBook(), t.v.epoch
	for n := range t.w.log {
		r, err := t.w.log[n].back()
		if err != nil {
			panic(err)
		}
		if b, ok := r.event.Body.(core.IdentityChanged); ok {
			t.book.Apply(b.Change)
		}
	}
	return t.book
}

func (t *tenants) caller(book *identity.Book, user string) identity.Caller {
	if user == "owner" || t.w.plant == PlantNoRole {
		return identity.Owner(user)
	}
	u, _ := book.User(user)
	return identity.Caller{User: user, Grants: u.Grants}
}

// rules are the limits and tags that the server goes by.
func (t *tenants) rules() budget.Rules {
	r, _ := t.w.m.Rules()
	if t.w.plant == PlantRulesGone && t.v.epoch > 0 {
		return budget.Rules{}
	}
	return r
}

func (t *tenants) setRules(object string, change func(*budget.Rules)) {
	t.w.until(func() bool {
		if !t.v.idle() {
			return false
		}
		old, _ := t.w.m.Rules()
		r := budget.Rules{Limits: slices.Clone(old.Limits), Tags: budget.Tags{}}
		for k, v := range old.Tags {
			r.Tags[k] = v
		}
		change(&r)
		slices.SortFunc(r.Limits, func(a, b budget.Limit) int { return cmp.Compare(a.Name(), b.Name()) })
		return t.act("owner", "PUT /v1/budgets", object, "done", body(core.BudgetsSet{Rules: r}))
	})
}

func (t *tenants) setLimit() {
	w := t.w
	l := budget.Limit{Scope: []budget.Scope{
		budget.All, budget.Scope("team:" + t.teams[w.rng.IntN(len(t.teams))]), "project:p", budget.Scope("user:" + t.users[w.rng.IntN(len(t.users))]), "tag:env=dev",
	}[w.rng.IntN(5)], Window: []budget.Window{budget.Day, budget.Week, budget.Month, budget.Total, budget.Total}[w.rng.IntN(5)]}
	if w.chance(0.75) {
		usd, _ := money.Estimated(2 + 60*w.rng.Float64())
		l.Dollars = &usd
		if w.chance(0.6) {
			l.Warn, l.Notify = []float64{0.5}, "hook"
		}
	}
	if w.chance(0.3) || l.Dollars == nil {
		n := 1 + w.rng.IntN(4)
		l.Jobs = &n
	}
	if w.chance(0.2) {
		n := 1 + w.rng.IntN(2)
		l.Running = &n
	}
	if w.chance(0.45) {
		usd, _ := money.Estimated(1 + 12*w.rng.Float64())
		l.Approve, l.ApproveWithin = &usd, time.Duration(1+w.rng.IntN(40))*time.Hour
	}
	if t.gpus > 0 && w.chance(0.5) {
		h := 5 + 100*w.rng.Float64()
		l.GPUHours = &h
	}
	t.setRules(l.Name(), func(r *budget.Rules) {
		r.Limits = append(slices.DeleteFunc(r.Limits, func(o budget.Limit) bool { return o.Name() == l.Name() }), l)
	})
}

func (t *tenants) setTag() {
	t.setRules("tag env", func(r *budget.Rules) { r.Tags["env"] = []string{"dev", "prod"} })
}

// ask submits every wish in its time, some in batches.
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

// submit asks for a batch until there is an answer: all of it is let in, or none.
func (t *tenants) submit(batch []*wish) {
	w := t.w
	again := func() { w.after(time.Minute, func() { t.submit(batch) }) }
	if !t.v.idle() {
		again()
		return
	}
	b, events := t.books(t.rules()), []core.Event(nil)
	asks := map[*wish]bool{}
	var asked []*wish
	for _, x := range batch {
		id, seen := t.v.keys[x.key]
		if seen && (w.plant != PlantNoSeen || t.v.epoch == 0) {
			w.saw("the same key again")
			t.accepted(x, id)
			continue
		}
		if no := t.admit(&b, x); no != "" {
			w.saw("let in: no, " + no)
			if !t.act(x.user, "POST /v1/jobs", "", "refused") {
				again()
				return
			}
			for _, y := range batch {
				t.refused(y, no)
			}
			return
		}
		asked = append(asked, x)
		e := core.JobSubmitted{Job: x.id, Terms: x.job.terms, Spec: x.job.spec}
		j := t.budgetJob(x.id, x.user, &x.job.terms)
		if a, waits := budget.Approval(t.rules().Limits, j, w.now, asStated); waits && w.plant != PlantNoAsking {
			e.Asking, asks[x] = &a, true
		} else if w.plant != PlantOneBook {
			b.Live = append(b.Live, j)
		}
		events = append(events, core.Event{Key: x.key, Body: e})
	}
	if len(asked) == 0 {
		return
	}
	if len(asked) > 1 {
		w.saw("a batch")
	}
	var group []core.Event
	for n, x := range asked { // each with its line, as the server does
		e := events[n]
		line := body(core.Audited{Act: identity.Act{At: w.now, Who: x.user, Route: "POST /v1/jobs", Object: x.id, Outcome: "done"}})
		group = append(group, e)
		if w.plant != PlantNoAudit {
			group = append(group, line)
		}
	}
	for n := range group {
		group[n].At, group[n].Schema, group[n].Tenant, group[n].Actor = w.event(core.Tick{}).At, core.Schema, "default", "user:"+asked[min(n/2, len(asked)-1)].user
	}
	if !w.through(group...) {
		again()
		return
	}
	for _, x := range asked {
		t.acts[x.user+" POST /v1/jobs "+x.id+" done"]++
		t.accepted(x, x.id)
		if asks[x] {
			w.saw("a job waits for approval")
		}
	}
	if w.chance(w.faults.Twice) { // a client that did not hear the answer
		again()
	}
}

// accepted is a wish whose job is there; its user may end it, or another may try.
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
	for range 1 + w.rng.IntN(2) { // some look at what waits for approval
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
	waits := x.job.terms.HasBudget                                                    // for a price at which its budget would do
	if x.job.terms.Need.MaxRate > 0 || !x.job.terms.Saves || waits || w.chance(0.2) { // some give up
		w.after(72*time.Hour, func() { t.end(x, "owner", false) })
	}
}

// end asks for a job's end until there is an answer.
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
		if t.caller(t.server(), who).Role(j.Terms.Owner.Team) < identity.Submitter {
			w.saw("an end is refused")
			return t.act(who, "POST /v1/jobs/{id}/end", x.id, "refused")
		}
		if !t.act(who, "POST /v1/jobs/{id}/end", x.id, "done", body(core.JobEnded{Job: x.id, Save: save})) {
			return false
		}
		if j, _ := w.m.Job(x.id); !j.State.Over() && j.Ending == "" {
			w.breaks("lost: the end of %s was answered, and it goes on", x.id)
		}
		return true
	})
}

// review approves or rejects a job that waits for it, or tries to: what is
// approved is weighed again, for it has held nothing.
func (t *tenants) review(x *wish, who string, yes bool) {
	w := t.w
	w.until(func() bool {
		if !t.v.idle() {
			return false
		}
		j, known := w.m.Job(x.id)
		if !known || j.State != core.Held {
			return true
		}
		b := t.books(t.rules())
		weighed := t.budgetJob(x.id, t.by[x.id], &j.Terms)
		b.Live = slices.DeleteFunc(b.Live, func(o budget.Job) bool { return o.ID == x.id })
		switch {
		case !t.mayReview(t.caller(t.server(), who), j) && w.plant != PlantOwnWord:
			w.saw("a review is refused")
			return t.act(who, "POST /v1/jobs/{id}/review", x.id, "refused")
		case yes && b.Admit(weighed) != nil:
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

// asStated is a span of the wall in these lives: the market's own.
func asStated(d time.Duration) time.Duration { return d }

// mayReview: operators of the job's team, but not of their own jobs; admins always.
func (t *tenants) mayReview(c identity.Caller, j *core.Job) bool {
	role := c.Role(j.Terms.Owner.Team)
	return role >= identity.Admin || role >= identity.Operator && c.User != t.by[j.ID]
}

// refused is a wish that was not let in: it is asked for again later, alone, or given up.
func (t *tenants) refused(x *wish, why string) {
	w := t.w
	if x.over {
		return
	}
	w.jobs = slices.DeleteFunc(w.jobs, func(j simJob) bool { return j.id == x.id })
	x.id = ""
	if x.tries++; x.tries > 3 || why == "role" {
		x.over = true
		return
	}
	w.after(time.Duration(30+w.rng.IntN(1500))*time.Minute, func() { t.submit([]*wish{x}) })
}

// admit weighs a wish as the server does, and names its job.
func (t *tenants) admit(b *budget.Books, x *wish) (no string) {
	w := t.w
	c := t.caller(t.server(), x.user)
	book := t.server()
	if _, _, _, err := book.Place(c, x.team, x.project); err != nil && w.plant != PlantNoRole {
		return "role"
	}
	r := t.rules()
	if r.Tags.Check(x.job.terms.Owner.Tags) != nil && w.plant != PlantNoTags {
		return "tags"
	}
	terms := &x.job.terms
	if !terms.HasBudget && budget.Capped(r.Limits, terms.Owner, x.user) {
		most := terms.Need.MaxRate
		if most == 0 {
			for _, l := range w.m.Sale() {
				most = max(most, l.Quote.Rate)
			}
		}
		if usd, ok := budget.Bound(terms.Work, most); ok {
			terms.Budget, terms.HasBudget = usd, true
			w.saw("a budget from the work")
		}
	}
	x.id = t.name(x)
	if no := b.Admit(t.budgetJob(x.id, x.user, terms)); no != nil {
		return string(no.Why)
	}
	x.job.id, terms.Name = x.id, x.id
	if at := slices.IndexFunc(w.jobs, func(o simJob) bool { return o.id == x.id }); at < 0 {
		w.jobs = append(w.jobs, x.job)
	} else {
		w.jobs[at] = x.job
	}
	return ""
}

// name returns a name that no other job has.
func (t *tenants) name(x *wish) string {
	wanted := x.name
	for n := 1; ; n++ {
		id := wanted
		if n > 1 {
			id = fmt.Sprintf("%s-%d", wanted, n)
		}
		_, taken := t.w.m.Job(id)
		if !taken && !slices.ContainsFunc(t.wishes, func(o *wish) bool { return o != x && o.id == id }) {
			return id
		}
	}
}

func (t *tenants) budgetJob(id, user string, terms *core.Terms) budget.Job {
	return budget.Job{
		ID: id, Owner: terms.Owner, User: user, Most: terms.Budget, Bounded: terms.HasBudget && !terms.DeadlineFirst,
		GPUMost: terms.GPUHours, GPUBounded: terms.GPUHours > 0 || terms.Need.Accelerators == 0,
	}
}

// cost is what a posting adds to what was spent.
func cost(p ledger.Posting) (part money.Amount) {
	if isCost(p.To) {
		part = part.Add(p.Amount)
	}
	if isCost(p.From) {
		part = part.Sub(p.Amount)
	}
	return part
}

// books sums what is spent and held by now, as the server does.
func (t *tenants) books(r budget.Rules) budget.Books {
	w, limits := t.w, r.Limits
	b := budget.Books{Limits: limits, Spent: map[string]money.Amount{}, GPUs: map[string]float64{}}
	now := w.m.Now()
	if w.now.After(now) {
		now = w.now
	}
	for j := range w.m.Jobs() {
		user, gpus := t.by[j.ID], 0.0
		for _, a := range j.Attempts {
			if a.Instance == "" {
				continue
			}
			until := a.Until
			if until.IsZero() {
				until = now
			}
			gpus += float64(a.GPUs) * until.Sub(a.From).Hours()
			for _, l := range limits {
				if !l.Scope.Holds(j.Terms.Owner, user) {
					continue
				}
				from := a.From
				if begin := l.Window.Begin(now); from.Before(begin) {
					from = begin
				}
				if until.After(from) {
					b.GPUs[l.Name()] += float64(a.GPUs) * until.Sub(from).Hours()
				}
				if a.Live() {
					b.Spent[l.Name()] = b.Spent[l.Name()].Add(a.Cost(now).Sub(a.Posted))
				}
			}
		}
		if !isClosed(j) {
			v := t.budgetJob(j.ID, user, &j.Terms)
			v.Spent, v.GPUSpent, v.Asks = j.Spent(now), gpus, j.State == core.Held
			if w.plant == PlantNoHold {
				v.Most, v.GPUMost = v.Spent, v.GPUSpent
			}
			b.Live = append(b.Live, v)
		}
	}
	for ; t.tallied < len(w.postings); t.tallied++ {
		p := w.postings[t.tallied]
		for _, l := range limits {
			if part := cost(p); !part.IsZero() && l.Scope.Holds(p.Owner, t.by[p.Owner.Job]) {
				sum := t.sums[l.Name()]
				if begin := l.Window.Begin(p.At); !sum.begin.Equal(begin) {
					sum = tallied{begin: begin}
				}
				sum.spent = sum.spent.Add(part)
				t.sums[l.Name()] = sum
			}
		}
	}
	for _, l := range limits {
		if sum := t.sums[l.Name()]; sum.begin.Equal(l.Window.Begin(now)) {
			b.Spent[l.Name()] = b.Spent[l.Name()].Add(sum.spent)
		}
	}
	return b
}

func isClosed(j *core.Job) bool {
	return j.State.Over() && !slices.ContainsFunc(j.Attempts, (*core.Attempt).Live)
}

// guard looks at the budgets: it warns, and stops what runs where one is spent.
func (t *tenants) guard() {
	w := t.w
	w.after(look, t.guard)
	if !t.v.idle() {
		return
	}
	b := t.books(t.rules())
	for _, l := range b.Limits {
		for _, share := range l.Passed(b.Use(l)) {
			key := fmt.Sprintf("%s@%g %s", l.Name(), share, l.Window.Begin(w.now).Format(time.RFC3339))
			if share == 1 && w.plant != PlantNoGuard {
				t.stopAll(l, b.Live)
			}
			if l.Notify != "" && t.told[key] == 0 {
				t.waits[key]++
			}
			if l.Notify == "" || t.noted[key] || !t.v.idle() {
				continue
			}
			if w.plant == PlantNoWarning {
				t.noted[key] = true
			}
			if w.chance(0.3) {
				w.saw("a webhook is away")
				continue
			}
			t.told[key]++
			w.saw("a warning")
			t.noted[key] = w.plant == PlantNoWarning || !w.chance(t.v.odds*6) // else the server died before it noted it
		}
	}
}

func (t *tenants) stopAll(l budget.Limit, live []budget.Job) {
	w := t.w
	var events []core.Event
	for _, b := range live {
		j, ok := w.m.Job(b.ID)
		if !ok || j.State.Over() || j.Ending != "" || !l.Scope.Holds(b.Owner, b.User) {
			continue
		}
		e := w.event(core.JobEnded{Job: b.ID, Save: true})
		e.Actor = "budget:" + l.Name()
		events = append(events, e)
	}
	if len(events) > 0 && t.v.idle() {
		w.saw("stopped at a limit")
		w.through(events...)
	}
}

// drawZone adds a spot market that turns by itself.
func (w *World) drawZone(gpus int) {
	name := fmt.Sprintf("z%d", len(w.zones))
	z := &zone{
		name: name, spot: market.OfferID("sim/" + name + "/m/spot"), firm: market.OfferID("sim/" + name + "/m/on-demand"),
		rate: money.Rate(900_000_000_000 + w.rng.Int64N(400_000_000_000)),
	}
	z.offer = market.Offer{ID: z.spot, Provider: "sim", Region: "r", Zone: name, Machine: "m", Capacity: market.Spot, CPUs: 4, Memory: 8 << 30, Accelerators: gpus, Speed: 1, Currency: money.USD}
	if w.chance(0.3) {
		z.offer.Billing.FreeIfInterruptedWithin = time.Hour
	}
	z.firmOffer, z.firmRate = z.offer, firmRate
	z.firmOffer.ID, z.firmOffer.Capacity = z.firm, market.OnDemand
	w.zones = append(w.zones, z)
	w.after(w.span(5), func() { w.turn(z) })
}
