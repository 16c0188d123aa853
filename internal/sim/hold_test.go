package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
)

// tree is a generated study of pipelines of jobs under limits of its team.
type tree struct {
	m      *core.Machine
	rng    *rand.Rand
	now    time.Time
	owner  ledger.Owner
	made   int
	spent  money.Amount // by the postings
	broken string       // the first violated property
	seen   map[string]int
}

const study = "study:s"

func usd(n float64) money.Amount { a, _ := money.Estimated(n); return a }

func newTree(seed uint64, faults core.Faults) *tree {
	t := &tree{m: core.New(), rng: rand.New(rand.NewPCG(seed, 0x401d)), now: epoch, seen: map[string]int{},
		owner: ledger.Owner{Tenant: "default", Team: "a", Tags: map[string]string{"k": "v"}}}
	t.m.Break(faults)
	cfg := core.DefaultConfig()
	cfg.MaxRunning = 24
	t.step(core.Configured{Config: cfg})
	o := market.Offer{ID: "o", Provider: "p", Zone: "z", Region: "r", Machine: "m", Capacity: market.OnDemand, CPUs: 4, Speed: 1,
		Currency: money.USD, Billing: market.Billing{Minimum: time.Minute}}
	t.step(core.MarketSeen{Offers: []market.Offer{o}, Quotes: []market.Quote{{Offer: "o", Rate: 1e12, Priced: true, Available: true, At: t.now}}})
	dollars, eight := usd(40_000), 8
	t.step(core.BudgetsSet{Rules: budget.Rules{Limits: []budget.Limit{{Scope: "team:a", Window: budget.Total, Dollars: &dollars},
		{Scope: "tag:k=v", Window: budget.Day, Running: &eight}}}})
	return t
}

func (t *tree) step(b core.Body) core.Outcome {
	out := t.m.Step(core.Event{At: t.now, Schema: core.Schema, Tenant: "default", Body: b})
	for _, p := range out.Postings {
		t.spent = t.spent.Add(cost(p))
	}
	for _, a := range out.Actions {
		switch a := a.(type) {
		case core.Launch:
			t.step(core.LaunchDone{Launch: a.Allocation, Instance: "i-" + a.Allocation, Offer: a.Offer, Rate: 1e12, From: t.now})
			t.step(core.AttemptStarted{Attempt: a.Allocation, Message: 1})
		case core.Terminate:
			t.step(core.InstanceEnded{Instance: a.Instance, Until: t.now, Cause: "terminated"})
		}
	}
	return out
}

func (t *tree) breaks(format string, a ...any) {
	if t.broken == "" {
		t.broken = fmt.Sprintf(format, a...)
	}
}

// open opens a hold and reports whether the core accepted it.
func (t *tree) open(name, parent string, dollars float64) bool {
	t.step(core.GroupOpened{Group: name, Terms: core.GroupTerms{Owner: t.owner, Parent: parent, HasBudget: true, Budget: usd(dollars), AtOnce: 4, Grace: 9 * time.Minute}})
	return t.m.State().Group(name) != nil
}

// spawn submits n parts of a hold and verifies that all start if there is room, and none otherwise.
func (t *tree) spawn(parent string, n int) {
	b := core.Spawn{Parent: parent}
	room, takes := t.room(parent), money.Amount{}
	for range n {
		t.made++
		one := core.JobSubmitted{Job: fmt.Sprint("j", t.made), Terms: core.Terms{Owner: t.owner, Parent: parent, Currency: money.USD, Saves: true, Grace: time.Minute,
			Work: time.Duration(1+t.rng.IntN(90)) * time.Minute, Need: plan.Need{Requirements: plan.Requirements{CPUs: 1}}}}
		if t.rng.IntN(3) > 0 { // otherwise it gets half again its work
			one.Terms.Budget, one.Terms.HasBudget = usd(0.1+2*t.rng.Float64()), true
			takes = takes.Add(one.Terms.Budget)
		} else {
			most, _ := budget.Bound(one.Terms.Work, 1e12)
			takes = takes.Add(most)
		}
		b.Parts = append(b.Parts, one)
	}
	fits := takes.Cmp(room) <= 0 && t.m.State().Group(parent).Phase == state.GroupOpen && t.m.State().Group(study).Phase == state.GroupOpen
	out := t.step(b)
	refused := slices.ContainsFunc(out.Facts, func(f core.Fact) bool { _, no := f.(state.JobRefused); return no })
	began := 0
	for _, p := range b.Parts {
		if _, ok := t.m.Job(p.Job); ok {
			began++
		}
	}
	switch {
	case refused == fits:
		t.breaks("room: %d parts of %v in %s with room for %v: refused %v", n, takes, parent, room, refused)
	case refused && began > 0, !refused && began < n:
		t.breaks("whole: %d of %d parts began, refused %v", began, n, refused)
	}
	t.seen[fmt.Sprint("refused ", refused)]++
}

