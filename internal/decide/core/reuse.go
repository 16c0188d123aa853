package core

import (
	"cmp"
	"slices"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// reuse decides whether j takes a machine that waits, or a part of one: where it would stay on it
// if it held it. ok is false where it takes none.
func (m *Machine) reuse(j *Job) (d plan.Decision, ok bool) {
	if _, spent := over(j, m.now()); spent || j.Terms().Most() > 1 { // each of its machines would have to be there
		return d, false
	}
	for _, p := range append(m.fitting(j), m.beside(j)...) {
		i := p.i
		v := m.view(j)
		v.Held, v.HeldRate, v.Reserved = i.Machine().Offer, p.rate, m.reservations(j)
		for n := range v.Reserved { // it takes no further machine
			if r := &v.Reserved[n]; r.Offer == v.Held {
				r.InUse, r.Promised = false, false
			}
		}
		d = m.planner.Decide(v, m.class(j))
		m.out.Decided++
		if d.Take != i.Machine().Offer || !m.hasImage(i.Machine(), j, d.Variant) || !m.onRung(j, i) ||
			!m.affords(j, i) {
			continue
		}
		if _, free := m.part(j, m.s.Listing(d.Take).Offer(), d.Variant, i); !free {
			continue
		}
		d.Instance, d.Why = i.ID(), plan.Warm
		idle, waits := i.Idle()
		if !waits {
			d.Why = plan.Beside
		}
		if waits && idle.Clean.IsZero() && !m.faults.Unclean {
			d.Take, d.Why, d.Instance = "", plan.Cleaning, ""
			d.Again = idle.From.Add(m.timingOf(i.Machine()).Detect)
		}
		return d, true
	}
	return d, false
}

// vacancy is a machine, or a part of one, that a job may take, and what an hour of that costs.
type vacancy struct {
	i    *Instance
	rate money.Rate
}

// affords reports whether the rest of the work, and the grace of its end, cost no more on the
// machine than is left of j's budget, also where those who have parts of it leave. The last job on a machine
// pays the rest of its minimum charge (splitBill), so a job with $1 left does not take one with $3.60 still due.
func (m *Machine) affords(j *Job, i *Instance) bool {
	t := j.Terms()
	if !t.HasBudget || t.DeadlineFirst {
		return true
	}
	rate, budget := i.PresentRate(), t.Budget.Sub(m.charged(j))
	left, _, known := j.Left(cmp.Or(max(i.Machine().Speed, 0), 1))
	if !known || j.Rough() || m.mayEndSooner(j) {
		left = 0
	}
	return rate.Until(max(left+t.Grace, m.paidUntil(i).Sub(m.now()))).Cmp(budget) < 0
}

// onRung reports whether the ladder of j, if it has one, allows the machine now.
func (m *Machine) onRung(j *Job, i *Instance) bool {
	n := &j.Terms().Need
	l := m.s.Listing(i.Machine().Offer)
	if len(n.Ladder) == 0 {
		return true
	}
	open, _ := m.open(j)
	rung := n.RungOf(*l.Offer(), i.PresentRate(), "")
	return rung >= 0 && open[rung]
}

// triedWarm is how many machines that wait are weighed for a job at most.
const triedWarm = 4

// fitting are the machines that wait and that j may use, those that can be used at once and the
// cheapest first: of its user, or of its team where that shares machines, where its checkpoint
// is, for long enough.
func (m *Machine) fitting(j *Job) (list []vacancy) {
	if len(m.s.Waiting()) == 0 || m.s.Undecided() {
		return nil
	}
	for _, i := range m.s.Waiting() {
		idle, _ := i.Idle()
		l := m.s.Listing(i.Machine().Offer)
		soon := m.now().Before(idle.From.Add(m.timingOf(i.Machine()).Detect))
		if l == nil || !m.listed(l) || !m.Stays(i) || i.Disowned() || !i.Missing().IsZero() ||
			!m.hasSomeImage(i.Machine(), j) || !m.mayFollow(j, idle.User, idle.Owner, i) || idle.Clean.IsZero() && !soon {
			continue
		}
		if home := j.CheckpointRegion(); home != "" && home != i.Machine().Region {
			continue
		}
		if room, limited := m.gpuRoom(j); limited && i.Machine().GPUs > room {
			continue // it would be taken for more GPUs than a quota has left
		}
		if m.lasts(j, i, l.Offer()) {
			list = append(list, vacancy{i, i.PresentRate()})
		}
	}
	slices.SortStableFunc(list, func(a, b vacancy) int {
		x, _ := a.i.Idle()
		y, _ := b.i.Idle()
		return cmp.Or(boolean(x.Clean.IsZero())-boolean(y.Clean.IsZero()), cmp.Compare(a.rate, b.rate))
	})
	return list[:min(len(list), triedWarm)]
}

// mayFollow reports whether j may have a machine that a job of the user and the owner had, or
// has: of the same user, or of the same team where that shares its machines, and programs run
// there as users of their own.
func (m *Machine) mayFollow(j *Job, user string, owner ledger.Owner, i *Instance) bool {
	switch team := j.Terms().Owner.Team; {
	case owner.Tenant != j.Tenant():
		return false
	case user == j.User() || m.faults.Anyone:
		return true
	default:
		return team != "" && team == owner.Team && i.Agent() != nil && i.Agent().Isolated &&
			slices.Contains(m.rules().Shares, team)
	}
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// lasts reports whether what is left of a machine's lifetime is enough for the job, or as much as
// half of a new one's.
func (m *Machine) lasts(j *Job, i *Instance, o *market.Offer) bool {
	if o.MaxLifetime <= 0 {
		return true
	}
	rest := i.From().Add(o.MaxLifetime).Sub(m.now())
	left, _, known := j.Left(cmp.Or(max(i.Machine().Speed, 0), 1))
	return rest >= o.MaxLifetime/2 || known && rest >= left+j.Restart()
}
