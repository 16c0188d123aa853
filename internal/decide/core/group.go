package core

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/groups"
)

// Why a group gets no more members.
const (
	ClosedByUser     = "closed_by_user"
	AllOver          = "all_over"          // all of its members are
	BudgetSpent      = "budget_spent"      // nothing is left of its budget for another
	TimeSpent        = "time_spent"        // its wall clock is over
	SearchDone       = "search_done"       // the searcher wants nothing more
	DependencyFailed = "dependency_failed" // what it was to come after did not succeed
)

// parts is what the parts of a hold come to that hold no machine: it does not change while
// they wait, so that each is added once, and taken out before it changes.
type parts struct {
	spent money.Amount // what they have cost
	claim money.Amount // what they may cost in all: those that are over what they have cost
	open  int          // that are not over
	holds []string     // that take from this one
}

// claimOf is what a part takes of its hold by t.
func claimOf(j *Job, t time.Time) money.Amount {
	spent, most := j.Spent(t), j.Terms().Budget
	if j.State().Over() || bySearch(j) || spent.Cmp(most) > 0 {
		return spent
	}
	return most
}

// weighPart adds a part that holds no machine to its hold, or takes it out.
func (m *Machine) weighPart(j *Job, by int) {
	h := m.parts[j.Terms().Parent]
	if h == nil || j.Costs() {
		return
	}
	h.add(j, m.now(), by)
}

func (h *parts) add(j *Job, t time.Time, by int) {
	spent, takes := j.Spent(t), claimOf(j, t)
	if by < 0 {
		spent, takes = money.Amount{}.Sub(spent), money.Amount{}.Sub(takes)
	}
	h.spent, h.claim = h.spent.Add(spent), h.claim.Add(takes)
	if !j.State().Over() {
		h.open += by
	}
}

// sumParts makes the sums of all holds anew, of no job.
func (m *Machine) sumParts() {
	m.parts = map[string]*parts{}
	for _, h := range m.s.Groups() {
		m.parts[h.Name] = &parts{}
	}
	for _, h := range m.s.Groups() {
		if p := m.parts[h.Terms.Parent]; p != nil {
			p.holds = append(p.holds, h.Name)
		}
	}
}

// family are the sums of all holds by a time, those of parts that hold a machine included.
type family struct {
	m    *Machine
	t    time.Time
	runs map[string]*parts
}

func (m *Machine) family(t time.Time) *family {
	f := &family{m: m, t: t, runs: map[string]*parts{}}
	if len(m.parts) == 0 {
		return f
	}
	for j := range m.costing() {
		if name := j.Terms().Parent; m.parts[name] != nil {
			if f.runs[name] == nil {
				f.runs[name] = &parts{}
			}
			f.runs[name].add(j, t, 1)
		}
	}
	return f
}

// sums are what a hold's parts have cost, and what they may cost in all.
func (f *family) sums(name string) (spent, claim money.Amount) {
	h := f.m.parts[name]
	spent, claim = h.spent, h.claim
	if r := f.runs[name]; r != nil {
		spent, claim = spent.Add(r.spent), claim.Add(r.claim)
	}
	for _, child := range h.holds {
		s, c := f.takes(child)
		spent, claim = spent.Add(s), claim.Add(c)
	}
	return spent, claim
}

// takes are what a hold has cost, and what it may cost in all: its worst case while it is
// open, what its parts may still cost when it is closed, and nothing while it waits for approval.
func (f *family) takes(name string) (spent, most money.Amount) {
	h := f.m.s.Group(name)
	spent, most = f.sums(name)
	if h.Phase == state.GroupOpen || f.m.faults.Keeps && h.Closed() {
		if most = h.Worst; most.Cmp(spent) < 0 {
			most = spent
		}
	}
	return spent, most
}

// held adds what holds take to the accounts: those that no other holds.
func (m *Machine) held(b *budget.Accounts, t time.Time) {
	f := m.family(t)
	for _, h := range m.s.Groups() {
		if h.Terms.Parent != "" || !h.Terms.HasBudget {
			continue
		}
		j := weighedGroup(h)
		j.Spent, j.Most = f.takes(h.Name)
		j.AwaitsApproval = h.Phase == state.GroupAwaits && t.Before(h.Approval.Until)
		if j.AwaitsApproval || j.Most.Cmp(j.Spent) > 0 {
			b.Live = append(b.Live, j)
		}
	}
}

// weighedGroup is a hold as limits see it.
func weighedGroup(h *state.Group) budget.Job {
	return budget.Job{ID: h.Name, Owner: h.Terms.Owner, User: h.User(), Most: h.Worst, Bounded: h.Terms.HasBudget,
		GPUBounded: true, Kind: budget.Hold}
}

