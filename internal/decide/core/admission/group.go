package admission

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core/step"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/work/groups"
)

// Parts sums what the members of a group without a machine take from it. That does not change while they wait, so
// each member is added once, and removed before it changes.
type Parts struct {
	spent money.Amount // their cost so far
	claim money.Amount // their maximum total cost; for ended members their actual cost
	open  int          // members that have not ended
	Holds []string     // groups that take from this one
}

// claimOf returns the part of its group that a member takes at t.
func claimOf(j *state.Job, t time.Time) money.Amount {
	spent, most := j.Spent(t), j.Terms().Budget
	if j.State().Over() || BySearch(j) || spent.Cmp(most) > 0 {
		return spent
	}
	return most
}

// WeighPart adds a member without a machine to its group's sums, or removes it.
func (ad *Admission) WeighPart(j *state.Job, by int) {
	h := ad.Parts[j.Terms().Parent]
	if h == nil || j.Costs() {
		return
	}
	h.add(j, ad.Now(), by)
}

func (h *Parts) add(j *state.Job, t time.Time, by int) {
	spent, takes := j.Spent(t), claimOf(j, t)
	if by < 0 {
		spent, takes = money.Amount{}.Sub(spent), money.Amount{}.Sub(takes)
	}
	h.spent, h.claim = h.spent.Add(spent), h.claim.Add(takes)
	if !j.State().Over() {
		h.open += by
	}
}

// sumParts resets the sums of all groups to empty.
func (ad *Admission) sumParts() {
	ad.Parts = map[string]*Parts{}
	for _, h := range ad.State.Groups() {
		ad.Parts[h.Name] = &Parts{}
	}
	for _, h := range ad.State.Groups() {
		if p := ad.Parts[h.Terms.Parent]; p != nil {
			p.Holds = append(p.Holds, h.Name)
		}
	}
}

// family is the sums of all groups at a time, including members with a machine.
type family struct {
	m    *Admission
	t    time.Time
	runs map[string]*Parts
}

// Family sums all groups at t.
func (ad *Admission) Family(t time.Time) *family {
	f := &family{m: ad, t: t, runs: map[string]*Parts{}}
	if len(ad.Parts) == 0 {
		return f
	}
	for j := range ad.books.Costing() {
		if name := j.Terms().Parent; ad.Parts[name] != nil {
			if f.runs[name] == nil {
				f.runs[name] = &Parts{}
			}
			f.runs[name].add(j, t, 1)
		}
	}
	return f
}

// Sums returns the cost of a group's members so far, archived or not, and their possible total cost.
func (f *family) Sums(name string) (spent, claim money.Amount) {
	h, archived := f.m.Parts[name], f.m.State.Group(name).Archived
	spent, claim = h.spent.Add(archived), h.claim.Add(archived)
	if r := f.runs[name]; r != nil {
		spent, claim = spent.Add(r.spent), claim.Add(r.claim)
	}
	for _, child := range h.Holds {
		s, c := f.takes(child)
		spent, claim = spent.Add(s), claim.Add(c)
	}
	return spent, claim
}

// takes returns what a group has cost, and what it may cost in total: its worst case while it is open, what its
// members may still cost once it is closed, and nothing while it waits for approval.
func (f *family) takes(name string) (spent, most money.Amount) {
	h := f.m.State.Group(name)
	spent, most = f.Sums(name)
	if h.Phase == state.GroupOpen || f.m.Faults.Keeps && h.Closed() {
		if most = h.Worst; most.Cmp(spent) < 0 {
			most = spent
		}
	}
	return spent, most
}

