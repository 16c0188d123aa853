package sim

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// twin knows what the core does not (where a loss goes flat, the real exit status of a program, the terms of a
// submission) and checks each step against its required result, in the plainest way.
type twin struct {
	w       *World
	heard   map[string]int64 // newest message of each attempt
	told    map[string]int   // values of the metric that decides its job, by attempt
	seen    map[string]*best
	looked  map[string]bool // the core has taken a decision about the job
	retries map[string]int
	setups  map[string][]int
	refused map[string]int
	keys    map[string]string // that first registered a machine
	holds   map[string]*kept
	given   map[string]time.Time  // first termination of each machine
	seats   map[string]state.Keep // that jobs leave their machines for, by job
	earned  map[string]time.Time  // when the last move beside others has paid for itself, by job
	early   map[string]bool       // attempts that lost their seat before their program began
	limits  bool
	began   int               // started members of the array
	configs map[string]bool   // started configurations of the study
	overAs  map[string]ending // how jobs and groups ended
	flow    flow
	half    map[string]time.Time // since when a gang has some of its machines, by allocation
}

type best struct {
	loss float64
	step int64
}

func newTwin(w *World) *twin {
	return &twin{w: w, heard: map[string]int64{}, told: map[string]int{}, seen: map[string]*best{}, looked: map[string]bool{}, retries: map[string]int{}, setups: map[string][]int{}, refused: map[string]int{},
		keys: map[string]string{}, holds: map[string]*kept{}, given: map[string]time.Time{}, early: map[string]bool{}, earned: map[string]time.Time{}, seats: map[string]state.Keep{}, overAs: map[string]ending{}, configs: map[string]bool{}, flow: newFlow()}
}

// clone returns a copy of the twin.
func (t *twin) clone() *twin {
	c := *t
	c.configs, c.flow = maps.Clone(t.configs), t.flow.clone()
	c.told, c.given, c.early, c.overAs = maps.Clone(t.told), maps.Clone(t.given), maps.Clone(t.early), maps.Clone(t.overAs)
	c.earned, c.seats = maps.Clone(t.earned), maps.Clone(t.seats)
	c.heard, c.looked, c.retries = maps.Clone(t.heard), maps.Clone(t.looked), maps.Clone(t.retries)
	c.setups, c.refused, c.keys = maps.Clone(t.setups), maps.Clone(t.refused), maps.Clone(t.keys)
	c.seen = map[string]*best{}
	for job, b := range t.seen {
		was := *b
		c.seen[job] = &was
	}
	return &c
}

func (t *twin) watch(e core.Event, out core.Outcome) {
	switch b := e.Body.(type) {
	case core.AttemptStarted:
		t.fresh(rankName(b.Attempt, b.Node), b.Message)
	case core.CheckpointSaved:
		t.fresh(b.Attempt, b.Message)
	case core.UsageSeen:
		t.fresh(rankName(b.Attempt, b.Node), b.Message)
	case core.NoticeGiven:
		t.fresh(rankName(b.Attempt, b.Node), b.Message)
	case core.Progressed:
		if t.fresh(b.Attempt, b.Message) {
			t.progressed(b)
		}
	case core.AttemptEnded:
		name := rankName(b.Attempt, b.Node)
		if newer := b.Message > t.heard[name]; (t.fresh(name, b.Message) || newer && left(out)) && b.Node == 0 {
			t.ended(b)
		}
	case core.LaunchDone:
		if a, ok := t.w.m.Attempt(b.Launch); ok {
			if a.Variant() != "" {
				t.w.saw("a variant")
			}
			if limit := t.w.job(a.Job()).terms.Need.MaxRate; limit > 0 && b.Rate > limit {
				t.w.breaks("price: %s was rented at %v, the job's highest is %v", b.Launch, b.Rate, limit)
			}
			if a.Most() == 0 || b.Rate > a.Most() {
				t.w.breaks("price: %s was rented at %v, a quarter above what was decided on is %v", b.Launch, b.Rate, a.Most())
			}
		}
	}
	t.limited()
	t.paused(out)
	t.preempted(out)
	t.consolidated(out)
	t.keptSeats(out)
	t.halfRented(e)
	t.order(e, out)
	t.held(e, out)
	t.keyed(e, out)
	t.seated(out)
	t.nested(e, out)
	t.arrays(e, out)
	t.studies(e, out)
	t.pipelines(e, out)
	for _, a := range out.Actions {
		if a, ok := a.(core.Terminate); ok {
			t.givenBack(a)
		}
	}
}

