package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core/accounting"
	"scrimp/internal/decide/fair"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/limits"
)

// noise draws nonsensical events: about jobs, attempts and instances that exist, existed or never will, with
// contradictory times and numbers. Step must accept them all.
type noise struct {
	rng *rand.Rand
	now time.Time
}

func (n *noise) pick(of ...string) string { return of[n.rng.IntN(len(of))] }

func (n *noise) job() string { return n.pick("a", "b", "c", "a", "b") }

func (n *noise) attempt() string { return fmt.Sprintf("%s.%d", n.job(), 1+n.rng.IntN(6)) }

func (n *noise) instance() string { return fmt.Sprintf("i-%d", n.rng.IntN(12)) }

func (n *noise) offer() market.OfferID {
	return market.OfferID(n.pick("sim/z/m/spot", "sim/z/m/on-demand", "sim/y/m/spot", "nobody"))
}

func (n *noise) rate() money.Rate { return money.Rate(n.rng.Int64N(4e12)) }

// when returns a time near now, before or after it.
func (n *noise) when() time.Time {
	return n.now.Add(time.Duration(n.rng.NormFloat64() * float64(time.Hour)))
}

func (n *noise) span() time.Duration { return time.Duration(n.rng.Int64N(int64(2 * time.Hour))) }

func (n *noise) event() Event {
	n.now = n.now.Add(time.Duration(n.rng.ExpFloat64() * float64(3*time.Minute)))
	return Event{At: n.now, Schema: Schema, Tenant: "default", Body: n.body()}
}

func (n *noise) body() Body {
	message := n.rng.Int64N(40)
	step := n.rng.Int64N(2000)
	switch n.rng.IntN(20) {
	case 0:
		return n.submitted()
	case 1:
		if n.rng.IntN(8) > 0 {
			return []Body{Tick{}, Tick{}, Audited{}, IdentityChanged{}, n.rules(), JobReviewed{Job: n.job(), Approved: n.rng.IntN(3) > 0}}[n.rng.IntN(6)]
		}
		return JobEnded{Job: n.job(), Save: n.rng.IntN(2) == 0, Limit: []string{"", "team:a/month"}[n.rng.IntN(2)]}
	case 2:
		return n.market()
	case 3, 4, 5:
		return LaunchDone{Launch: n.attempt(), Instance: n.instance(), Offer: n.offer(), Rate: n.rate(), From: n.when()}
	case 6:
		return []Body{
			LaunchRefused{Launch: n.attempt(), Reason: n.pick("no_capacity", "quota", ""), Scope: state.Scope(n.pick("", "offer", "zone", "pool", "account")), Wait: n.span()},
			LaunchPending{Launch: n.attempt()}, LaunchExpired{Launch: n.attempt()}, LaunchCancelled{Launch: n.attempt()},
			IncarnationBegun{Installation: "x", Incarnation: n.rng.IntN(4)}, OwnershipDecided{Adopt: n.rng.IntN(2) == 0},
		}[max(0, n.rng.IntN(14)-8)]
	case 7, 8:
		b := InstanceEnded{Instance: n.instance(), Until: n.when(), Cause: n.pick("terminated", "interrupted", "stopped")}
		if n.rng.IntN(2) == 0 {
			return BillReceived{Instance: b.Instance, Launch: n.attempt(), Lines: append([]BillLine{}, BillLine{Amount: money.Picos(n.rng.Int64N(3e12)), Currency: money.USD}, BillLine{Rule: "credit", Amount: money.Picos(n.rng.Int64N(2e12) - 1e12), Currency: money.USD})}
		}
		return b
	case 9:
		b := InventorySeen{Provider: n.pick("sim", "sim", "other"), AsOf: n.when()}
		for range n.rng.IntN(4) {
			b.Running = append(b.Running, Rented{Instance: n.instance(), Launch: n.attempt(), Offer: n.offer(), Rate: n.rate(), From: n.when()})
		}
		return b
	case 10:
		if message%2 == 0 { // derived from an earlier draw, so the rest of the noise does not change
			return MachineRegistered{Instance: fmt.Sprintf("i-%d", step%12), Allocation: n.attempt(), Key: "k", Isolated: message%4 == 0}
		}
		return AgentClaimed{Attempt: n.attempt()}
	case 11, 12:
		return AttemptStarted{Attempt: n.attempt(), Message: message, Restored: n.pick("", "m-1"), Step: step, Took: n.span()}
	case 13, 14:
		b := Progressed{Attempt: n.attempt(), Message: message, Step: step, Total: n.rng.Int64N(2) * 2000, Metrics: map[string]float64{"loss": n.rng.NormFloat64()}}
		if n.rng.IntN(10) == 0 {
			b.Broken = []string{"loss"}
		}
		return b
	case 15, 16:
		return CheckpointSaved{Attempt: n.attempt(), Message: message, Manifest: "m", Step: step, Bytes: 1, Captured: n.when(), Took: n.span()}
	case 17:
		return NoticeGiven{Attempt: n.attempt(), Message: message, Until: n.when()}
	case 18:
		if n.rng.IntN(2) == 0 {
			return AgentSilent{Attempt: n.attempt(), Since: n.when()}
		}
		u := UsageSeen{Attempt: n.attempt(), Message: message, CPU: n.rng.Float64() / 8}
		if n.rng.IntN(2) == 0 {
			u.GPU = new(float64(n.rng.IntN(2)) * n.rng.Float64())
		}
		return u
	default:
		return AttemptEnded{Attempt: n.attempt(), Message: message, Reason: n.pick("completed", "failed", "drained", "setup", "strange"), Exit: n.rng.IntN(140), Step: step, Saved: n.rng.IntN(2) == 0}
	}
}