func (m *Machine) takeGroup(b Body) {
	switch b := b.(type) {
	case GroupOpened:
		m.openGroup(b)
	case GroupReviewed:
		m.reviewGroup(b)
	case GroupClosed:
		m.endGroup(b.Group, ClosedByUser, "", b.Members)
	case Proposed:
		m.proposals.take(m, b)
	case Spawn:
		m.spawn(b)
	}
}

// openGroup begins an array, a study, a pipeline or a schedule, where there is room for its worst case.
func (m *Machine) openGroup(b GroupOpened) {
	if m.s.Group(b.Group) != nil {
		return
	}
	v := m.verdict(b.Group)
	if v.no != nil {
		m.turnDown(v.no)
		return
	}
	m.opens(&b, v)
}

// opens begins a group that was weighed.
func (m *Machine) opens(b *GroupOpened, v verdict) {
	t := b.Terms
	if v.bound != nil {
		t.Budget, t.HasBudget = *v.bound, true
	}
	m.fact(state.GroupGranted{Group: b.Group, Worst: m.WorstOf(t), Budget: v.bound, Asking: v.asking})
	m.parts[b.Group] = &parts{}
	if p := m.parts[b.Terms.Parent]; p != nil {
		p.holds = append(p.holds, b.Group)
	}
	m.dependOn(b.Group, b.Terms.After)
	m.proposals.due(b.Group)
}

// reviewGroup lets a group that waits for approval begin, or closes it.
func (m *Machine) reviewGroup(b GroupReviewed) {
	g := m.s.Group(b.Group)
	if g == nil || g.Phase != state.GroupAwaits {
		return
	}
	switch v := m.verdict(b.Group); {
	case !m.now().Before(g.Approval.Until):
		m.endGroup(b.Group, ApprovalExpired, "", state.CancelMembers)
	case !b.Approved:
		m.endGroup(b.Group, Rejected, b.Reason, state.CancelMembers)
	case v.no != nil:
		m.turnDown(v.no)
	default:
		m.fact(state.GroupGranted{Group: b.Group})
		m.proposals.due(b.Group)
	}
}

// endGroup closes a group and those that take from it: they get no more members, and what is
// held for members that have not come is given up. Those that it has end as ends says.
func (m *Machine) endGroup(name, why, detail string, ends state.EndMembers) {
	g := m.s.Group(name)
	if g == nil || g.Phase == state.GroupOver ||
		g.Phase == state.GroupEnding && (ends == g.Ends || ends == state.LetMembers) {
		return
	}
	if g.Phase == state.GroupEnding { // its members went on, or were saving
		m.fact(state.MembersEnding{Group: name, Members: ends})
	} else {
		m.fact(state.GroupEnded{Group: name, Why: why, Detail: detail, Members: ends})
	}
	m.proposals.due(name)
	for _, child := range m.parts[name].holds {
		m.endGroup(child, why, detail, ends)
	}
}

// spawn begins parts of a hold, all or none.
func (m *Machine) spawn(b Spawn) {
	v := m.verdict(spawnKey(b))
	if v.no != nil {
		m.turnDown(v.no)
		return
	}
	for i, p := range b.Parts {
		m.fact(state.JobQueued{Job: p.Job, Bound: v.bounds[i]})
		m.enqueue(m.s.Job(p.Job))
	}
}

// spawnKey stands for the parts of an event among what was weighed.
func spawnKey(b Spawn) string {
	if len(b.Parts) == 0 {
		return ""
	}
	return b.Parts[0].Job
}