// seated verifies that no seat is freed while its program runs.
func (t *twin) seated(out core.Outcome) {
	for _, f := range out.Facts {
		if r, is := f.(state.SeatReleased); is {
			if a, known := t.w.m.Attempt(r.Attempt); known && a.Task() != core.TaskRunning {
				t.early[r.Attempt] = true
			}
		}
		f, is := f.(state.SeatLeft)
		if !is || f.Attempt == "" {
			continue
		}
		if a := t.w.agentOn(f.Attempt, f.Instance); a != nil && !a.dead && !a.over && !a.began.IsZero() {
			t.w.breaks("seats: the part that %s has of %s is free, and its program runs", f.Attempt, f.Instance)
		}
	}
}

// left reports whether an attempt has left its machine to the next job.
func left(out core.Outcome) bool {
	return slices.ContainsFunc(out.Facts, func(f core.Fact) bool { _, is := f.(state.SeatLeft); return is })
}

// fresh reports whether the message is new and comes from a live attempt.
func (t *twin) fresh(attempt string, message int64) bool {
	if message <= t.heard[attempt] {
		return false
	}
	t.heard[attempt] = message
	attempt, rank, _ := strings.Cut(attempt, "/")
	node, _ := strconv.Atoi(rank)
	a, live := t.w.m.Attempt(attempt)
	if live && a.Nodes() > 1 {
		k := a.Rank(node)
		live = k != nil && k.Live()
	}
	return live
}

// progressed checks the guards on a metric: the step that receives the offending value ends the run, for any reported
// value.
func (t *twin) progressed(b core.Progressed) {
	a, _ := t.w.m.Attempt(b.Attempt)
	j, _ := t.w.known(a.Job())
	said := t.values(b)
	if a.Task() != core.TaskRunning {
		return
	}
	stop := policy.Stop("")
	for _, v := range said {
		if why := t.verdict(t.w.job(j.ID()), v.Step); stop == "" {
			stop = why
		}
	}
	if len(said) > 1 {
		t.w.saw("values between two reports")
	}
	if stop != "" {
		t.w.saw("guard " + string(stop))
		if j.Ending() == "" && !j.State().Over() {
			t.w.breaks("guard: %s goes on after step %d though it has %s", j.ID(), b.Step, stop)
		}
	}
}

// values returns what the program has reported since the previous report, and verifies that the report contains all of
// it, in order.
func (t *twin) values(b core.Progressed) policy.Values {
	ag := t.w.agents[b.Attempt]
	if ag == nil || ag.upTo == nil || ag.job.terms.Metric.Name == "" {
		return policy.Values{{Step: b.Step}}
	}
	from, upTo := t.told[b.Attempt], ag.upTo[b.Message]
	if upTo == 0 { // reported by a scenario
		return policy.Values{{Step: b.Step}}
	}
	t.told[b.Attempt] = upTo
	said := ag.values[from:upTo]
	if !slices.Equal(b.Values, said) {
		t.w.breaks("values: message %d of %s tells %d values of the metric, its program said %d", b.Message, b.Attempt,
			len(b.Values), len(said))
	}
	return said
}

func (t *twin) verdict(j *simJob, step int64) policy.Stop {
	m := j.terms.Metric
	loss, number := j.loss(step)
	if !number {
		return policy.Diverged
	}
	if m.Name == "" {
		return ""
	}
	if m.HasGoal && loss <= m.Target {
		return policy.TargetReached
	}
	s := t.seen[j.id]
	if s == nil || loss < s.loss {
		t.seen[j.id] = &best{loss: loss, step: step}
	} else if m.Patience > 0 && step-s.step >= m.Patience {
		return policy.Plateau
	}
	return ""
}

// ended checks the retry rules against the program's real exit status, and that the path of its outputs is known.
func (t *twin) ended(b core.AttemptEnded) {
	ag := t.w.agents[b.Attempt]
	a := t.w.m.State().AttemptOf(b.Attempt)
	if ag == nil {
		return
	}
	j, _ := t.w.known(a.Job())
	if kept := ag.kept; kept != "" {
		t.w.saw("outputs kept")
		if j.Outputs() != kept {
			t.w.breaks("outputs: those of %s are at %q, the job says %q", b.Attempt, kept, j.Outputs())
		}
		if got := j.OutputsDigest(); got != digestOf(kept) {
			t.w.breaks("outputs: those of %s have digest %q, the job says %q", b.Attempt, digestOf(kept), got)
		}
	}
	f := ag.failed
	newest := j.Attempt()         // it may have started with the same event, on a machine that was free
	if j.State() == core.Paused { // its program failed while it saved for a pause
		return
	}
	if f == nil || t.w.job(j.ID()).nodes() > 1 || newest.ID() != a.ID() && newest.Requested().Before(t.w.m.Now()) || j.State().Over() && j.State() != core.Failed || j.Ending() != "" {
		return
	}
	if j.State() == core.Paused && a.DrainWhy() != "" { // it was asked to end, with whatever status
		return
	}
	again := false
	switch terms := t.w.job(j.ID()).terms; {
	case f.setup:
		t.setups[j.ID()] = append(slices.Clip(t.setups[j.ID()]), f.exit)
		failed := t.setups[j.ID()]
		n := len(failed)
		again = n < 2 || n < 3 && failed[n-1] != failed[n-2]
	case f.exit == 75 || slices.Contains(terms.RetryCodes, f.exit):
		t.retries[j.ID()]++
		again = t.retries[j.ID()] <= terms.MaxRetries
	}
	switch {
	case again:
		t.w.saw("tried again")
	default:
		t.w.saw("not tried again")
	}
	if failed := j.State() == core.Failed; failed == again && (!f.setup || !failed) { // other attempts without a step count with setups
		t.w.breaks("retry: %s ended with status %d and the job is %s", b.Attempt, f.exit, j.State())
	}
}