// held adds the holds of top-level groups to the accounts.
func (ad *Admission) held(b *budget.Accounts, t time.Time) {
	f := ad.Family(t)
	for _, h := range ad.State.Groups() {
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

// weighedGroup returns a group as limits see it.
func weighedGroup(h *state.Group) budget.Job {
	return budget.Job{ID: h.Name, Owner: h.Terms.Owner, User: h.User(), Most: h.Worst, Bounded: h.Terms.HasBudget,
		GPUBounded: true, Kind: budget.Hold}
}

// SpawnKey returns the key of a Spawn in Admission.Weighed.
func SpawnKey(b state.Spawn) string {
	if len(b.Parts) == 0 {
		return ""
	}
	return b.Parts[0].Job
}

// checkTerms returns an error if a group's name or terms, apart from limits, are invalid.
func (ad *Admission) checkTerms(name string, t *state.GroupTerms) error {
	if err := state.ParseGroup(name, t.Kind); err != nil {
		return err
	}
	if ad.State.Job(name) != nil {
		return errors.New("a job already has that name")
	}
	if t.AtOnce < 1 || t.AtOnce > groups.MaxMembers || t.Budget.Sign() < 0 || t.Grace < 0 || t.Rate < 0 {
		return errors.New("give a budget of zero or more, and from 1 to 10,000 members at once")
	}
	return cmp.Or(checkStudy(t), checkPipeline(t), ad.checkSchedule(t), checkArray(t))
}

// checkArray returns what is wrong with the terms of an array; nil: nothing, or the group is no array.
func checkArray(t *state.GroupTerms) error {
	a := t.Array
	if t.Kind == groups.Array && (t.Member == nil || a.Members < 1 || a.Members > groups.MaxMembers ||
		a.Step < 1 || a.From < 0 || a.Step > groups.MaxIndex || a.From > groups.MaxIndex) {
		return errors.New("an array has from 1 to 10,000 members, with indexes of zero or more")
	}
	return nil
}

// Opening weighs a new group.
func (w *Weighing) Opening(b *state.GroupOpened, user string) (v Verdict) {
	m := w.m
	refuse := func(why step.RefusalReason, err error) Verdict {
		return Verdict{No: &step.Refusal{Job: b.Group, Why: why, Err: err}}
	}
	t := b.Terms
	if err := m.checkTerms(b.Group, &t); err != nil {
		return refuse(step.NoGroup, err)
	}
	if no := cmp.Or(step.OnlySchedule(m.State, b.Group, &t), m.noDependency(b.Group, t.After)); no != nil {
		return Verdict{No: no}
	}
	rules := m.Rules()
	if err := rules.Tags.Check(t.Owner); err != nil {
		return refuse(step.TagMissing, err)
	}
	if !t.HasBudget && t.Kind == groups.Array && budget.Capped(rules.Limits, t.Owner, user) {
		if most, known := m.Bound(t.Member); known {
			most = most.Times(t.Array.Members)
			v.Bound, t.Budget, t.HasBudget = &most, most, true
		}
	}
	worst := m.WorstOf(t)
	if b.Terms.Parent != "" {
		return Verdict{No: w.inHold(b.Group, b.Terms.Parent, b.Terms.Owner, user, worst)}
	}
	j := weighedGroup(&state.Group{Name: b.Group, Terms: t, Worst: worst, By: user})
	if v.No = w.Weigh(j, &state.Terms{}); v.No != nil {
		return v
	}
	if v.Asking = w.asks(j); v.Asking == nil {
		w.take(j)
	}
	return v
}

// reviewedGroup weighs a group that waited for approval. It took nothing meanwhile.
func (w *Weighing) reviewedGroup(h *state.Group) *step.Refusal {
	j := weighedGroup(h)
	no := w.Weigh(j, &state.Terms{})
	if no == nil {
		w.take(j)
	}
	return no
}

// inHold returns why a member that takes that amount does not fit into a group, or nil.
func (w *Weighing) inHold(id, parent string, o ledger.Owner, user string, takes money.Amount) *step.Refusal {
	h := w.m.State.Group(parent)
	refuse := func(why step.RefusalReason, format string, a ...any) *step.Refusal {
		return &step.Refusal{Job: id, Why: why, Err: fmt.Errorf(format, a...)}
	}
	for up := h; ; up = w.m.State.Group(up.Terms.Parent) {
		if up == nil {
			return refuse(step.NoGroup, "there is no group %s", parent)
		}
		if up.Phase != state.GroupOpen {
			return refuse(step.NoGroup, "%s gets no more members, and what was left of its budget is given back", up.Name)
		}
		if up.Terms.Parent == "" {
			break
		}
	}
	if !h.Terms.HasBudget {
		return refuse(step.NoGroup, "group %s has no budget that others could take from", parent)
	}
	if u := h.Terms.Owner; u.Team != o.Team || u.Project != o.Project || h.User() != user ||
		len(u.Tags)+len(o.Tags) > 0 && !reflect.DeepEqual(u.Tags, o.Tags) {
		return refuse(step.NoGroup, "group %s is of another team, project or user, or has other tags", parent)
	}
	if w.Family == nil {
		w.Family = w.m.Family(w.T)
	}
	_, taken := w.Family.Sums(parent)
	taken = taken.Add(w.Taken[parent])
	if taken.Add(takes).Cmp(h.Terms.Budget) > 0 {
		usd := func(a money.Amount) string { return money.Short(a, money.USD) }
		return refuse(step.GroupFull, "group %s: of %s, %s is taken, and the part can cost %s", parent, usd(h.Terms.Budget),
			usd(taken), usd(takes))
	}
	w.Takes(parent, takes)
	return nil
}

// parts weighs members that start together.
func (w *Weighing) parts(b *state.Spawn, user string) (v Verdict) {
	seen := map[string]bool{}
	for i := range b.Parts {
		p := b.Parts[i]
		if p.Job == "" || seen[p.Job] || w.m.State.Job(p.Job) != nil || p.Terms.Parent != b.Parent || p.Asking != nil ||
			p.From != nil {
			return Verdict{No: &step.Refusal{Job: p.Job, Why: step.NoGroup,
				Err: errors.New("the part needs a name of its own and the parent of the group")}}
		}
		seen[p.Job] = true
		one := w.Submission(&p, user)
		v.No, v.Bounds = cmp.Or(v.No, one.No), append(v.Bounds, one.Bound)
	}
	return v
}

// part returns why a member that takes that amount does not fit into its group, or nil.
func (w *Weighing) part(j budget.Job, t *state.Terms, takes money.Amount) *step.Refusal {
	if !j.Bounded {
		return &step.Refusal{Job: j.ID, Why: step.GroupFull,
			Err: fmt.Errorf("group %s: the most that the part can cost is unknown: give it a budget that comes first", t.Parent)}
	}
	return w.inHold(j.ID, t.Parent, t.Owner, j.User, takes)
}

// most is the maximum total cost of a job.
func most(j budget.Job) money.Amount {
	if j.Most.Cmp(j.Spent) < 0 {
		return j.Spent
	}
	return j.Most
}