// takes sums a hold and everything below it over its parts: the cost so far, and the most that it may cost.
func (t *tree) takes(name string, of map[string][]*core.Job) (spent, most money.Amount) {
	for _, j := range of[name] {
		s := j.Spent(t.now)
		spent = spent.Add(s)
		if m := j.Terms().Budget; !j.State().Over() && m.Cmp(s) > 0 {
			s = m
		}
		most = most.Add(s)
	}
	for _, h := range t.m.State().Groups() {
		if h.Terms.Parent == name {
			s, m := t.takes(h.Name, of)
			if h.Phase == state.GroupOpen && m.Cmp(h.Worst) < 0 {
				m = h.Worst
			}
			spent, most = spent.Add(s), most.Add(m)
		}
	}
	return spent, most
}

// parts returns the jobs by hold.
func (t *tree) parts() map[string][]*core.Job {
	of := map[string][]*core.Job{}
	for j := range t.m.Jobs() {
		of[j.Terms().Parent] = append(of[j.Terms().Parent], j)
	}
	return of
}

func (t *tree) room(hold string) money.Amount {
	_, most := t.takes(hold, t.parts())
	return t.m.State().Group(hold).Terms.Budget.Sub(most)
}

// check verifies that the limit's sums equal those of the tree: the cost so far, and the rest of its worst case,
// counted once.
func (t *tree) check() {
	b, _ := t.m.Books(t.now)
	u, of := b.Use(b.Limits[0]), t.parts()
	spent, most := t.takes(study, of)
	if h := t.m.State().Group(study); h.Phase == state.GroupOpen && most.Cmp(h.Worst) < 0 {
		most = h.Worst
	}
	jobs := 0
	for j := range t.m.Jobs() {
		if !j.State().Over() {
			jobs++
		}
	}
	if held := most.Sub(spent); u.Held != held || u.Spent != spent {
		t.breaks("sums: spent %v and held %v, the tree says %v and %v", u.Spent, u.Held, spent, held)
	}
	if live := len(t.m.Live()); live > 8 || u.Running > 8 {
		t.breaks("quota: %d of 8 parts run", live)
	}
	if u.Jobs < jobs {
		t.breaks("quota: %d jobs are counted, there are %d", u.Jobs, jobs)
	}
}

// live grows the tree and runs its parts until all have ended.
func (t *tree) live(parts int) {
	if !t.open(study, "", 30_000) {
		t.breaks("room: the study is not opened")
		return
	}
	for n, tries := 0, 0; t.broken == ""; tries++ {
		switch grows := t.made < parts; {
		case grows && n < 20 && t.rng.IntN(4) == 0:
			n++
			t.open(fmt.Sprint("pipeline:p", n), study, 100+1000*t.rng.Float64())
		case grows && n > 0:
			t.spawn(fmt.Sprint("pipeline:p", 1+t.rng.IntN(n)), 1+t.rng.IntN(60))
		case grows:
			t.spawn(study, 10)
		}
		if t.rng.IntN(50) == 0 && n > 0 {
			t.step(core.GroupClosed{Group: fmt.Sprint("pipeline:p", 1+t.rng.IntN(n))})
		}
		t.now = t.now.Add(time.Duration(t.rng.IntN(20)) * time.Minute)
		t.step(core.Tick{})
		for _, a := range slices.Clone(t.m.Live()) {
			if a.Task() == core.TaskRunning && t.rng.IntN(2) == 0 {
				t.step(core.AttemptEnded{Attempt: a.ID(), Message: a.Heard() + 1, Reason: "completed"})
			}
		}
		if t.made >= parts { // a few of the rest end by themselves; the others are stopped
			for j := range t.m.Jobs() {
				if !j.State().Over() && t.rng.IntN(4) == 0 {
					t.step(core.JobEnded{Job: j.ID(), Save: j.State() != core.Running})
				}
			}
		}
		if tries%10 == 0 || t.made >= parts {
			t.check()
		}
		if t.made >= parts && t.m.Quiet() && !slices.ContainsFunc(slices.Collect(t.m.Jobs()), func(j *core.Job) bool { return !j.State().Over() }) {
			break
		}
	}
	t.step(core.GroupClosed{Group: study})
	if b, _ := t.m.Books(t.now); t.broken == "" {
		if u := b.Use(b.Limits[0]); !u.Held.IsZero() || u.Spent != t.spent || u.Jobs != 0 {
			t.breaks("released: when all is over, held %v, spent %v of %v, %d jobs", u.Held, u.Spent, t.spent, u.Jobs)
		}
	}
}

