package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/policy"
	"scrimp/internal/lib/identity"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Faults of a server that several teams share.
const (
	FaultNoHold     Fault = "no-hold"            // holds of accepted jobs do not count
	FaultOneBook    Fault = "one-book"           // the jobs of a batch are each admitted as if alone
	FaultNoGuard    Fault = "no-budget-guard"    // a spent budget stops no running job
	FaultSpares     Fault = "limit-spares-a-job" // one job continues after a budget is spent
	FaultRulesGone  Fault = "rules-forgotten"    // a new leader does not know the limits
	FaultNoSeen     Fault = "keys-forgotten"     // a new leader does not know the idempotency keys
	FaultNoAudit    Fault = "no-audit"           // some acts leave no audit line
	FaultNoRole     Fault = "no-role"            // everybody may do everything
	FaultNoTags     Fault = "no-tags"            // jobs are accepted without required tags
	FaultNoWarning  Fault = "warned-before-told" // a warning is recorded before the webhook has received it
	FaultNoAsking   Fault = "no-approval"        // expensive jobs start without approval
	FaultOwnWord    Fault = "own-approval"       // everybody may approve their own jobs
	FaultStaleRoles Fault = "roles-of-before"    // a server uses outdated roles
	FaultBurns      Fault = "rate-ignored"       // machines start although they exceed a limit of dollars an hour
)

// cheap lists the policies whose tables take no time.
var cheap = []policy.Rule{policy.UniformProgress2, policy.UniformProgress, policy.Greedy}

// look is the time between two budget checks in a drawn life.
const look = 3 * time.Minute

// tenants holds the users of a shared server, and what the server does for them outside the core: permissions, budgets,
// and the audit trail.
type tenants struct {
	w      *World
	v      *vault
	users  []string
	teams  []string
	wishes []*wish
	gpus   int

	book  *identity.Book // the server's, read by the leader of epoch
	epoch int
	told  map[string]int // warnings that a webhook has received
	noted map[string]bool
	spent map[string]int // budget checks that found a job running on a spent limit
	waits map[string]int // budget checks that found a due warning that nobody had received

	tallied int
	sums    map[string]tallied

	// What the checks know from the log alone.
	truth  *identity.Book
	by     map[string]string // the submitter, by job
	closed map[string]bool
	limits []*limited
	asking map[string]bool         // waits for approval
	over   map[string]money.Amount // how much the job exceeded its budget
	acts   map[string]int          // acknowledged acts, by user, action and result
}

type tallied struct {
	begin time.Time
	spent money.Amount
}

// wish is a job that a user wants.
type wish struct {
	key, user, id       string
	name, project, team string
	job                 simJob
	asks                core.Terms // terms as submitted: the job may get a budget
	tries               int
	acked, over         bool
}

// RunTeams simulates several teams on a server that fails and is replaced, and checks every property.
func RunTeams(seed uint64, plant Fault) *World {
	w, v, t := drawnTeams(seed, plant)
	t.live()
	if plant != FaultNone && len(w.Broken) > 0 {
		return w // it was cut off
	}
	w.check()
	v.check()
	t.check()
	return w
}

func drawnTeams(seed uint64, plant Fault) (*World, *vault, *tenants) {
	w := newWorld(rand.New(rand.NewPCG(seed, 0x7ea5)), epoch)
	w.seed, w.fault = seed, plant
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
	if w.extra = rand.New(rand.NewPCG(seed, 0x4e9)); w.extra.IntN(2) == 0 {
		w.faults.Register = 0.3 * w.extra.Float64()
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
		if w.chance(0.6) { // otherwise together with the previous one
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
		if x.name = x.job.id; n > 0 && w.chance(0.2) { // two users want the same name
			x.name = t.wishes[n-1].name
		}
		x.asks = x.job.terms
		t.wishes = append(t.wishes, x)
	}
}

func (t *tenants) live() {
	w := t.w
	cfg := core.DefaultConfig()
	cfg.MaxRunning, cfg.Detect = 1+w.rng.IntN(4), detect
	cfg.Policy = cheap[w.rng.IntN(len(cheap))]
	if w.warm() {
		cfg.Idle = time.Duration(1+w.seed%60) * time.Minute
		cfg.Seats = w.seats()
		cfg.MaxRunning += w.seats()
	}
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
	t.drawRates()
	if w.chance(0.4) {
		w.after(time.Duration(w.rng.IntN(300))*time.Minute, t.setTag)
	}
	for range w.rng.IntN(4) {
		w.after(time.Duration(w.rng.IntN(1200))*time.Minute, t.changeRoles)
	}
	if w.chance(0.2) {
		w.after(time.Duration(w.rng.IntN(300))*time.Minute, func() { w.orphan(w.zones[0]) })
	}
	t.breaks()
	t.ask()
	end := horizon / 2
	if w.fault != FaultNone {
		end = horizon / 6
	}
	for len(w.heap) > 0 && w.now.Sub(epoch) < end {
		w.next()
		if w.fault != FaultNone && len(w.Broken) > 0 {
			break
		}
		if t.v.idle() && w.m.Quiet() && w.allTold() && t.content() {
			break
		}
	}
}

// until repeats do every minute until it succeeds.
func (w *World) until(do func() bool) {
	if !do() {
		w.after(time.Minute, func() { w.until(do) })
	}
}

// content reports whether every wish has been accepted or refused for good.
func (t *tenants) content() bool {
	return !slices.ContainsFunc(t.wishes, func(x *wish) bool { return !x.over })
}

// act writes the events of one act and its audit line in one transaction. It reports whether the requester gets an
// answer.
func (t *tenants) act(who, route, object, outcome string, bodies ...core.Event) bool {
	w := t.w
	if !t.v.idle() {
		return false
	}
	actor := "user:" + who
	for n := range bodies {
		bodies[n].At, bodies[n].Schema, bodies[n].Tenant, bodies[n].Actor = w.event(core.Tick{}).At, core.Schema, "default", actor
	}
	if line := w.event(core.Audited{Act: identity.Act{At: w.now, Who: who, Route: route, Object: object, Outcome: outcome}}); w.fault != FaultNoAudit || !w.chance(0.2) {
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

// found creates the teams and the users.
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

// changeRoles removes or replaces a user's roles.
func (t *tenants) changeRoles() {
	w := t.w
	u, _ := t.truth.User(t.users[1+w.rng.IntN(len(t.users)-1)])
	u.Grants = []identity.Grant{{Team: t.teams[0], Role: []identity.Role{identity.Viewer, identity.Submitter}[w.rng.IntN(2)]}}
	w.until(func() bool {
		return t.act("owner", "PUT /v1/users", u.Name, "done", body(core.IdentityChanged{Change: identity.Change{User: &u}}))
	})
}

// drawZone adds a spot market that opens and closes by itself.
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
	z.firmOffer, z.onDemandRate = z.offer, onDemandRate
	z.firmOffer.ID, z.firmOffer.Capacity = z.firm, market.OnDemand
	w.zones = append(w.zones, z)
	w.after(w.span(5), func() { w.turn(z) })
}
