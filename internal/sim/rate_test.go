package sim

import (
	"strings"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
)

// rated verifies, counting in the plainest way, that the last start of a step leaves what the machines of each scope
// cost an hour within its limit. The starts before it count in the same sum. That nobody starves under such a limit is
// verified like every end: each has room for any one machine, and a job that does not end is unfinished.
func (t *twin) rated(rules budget.Rules, out core.Outcome) {
	for j := range t.w.m.Jobs() {
		if limit, _, waits := t.w.m.Waits(j); waits && strings.HasSuffix(limit, "/"+string(budget.Hour)) {
			t.w.saw("a job waits for dollars an hour")
		}
	}
	for _, l := range rules.Limits {
		if l.Rate == nil {
			continue
		}
		var last *core.Job
		for _, f := range out.Facts {
			if f, ok := f.(state.AllocationRequested); ok {
				if j, known := t.w.known(f.Job); known && l.Scope.Holds(j.Terms().Owner, j.User()) {
					last = j
				}
			}
		}
		if last == nil || !last.Holds() {
			continue
		}
		t.w.saw("a start under dollars an hour")
		if sum := t.burns(l.Scope, last); sum > *l.Rate {
			t.w.breaks("rate: %s of $%s an hour, and the machines cost $%s with %s", l.Name(), *l.Rate, sum, last.ID())
		}
	}
}

// burns is what the machines in a scope cost an hour: requested, rented or idle. Those that the job which starts leaves
// before it gets the next ones do not count.
func (t *twin) burns(scope budget.Scope, starts *core.Job) (sum money.Rate) {
	for _, j := range t.w.allJobs() {
		if !scope.Holds(j.Terms().Owner, j.User()) {
			continue
		}
		if a := j.Asked(); a != nil {
			if sum += a.Rate() * money.Rate(a.Nodes()); j == starts {
				continue
			}
		}
		for _, a := range j.Attempts() {
			if a.Live() && a.Until().IsZero() {
				sum += a.Rate()
			}
		}
	}
	for _, i := range t.w.m.State().Waiting() {
		if idle, ok := i.Idle(); ok && scope.Holds(idle.Owner, idle.User) {
			sum += i.PresentRate()
		}
	}
	return sum
}