// order verifies that no job is launched before the core has considered every more urgent one.
func (t *twin) order(e core.Event, out core.Outcome) {
	launched, moved := false, map[string]bool{} // a job that relaunches elsewhere keeps its place
	waited := map[string]bool{}                 // jobs that still wait for another one, which ends later in this step
	for _, f := range out.Facts {
		if f, ok := f.(state.DependencyMet); ok {
			waited[f.Of] = true
		}
	}
	for _, f := range out.Facts {
		switch f := f.(type) {
		case state.DependencyMet:
			delete(waited, f.Of)
		case state.AllocationCancelling:
			if j := t.w.m.State().JobOf(f.Allocation); j != nil {
				moved[j.ID()] = true
			}
		case state.Decided:
			t.looked[f.Job] = true
		case state.InstanceClosed:
			i := t.w.instances[f.Instance]
			if b, ok := e.Body.(core.InventorySeen); f.GivenUp && ok && i != nil && i.running() && !i.omitted[b.AsOf] {
				t.w.breaks("list: %s is given up, and its provider lists it", f.Instance)
			}
			if f.GivenUp && i != nil && i.running() && t.w.now.Sub(i.from) < i.lag {
				t.w.breaks("list: %s is given up %v after its launch, and the provider's list merely lags", f.Instance, t.w.now.Sub(i.from))
			}
		case state.AllocationClosed:
			if f.Phase == state.Refused {
				t.refusal(f.Allocation)
			}
		case state.AttemptBegan:
			if _, refused := e.Body.(core.LaunchRefused); refused && f.Partial {
				t.refusal(f.Attempt)
			}
		case state.AllocationReduced:
			if _, refused := e.Body.(core.LaunchRefused); refused {
				t.refusal(f.Allocation)
			}
		case state.AllocationRequested:
			launched, t.looked[f.Job] = true, true
			t.ladder(f)
			if !moved[f.Job] && len(f.Keeps) == 0 {
				t.inTurn(f, waited)
			}
		}
	}
	if launched && t.w.m.Quiet() {
		return
	}
	for _, j := range t.w.jobs {
		if _, known := t.w.known(j.id); known && !t.looked[j.id] {
			t.w.saw("a job waits for a place")
			return
		}
	}
}

// refusal counts a refused request for machines. If a gang already has some machines, the refusal does not close its
// request: the gang begins with fewer machines, or begins and ends at once.
func (t *twin) refusal(allocation string) {
	if j := t.w.m.State().JobOf(allocation); j != nil {
		t.refused[j.ID()]++
	}
}

// inTurn verifies that no more urgent job waits unconsidered. waited names jobs that may not start yet.
func (t *twin) inTurn(f state.AllocationRequested, waited map[string]bool) {
	for _, other := range t.w.jobs {
		if other.id == f.Job || other.terms.Priority <= t.w.job(f.Job).terms.Priority || t.looked[other.id] || waited[other.id] {
			continue
		}
		if j, known := t.w.known(other.id); known && !j.State().Over() && j.State() != core.Held && j.State() != core.Paused &&
			len(j.Waits()) == 0 && j.Reopened() == 0 && !t.limited() {
			t.w.breaks("order: %s was launched before %s, which is more urgent", f.Job, other.id)
		}
	}
}

// limited reports whether quotas are or were in force. Under a quota a less urgent job may go first, and the core skips
// new jobs whose class has no offer.
func (t *twin) limited() bool {
	rules, _ := t.w.m.Rules()
	t.limits = t.limits || len(rules.Limits) > 0
	return t.limits
}