// A generated tree of 10,000 jobs under one hold takes its worst case from the limit once and exactly, at any time. All
// parts of an event start, or none does.
func TestHold_TreeOfPartsTakesFromOneHold(t *testing.T) {
	f := newTree(1, core.Faults{})
	f.live(10_000)
	if f.broken != "" {
		t.Fatal(f.broken)
	}
	if f.m.Len() < 5000 || f.seen["refused true"] == 0 {
		t.Errorf("%d jobs began, %v: nothing was at stake", f.m.Len(), f.seen)
	}
	for seed := range uint64(lane.Pick(8, 100)) {
		small := newTree(seed, core.Faults{})
		if small.live(200); small.broken != "" {
			t.Errorf("seed %d: %s", seed, small.broken)
		}
	}
}

// The checks detect faults in the rules of holds.
func TestHold_DetectsPlantedFaults(t *testing.T) {
	for name, f := range map[string]core.Faults{
		"a part is counted beside its hold":        {Twice: true},
		"a hold that is closed keeps what it held": {Keeps: true},
		"a part that is refused begins":            {LetsIn: func(no *core.Refusal) bool { return no.Why == core.GroupFull }},
	} {
		caught := ""
		for seed := range uint64(20) {
			x := newTree(seed, f)
			if x.live(200); x.broken != "" {
				caught = x.broken
				break
			}
		}
		if t.Log(name, ": ", caught); caught == "" {
			t.Errorf("%s, and nobody noticed", name)
		}
	}
}

// A hold that needs approval waits for it; its parts need none. Nothing starts before the approval, nor in a hold that
// is closed or belongs to another user.
func TestHold_PartsInheritApproval(t *testing.T) {
	f := newTree(1, core.Faults{})
	ten := usd(10)
	f.step(core.BudgetsSet{Rules: budget.Rules{Limits: []budget.Limit{{Scope: "team:a", Window: budget.Total, Approve: &ten}}}})
	part := func(name string, dollars float64) core.Event {
		return core.Event{At: f.now, Schema: core.Schema, Tenant: "default", Body: core.JobSubmitted{Job: name, Terms: core.Terms{
			Owner: f.owner, Parent: study, Currency: money.USD, Budget: usd(dollars), HasBudget: true}}}
	}
	why := func(e core.Event) core.RefusalReason {
		var no *core.Refusal
		if err := f.m.Admit([]core.Event{e}); errors.As(err, &no) {
			return no.Why
		}
		return ""
	}
	if got := why(part("a", 1)); got != core.NoGroup {
		t.Errorf("before there is a hold: %q", got)
	}
	f.open(study, "", 50)
	if got := why(part("a", 1)); got != core.NoGroup || f.m.State().Group(study).Phase != state.GroupAwaits {
		t.Errorf("before it is approved: %q", got)
	}
	f.step(core.GroupReviewed{Group: study, Approved: true})
	f.m.Step(part("a", 20))
	if j, ok := f.m.Job("a"); !ok || j.State() == core.Held {
		t.Errorf("a part of an approved hold is %s", j.State())
	}
	other := part("b", 1)
	other.Actor = "user:ann"
	if got := why(other); got != core.NoGroup {
		t.Errorf("a part of another user: %q", got)
	}
	if got := why(part("b", 31)); got != core.GroupFull {
		t.Errorf("a part of $31 where $30 are left: %q", got)
	}
	more := usd(51)
	if got := why(core.Event{At: f.now, Body: core.JobUpdated{Job: "a", Changes: core.Changes{Budget: &more}}}); got != core.GroupFull {
		t.Errorf("a part of $51 in $50: %q", got)
	}
	less := usd(11)
	if got := why(core.Event{At: f.now, Body: core.JobUpdated{Job: "a", Changes: core.Changes{Budget: &less}}}); got != "" {
		t.Errorf("a part of less: %q", got)
	}
	f.step(core.GroupClosed{Group: study})
	if got := why(part("b", 1)); got != core.NoGroup {
		t.Errorf("a part of a hold that is closed: %q", got)
	}
	snap, err := f.m.Snapshot()
	must.Do(t, err)
	again, err := core.Restore(snap)
	must.Do(t, err)
	if h := again.State().Group(study); h == nil || h.Phase != state.GroupEnding || h.Approval == nil || !h.Approval.Approved {
		t.Errorf("restored: %+v", h)
	}
}