// opening weighs a hold that is to begin.
func (w *weighing) opening(b *GroupOpened, user string) (v verdict) {
	m := w.m
	refuse := func(why RefusalReason, err error) verdict {
		return verdict{no: &Refusal{Job: b.Group, Why: why, Err: err}}
	}
	t := b.Terms
	if err := state.ParseGroup(b.Group, t.Kind); err != nil {
		return refuse(NoGroup, err)
	}
	if m.s.Job(b.Group) != nil {
		return refuse(NoGroup, errors.New("a job has that name"))
	}
	if t.AtOnce < 1 || t.AtOnce > groups.MaxMembers || t.Budget.Sign() < 0 || t.Grace < 0 || t.Rate < 0 {
		return refuse(NoGroup, errors.New("give a budget of zero or more, and from 1 to 10,000 members at once"))
	}
	if err := cmp.Or(checkStudy(&t), checkPipeline(&t), m.checkSchedule(&t)); err != nil {
		return refuse(NoGroup, err)
	}
	if a := t.Array; t.Kind == groups.Array && (t.Member == nil || a.Members < 1 || a.Members > groups.MaxMembers ||
		a.Step < 1 || a.From < 0 || a.Step > groups.MaxIndex || a.From > groups.MaxIndex) {
		return refuse(NoGroup, errors.New("an array has from 1 to 10,000 members, with indexes of zero or more"))
	}
	if no := m.noDependency(b.Group, t.After); no != nil {
		return verdict{no: no}
	}
	rules := m.rules()
	if err := rules.Tags.Check(t.Owner); err != nil {
		return refuse(TagMissing, err)
	}
	if !t.HasBudget && t.Kind == groups.Array && budget.Capped(rules.Limits, t.Owner, user) {
		rate := m.highestRate(t.Member) * money.Rate(t.Member.Most())
		if most, known := budget.Bound(t.Member.Work, rate); known {
			most = most.Times(t.Array.Members)
			v.bound, t.Budget, t.HasBudget = &most, most, true
		}
	}
	worst := m.WorstOf(t)
	if b.Terms.Parent != "" {
		return verdict{no: w.inHold(b.Group, b.Terms.Parent, b.Terms.Owner, user, worst)}
	}
	j := weighedGroup(&state.Group{Name: b.Group, Terms: t, Worst: worst, By: user})
	if v.no = w.weigh(j, &Terms{}); v.no != nil {
		return v
	}
	if v.asking = w.asks(j); v.asking == nil {
		w.take(j)
	}
	return v
}

// reviewedGroup weighs a hold that waited for approval: it took nothing meanwhile.
func (w *weighing) reviewedGroup(h *state.Group) *Refusal {
	j := weighedGroup(h)
	no := w.weigh(j, &Terms{})
	if no == nil {
		w.take(j)
	}
	return no
}

// inHold says why something does not fit into a hold, or takes so much of it.
func (w *weighing) inHold(id, parent string, o ledger.Owner, user string, takes money.Amount) *Refusal {
	h := w.m.s.Group(parent)
	refuse := func(why RefusalReason, format string, a ...any) *Refusal {
		return &Refusal{Job: id, Why: why, Err: fmt.Errorf(format, a...)}
	}
	for up := h; ; up = w.m.s.Group(up.Terms.Parent) {
		if up == nil {
			return refuse(NoGroup, "there is no group %s", parent)
		}
		if up.Phase != state.GroupOpen {
			return refuse(NoGroup, "%s gets no more members, and what was left of its budget is given back", up.Name)
		}
		if up.Terms.Parent == "" {
			break
		}
	}
	if !h.Terms.HasBudget {
		return refuse(NoGroup, "group %s has no budget that others could take from", parent)
	}
	if u := h.Terms.Owner; u.Team != o.Team || u.Project != o.Project || h.User() != user ||
		len(u.Tags)+len(o.Tags) > 0 && !reflect.DeepEqual(u.Tags, o.Tags) {
		return refuse(NoGroup, "group %s is of another team, project or user, or has other tags", parent)
	}
	if w.family == nil {
		w.family = w.m.family(w.t)
	}
	_, taken := w.family.sums(parent)
	taken = taken.Add(w.taken[parent])
	if taken.Add(takes).Cmp(h.Terms.Budget) > 0 {
		usd := func(a money.Amount) string { return money.Short(a, money.USD) }
		return refuse(GroupFull, "group %s: of %s, %s is taken, and the part can cost %s", parent, usd(h.Terms.Budget),
			usd(taken), usd(takes))
	}
	w.takes(parent, takes)
	return nil
}

// parts weighs parts that are to begin together.
func (w *weighing) parts(b *Spawn, user string) (v verdict) {
	seen := map[string]bool{}
	for i := range b.Parts {
		p := b.Parts[i]
		if p.Job == "" || seen[p.Job] || w.m.s.Job(p.Job) != nil || p.Terms.Parent != b.Parent || p.Asking != nil ||
			p.From != nil {
			return verdict{no: &Refusal{Job: p.Job, Why: NoGroup,
				Err: errors.New("the part has no name of its own, or another parent")}}
		}
		seen[p.Job] = true
		one := w.submission(&p, user)
		v.no, v.bounds = cmp.Or(v.no, one.no), append(v.bounds, one.bound)
	}
	return v
}

// part says why a part does not fit into its hold, where it takes so much of it.
func (w *weighing) part(j budget.Job, t *Terms, takes money.Amount) *Refusal {
	if !j.Bounded {
		return &Refusal{Job: j.ID, Why: GroupFull,
			Err: fmt.Errorf("group %s: the most that the part can cost is unknown: give it a budget that comes first", t.Parent)}
	}
	return w.inHold(j.ID, t.Parent, t.Owner, j.User, takes)
}

// most is what a job can cost in all.
func most(j budget.Job) money.Amount {
	if j.Most.Cmp(j.Spent) < 0 {
		return j.Spent
	}
	return j.Most
}