func (n *noise) submitted() Body {
	t := Terms{
		Name: "x", Currency: money.USD, Owner: ledger.Owner{Team: "t"}, Need: plan.Need{Requirements: plan.Requirements{CPUs: 1}}, Saves: n.rng.IntN(4) > 0,
		Steps: n.rng.Int64N(2) * 1500, Work: n.span() * time.Duration(n.rng.IntN(2)), Restart: n.span() / 20, Grace: n.span() / 40,
		MaxRetries: n.rng.IntN(3), Priority: n.rng.IntN(3), IdleLimit: n.span() * time.Duration(n.rng.IntN(2)), DeadlineFirst: n.rng.IntN(2) == 0,
		Metric: policy.Metric{Name: n.pick("", "loss"), Patience: n.rng.Int64N(2) * 300},
	}
	if n.rng.IntN(2) == 0 {
		t.Deadline = n.when().Add(2 * time.Hour)
	}
	if n.rng.IntN(2) == 0 {
		t.Budget, t.HasBudget = money.Picos(n.rng.Int64N(6e12)-1e12), true
	}
	if n.rng.IntN(3) == 0 {
		t.WallClock = n.span()
	}
	b := JobSubmitted{Job: n.job(), Terms: t}
	if n.rng.IntN(3) == 0 {
		b.Asking = &budget.PendingApproval{Until: n.when().Add(4 * time.Hour)}
	}
	return b
}

// rules returns limits for the queue.
func (n *noise) rules() Body {
	var list []budget.Limit
	for _, scope := range []budget.Scope{"all", "team:t", "user:owner"} {
		l := budget.Limit{Scope: scope, Window: budget.Day}
		if n.rng.IntN(2) == 0 {
			count := n.rng.IntN(3)
			l.Running = &count
		}
		if n.rng.IntN(3) == 0 {
			count := n.rng.IntN(4)
			l.GPUs = &count
		}
		if n.rng.IntN(2) == 0 {
			hours := n.rng.Float64() * 4
			l.GPUHours, l.Wait = &hours, true
		}
		list = append(list, l)
	}
	b := BudgetsSet{Rules: budget.Rules{Limits: list}}
	b.Rules.Fair = sharesOf(int(n.now.Unix() / 7 % 1000))
	return b
}

// sharesOf returns how teams share the queue, in half of the cases.
func sharesOf(n int) *fair.Rules {
	if n%2 == 0 {
		return nil
	}
	r := &fair.Rules{HalfLife: time.Duration(1+n%48) * time.Hour}
	for i, team := range []string{"t", "u"}[:1+n/2%2] {
		s := fair.Team{Name: team, Weight: float64(1 + n%3), Guarantee: money.Rate((n+i)%3) * 1e12}
		if n%5 == 0 {
			s.Borrow = new(money.Rate((n+i)%4) * 1e12)
		}
		r.Teams = append(r.Teams, s)
	}
	return r
}