// ladder verifies that the second rung is used only after the job had no machine for the first rung's time, or failed
// there as often as allowed.
func (t *twin) ladder(f state.AllocationRequested) {
	j, ok := t.w.known(f.Job)
	if !ok || !j.Terms().Deadline.IsZero() || j.Last().Mode == policy.Certain { // the ladder does not bind a job that must meet its deadline
		return
	}
	need := t.w.job(f.Job).terms.Need
	if len(need.Ladder) == 0 || f.Machine.Capacity == market.Spot || t.w.faults.Unlisted > 0 {
		return
	}
	if len(f.Keeps) > 0 { // the other machines of its gang are on this rung, and still run
		return
	}
	t.w.saw("the second rung")
	since, failures := j.Submitted(), t.refused[j.ID()]
	for _, before := range j.Attempts() {
		if before.Live() && before.Capacity() != market.Spot {
			return // it still runs
		}
		if before.Partial() > 0 {
			continue // it never ran
		}
		if before.Taken() || before.End() == "interrupted" {
			failures++
		}
		since = before.From() // it had a machine then
		if !before.Until().IsZero() {
			since = before.Until()
		}
		for _, k := range before.Tasks() { // when the first machine of a gang was lost or terminated: the rest takes seconds
			if !k.Until().IsZero() && k.Until().Before(since) {
				since = k.Until()
			}
			if at, back := t.given[k.Instance()]; back && at.Before(since) {
				since = at
			}
		}
		if !before.Over().IsZero() && before.Over().Before(since) {
			since = before.Over()
		}
	}
	if t.w.altered[j.ID()].After(since) {
		since = t.w.altered[j.ID()]
	}
	first := need.Ladder[0]
	if rests := first.Failures > 0 && failures >= first.Failures; !rests && t.w.m.Now().Sub(since) < first.For {
		t.w.breaks("ladder: %s went on-demand %v after its last machine, spot is tried for %v", j.ID(), t.w.m.Now().Sub(since), first.For)
	}
}

// incomplete reports whether a is a gang that has lost a machine: the others have nothing to save.
func incomplete(a *core.Attempt) bool {
	gone := func(k *core.Task) bool { return !k.Live() || k.Leaving() != "" }
	return a.Nodes() > 1 && slices.ContainsFunc(a.Tasks(), gone)
}

// givenBack verifies that no machine with a working program is terminated before the program was asked to save, unless
// the user cancels or the agent is silent.
func (t *twin) givenBack(a core.Terminate) {
	if _, again := t.given[a.Instance]; again {
		return // repeated after a restore: the program may have started since
	}
	t.given[a.Instance] = t.w.m.Now()
	live, ok := t.w.m.Attempt(a.Attempt)
	if !ok || live.Task() != core.TaskRunning {
		return
	}
	if j := t.w.m.State().Job(live.Job()); j != nil && j.Attempt() != live {
		return // a later attempt has the checkpoint: nothing that this one saves counts
	}
	switch a.Why {
	case "drain_overdue", "agent_silent", "cancelled_by_user":
	case "drain_unpaid":
		j := t.w.m.State().Job(live.Job())
		cut := money.Picos(int64(live.Nodes())) // the cost of each machine is truncated
		if !live.Draining() || j.Spent(t.w.m.Now()).Add(cut).Cmp(j.Terms().Budget) < 0 {
			t.w.breaks("guard: %s was given back for %s: it was not asked to save, or %v of %v are left", a.Instance, a.Why, j.Spent(t.w.m.Now()), j.Terms().Budget)
		}
	case core.ClosedByUser:
		j := t.w.m.State().Job(live.Job())
		if g := t.w.group(j.Terms().Group); g == nil || g.Ends != state.CancelMembers {
			t.w.breaks("guard: the machine of %s was given back for %s, and its group is not cancelled", a.Attempt, a.Why)
		}
	case "paused_by_user", core.PausedBySearch: // the program started after the pause
	case "seat_not_left":
		for _, other := range t.w.m.State().SeatedAll(t.w.m.State().Instance(a.Instance)) {
			if other.Task() == core.TaskRunning && !other.Draining() && other.Leaving() == "" {
				t.w.breaks("guard: %s was given back for %s, and the program of %s was not asked to save", a.Instance, a.Why, other.ID())
			}
		}
	default:
		g := t.w.group(t.w.m.State().Job(live.Job()).Terms().Group)
		if g != nil && g.Ends == state.CancelMembers && a.Why == g.Why {
			return // cancelled with the whole group
		}
		if t.early[a.Attempt] && live.Lead().Leaving() != "" {
			return // its program began afterwards: the agent heard of the loss too late, and ends it
		}
		if incomplete(live) {
			t.w.saw("what is left of a gang is ended")
			return
		}
		t.w.breaks("guard: the machine of %s was given back for %s and its program was not asked to save", a.Attempt, a.Why)
	}
}