func (n *noise) market() Body {
	var b MarketSeen
	for _, id := range []market.OfferID{"sim/z/m/spot", "sim/z/m/on-demand", "sim/y/m/spot"} {
		o := market.Offer{ID: id, Provider: "sim", Region: "r", Zone: string(id[4]), Machine: "m", Capacity: market.Spot, CPUs: 2, Accelerators: n.rng.IntN(3), Speed: float64(n.rng.IntN(3)), Currency: money.USD}
		if id == "sim/z/m/on-demand" {
			o.Capacity = market.OnDemand
		}
		if n.rng.IntN(3) > 0 {
			b.Offers = append(b.Offers, o)
		}
		b.Quotes = append(b.Quotes, market.Quote{Offer: id, Rate: n.rate(), Priced: n.rng.IntN(5) > 0, Available: n.rng.IntN(3) > 0, At: n.when(), Source: "noise"})
	}
	return b
}

// A step accepts any events in any order, the sums agree, and the log and the snapshot reproduce the state.
func TestStep_AcceptsEveryEvent(t *testing.T) {
	t.Parallel()
	for seed := range uint64(lane.Pick(24, 2_000)) {
		nonsense(t, seed, 400, false)
		if t.Failed() {
			t.Fatalf("repeat: nonsense(t, %d, 400, false)", seed)
		}
	}
}

func FuzzStep_AcceptsEveryEvent(f *testing.F) {
	f.Add(uint64(1), uint16(100))
	f.Fuzz(func(t *testing.T, seed uint64, events uint16) { nonsense(t, seed, int(events%2000), seed%2 == 0) })
}

// nonsense steps a machine through random events and checks it after each. extremes puts numbers at the ends of
// their bounds.
func nonsense(t *testing.T, seed uint64, events int, extremes bool) (log []logged, last *Machine) {
	t.Helper()
	n := &noise{rng: rand.New(rand.NewPCG(seed, 99)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	parts := 1 + int(seed%3)
	m, replayed := On(state.NewParts(parts), plan.NewPlanner()), state.NewParts(parts)
	costs := map[string]money.Amount{}
	cfg := DefaultConfig()
	cfg.MaxRunning = 1 + n.rng.IntN(3)
	cfg.Idle = time.Duration(seed%2) * 2 * time.Hour
	sense := rand.New(rand.NewPCG(seed, 7))
	var frozen *state.Snapshot
	var then json.RawMessage
	var texts []json.RawMessage // texts of the newest snapshot, or of an earlier one if unchanged
	encode := func() {
		number, part, more, err := frozen.Encode()
		switch {
		case err != nil:
			t.Fatal(err)
		case more:
			texts = append(texts[:max(number, len(texts))], make([]json.RawMessage, max(0, number+1-len(texts)))...)
			texts[number] = part
		default:
			head, err := frozen.Head()
			must.Do(t, err)
			if got, _ := json.Marshal(map[string]any{"head": head, "parts": texts}); !bytes.Equal(got, then) {
				t.Errorf("seed %d: later steps change the state that was frozen:\n%s\nwas\n%s", seed, got, then)
			}
			frozen = nil
		}
	}
	since := uint64(0)
	if cfg.Idle > 0 {
		events /= 2 // more jobs to compare
	}
	for i := range events {
		e := n.event()
		if i == 0 {
			e.Body = Configured{Config: cfg}
		} else if cfg.Idle > 0 && sense.IntN(4) > 0 {
			if soon := m.State().Now().Add(time.Duration(sense.IntN(20)) * time.Second); soon.Before(e.At) {
				e.At = soon
			}
			e.Body = sensible(m, sense, e.At, e.Body)
		}
		if frozen == nil && n.rng.IntN(40) == 0 {
			then = snap(t, m)
			frozen, since = m.Freeze(since), m.Seq()
		}
		if frozen != nil && n.rng.IntN(20) == 0 {
			encode()
		}
		if x := (extreme{sense, e.At, 3}); extremes && i > 0 {
			if i == 1 {
				e.Body = n.market()
			}
			if e.Body = lively(m, sense, e.At, e.Body); sense.IntN(2) > 0 {
				x.chance = 30
			}
			e.Body, _ = limits.Clipped(x.of(e.Body), e.At) // the noise itself draws numbers out of bounds
		}
		before := jobs(t, m)
		worked := 0
		m.step.OnWork(func(*Job) { worked++ })
		out := m.Step(e)
		if worked > mostWork {
			t.Fatalf("seed %d, event %d (%s): the step worked %d times on a job", seed, i, e.Body.Kind(), worked)
		}
		for j := range m.Jobs() {
			if text, _ := state.EncodeJob(j); m.ChangedAt(j) != m.Seq() && (string(text) != before[j.ID()] || j.Event() == m.Seq()) {
				t.Fatalf("seed %d, event %d (%s) changed %s, which says that event %d was the last:\n%s\nwas\n%s", seed, i, e.Body.Kind(), j.ID(), m.ChangedAt(j), text, before[j.ID()])
			}
		}
		for _, p := range out.Postings {
			if p.Owner.Attempt == "" && p.Owner.Job == "" {
				costs[p.Owner.Task] = costs[p.Owner.Task].Add(state.CostOf(p))
			}
			if _, _, to := p.To.IsCost(); to {
				costs[p.Owner.Attempt] = costs[p.Owner.Attempt].Add(p.Amount)
			}
			if _, _, from := p.From.IsCost(); from {
				costs[p.Owner.Attempt] = costs[p.Owner.Attempt].Sub(p.Amount)
			}
			if p.Amount.Sign() <= 0 {
				t.Fatalf("seed %d, event %d (%s): posting of %v", seed, i, e.Body.Kind(), p.Amount)
			}
		}
		if wake := out.Wake; !wake.IsZero() && !wake.After(e.At) && out.Decided == 0 && !settles(out) {
			t.Fatalf("seed %d, event %d (%s): to be woken at once, and nothing was done", seed, i, e.Body.Kind())
		}
		if !out.Nothing {
			replayed.Replay(m.Seq(), read1(t, e), readFacts(t, out.Facts), out.Postings)
			log = append(log, logged{m.Seq(), e, out.Facts, out.Postings})
		}
	}
	for j := range m.Jobs() {
		var spent money.Amount
		for _, a := range j.Attempts() {
			whole := a.Posted().Add(a.Rules())
			if accounting.Sum(a.Uses()) != whole || costs[a.ID()] != whole {
				t.Errorf("seed %d: %s cost %v, its uses %v, its postings %v", seed, a.ID(), whole, accounting.Sum(a.Uses()), costs[a.ID()])
			}
			if open := a.Uses()[ledger.Open]; !a.Live() && !open.IsZero() {
				t.Errorf("seed %d: %s is gone and %v of it is open", seed, a.ID(), open)
			}
			if !a.Live() {
				spent = spent.Add(whole)
			} else {
				spent = spent.Add(a.Cost(n.now))
			}
		}
		for _, a := range j.Wanted() { // machines of an incomplete gang
			spent = spent.Add(a.Cost(n.now))
		}
		if got := j.Spent(n.now); got != spent {
			t.Errorf("seed %d: %s spent %v, its attempts %v", seed, j.ID(), got, spent)
		}
	}
	machinesAddUp(t, m, costs)
	for frozen != nil {
		encode()
	}
	whole := snap(t, m)
	if again, err := replayed.Snapshot(); err != nil || !bytes.Equal(whole, again) {
		t.Errorf("seed %d: the log gives another state", seed)
	}
	restored, err := Restore(whole)
	must.Do(t, err)
	if !bytes.Equal(whole, snap(t, restored)) {
		t.Errorf("seed %d: the snapshot gives another state", seed)
	}
	return log, m
}

// logged is an event with its results.
type logged struct {
	seq      uint64
	event    Event
	facts    []Fact
	postings []ledger.Posting
}

// mostWork bounds how often a step with a few jobs works on one of them.
const mostWork = 200

// sensible returns a plausible message of some machine's agent, or b.
func sensible(m *Machine, rng *rand.Rand, at time.Time, b Body) Body {
	if rng.IntN(8) == 0 {
		return JobSubmitted{Job: fmt.Sprintf("w%d", m.Seq()), Terms: Terms{Name: "w", Currency: money.USD, Restart: time.Duration(rng.IntN(300)) * time.Second,
			Owner: ledger.Owner{Team: "t"}, Need: plan.Need{Requirements: plan.Requirements{CPUs: 1}}, Saves: true, Steps: 100, Priority: 1}}
	}
	asked := ""
	for a := range m.State().Allocations() {
		asked = max(asked, a.ID())
	}
	if a := m.State().Allocation(asked); a != nil && rng.IntN(2) == 0 {
		return LaunchDone{Launch: asked, Instance: fmt.Sprintf("i-%d", 100+m.Seq()), Offer: a.Offer(), Rate: a.Rate(), From: at}
	}
	for _, i := range m.State().Instances() {
		switch a := m.State().Seated(i); {
		case rng.IntN(3) == 0:
		case !i.Live() && i.Shared():
			return BillReceived{Instance: i.ID(), Launch: i.Allocation(), Lines: []BillLine{{Amount: money.Picos(rng.Int64N(3e12)), Currency: money.USD},
				{Rule: "credit", Amount: money.Picos(-rng.Int64N(1e12)), Currency: money.USD}}}
		case !i.Live():
		case rng.IntN(6) == 0:
			return InstanceEnded{Instance: i.ID(), Until: at.Add(-time.Duration(rng.IntN(90)) * time.Second), Cause: "interrupted"}
		case i.Agent() == nil:
			return MachineRegistered{Instance: i.ID(), Allocation: i.Allocation(), Key: "k"}
		case a == nil && rng.IntN(4) == 0:
			return MachineReleased{Instance: i.ID()}
		case a == nil:
			return MachineCleaned{Instance: i.ID()}
		case a.Live():
			return AttemptEnded{Attempt: a.ID(), Reason: "completed"}
		}
	}
	return b
}

// machinesAddUp checks that the charges of a machine's tasks and of its idle spans add up to its cost, and their
// parts of its bill to its postings.
func machinesAddUp(t *testing.T, m *Machine, costs map[string]money.Amount) {
	t.Helper()
	for _, i := range m.State().Instances() {
		if !i.Shared() {
			continue
		}
		names, all := slices.Clone(i.Served()), money.Amount{}
		for _, s := range i.Seats() {
			names = append(names, s.Attempt)
		}
		for _, name := range names {
			if a := m.State().AttemptOf(name); a != nil { // an incomplete gang has no attempt yet
				all = all.Add(a.On(i.ID()).Posted()) // a gang has other machines too
			}
		}
		for _, idle := range i.Idles() {
			all = all.Add(idle.Posted)
			if whole := idle.Posted.Add(idle.Rules); costs[idle.Owner.Task] != whole {
				t.Errorf("%s cost %v, its postings %v", idle.Owner.Task, whole, costs[idle.Owner.Task])
			}
		}
		if all != i.Posted() {
			t.Errorf("%s was charged %v, its tasks and spans without one %v", i.ID(), i.Posted(), all)
		}
	}
}

// read1 writes e to a log and reads it back.
func read1(t *testing.T, e Event) Event {
	t.Helper()
	b, err := json.Marshal(e)
	must.Do(t, err)
	var back Event
	must.Do(t, json.Unmarshal(b, &back))
	return back
}

// readFacts writes facts to a log and reads them back.
func readFacts(t *testing.T, facts []Fact) []Fact {
	t.Helper()
	b, err := state.EncodeFacts(facts)
	must.Do(t, err)
	back, err := state.DecodeFacts(b)
	must.Do(t, err)
	return back
}

// jobs returns each job as JSON, by name.
func jobs(t *testing.T, m *Machine) map[string]string {
	t.Helper()
	all := map[string]string{}
	for j := range m.Jobs() {
		text, err := state.EncodeJob(j)
		must.Do(t, err)
		all[j.ID()] = string(text)
	}
	return all
}

func snap(t *testing.T, m *Machine) json.RawMessage {
	t.Helper()
	b, err := m.Snapshot()
	must.Do(t, err)
	return b
}

// settles reports whether a step booked the unused cost of a reservation. Others may follow at once.
func settles(out Outcome) bool {
	return slices.ContainsFunc(out.Facts, func(f state.Fact) bool { _, ok := f.(state.ReserveSettled); return ok })
}
