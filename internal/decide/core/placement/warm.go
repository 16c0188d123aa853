package placement

import (
	"cmp"
	"slices"
	"time"

	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// Reuse decides whether j takes an idle machine or a portion of a shared one. It prices the machine at its present rate
// (Instance.PresentRate), or at the rate of the portion, and calls Decide as if j held it; if j would stay, it takes
// the machine. So a new machine must save more than its restart costs (moveSaves in plan). ok is false if j takes none.
func (dc *Decider) Reuse(j *state.Job) (d plan.Decision, ok bool) {
	// A gang would need an existing machine for each node.
	if _, spent := admission.TimeLimitReached(j, dc.Now()); spent || j.Terms().Most() > 1 {
		return d, false
	}
	if _, closed := dc.Closed(j); closed {
		return d, false
	}
	for _, p := range append(dc.fitting(j), dc.beside(j)...) {
		i := p.i
		d = dc.asHeld(j, p)
		if d.Take != i.Machine().Offer || !dc.market.hasImage(i.Machine(), j, d.Variant) || !dc.onRung(j, i) ||
			!dc.affords(j, p) {
			continue
		}
		if _, free := dc.Part(j, dc.State.Listing(d.Take).Offer(), d.Variant, i); !free {
			continue
		}
		d.Instance, d.Why = i.ID(), plan.Warm
		idle, waits := i.Idle()
		if !waits {
			d.Why = plan.Beside
		}
		if waits && idle.Clean.IsZero() && !dc.Faults.Unclean {
			d.Take, d.Why, d.Instance = "", plan.Cleaning, ""
			d.Again = idle.From.Add(dc.market.TimingOf(i.Machine()).Detect)
		}
		return d, true
	}
	return d, false
}

// asHeld decides as if j held the vacancy, and no other machine.
func (dc *Decider) asHeld(j *state.Job, p vacancy) plan.Decision {
	v := dc.View(j)
	v.Held, v.HeldRate, v.Reserved = p.i.Machine().Offer, p.rate, dc.market.reservations(j)
	v.Unread, v.HeldUnits = true, p.units
	for n := range v.Reserved { // it takes no further machine
		if r := &v.Reserved[n]; r.Offer == v.Held {
			r.InUse, r.Promised = false, false
		}
	}
	dc.Out.Decided++
	return dc.market.Planner.Decide(v, dc.market.Class(j))
}

// vacancy is an idle machine, or a free portion of one, that a job may take, with its hourly cost.
type vacancy struct {
	i     *state.Instance
	rate  money.Rate
	units int // processors or accelerators of the portion: see plan.Job.HeldUnits
}

// affords reports whether the remaining work and its grace cost no more on the machine than is left of j's budget,
// even if the others on the machine leave. The last job on a machine pays the rest of its minimum charge
// (SplitBill), so a job with $1 left does not take a machine with $3.60 still due.
func (dc *Decider) affords(j *state.Job, v vacancy) bool {
	t, i := j.Terms(), v.i
	if !t.HasBudget || t.DeadlineFirst {
		return true
	}
	left, _, known := j.Left(dc.speedOf(j, dc.State.Listing(i.Machine().Offer).Offer(), "", v.units))
	if !known || j.Rough() || dc.admission.MayEndSooner(j) {
		left = 0
	}
	return plan.AffordsWarm(i.PresentRate(), left+t.Grace, dc.books.PaidUntil(i).Sub(dc.Now()),
		t.Budget.Sub(dc.admission.Charged(j)))
}

// onRung reports whether the ladder of j, if it has one, allows the machine now. A part that is kept for j is allowed:
// j left a machine for it, although its rung may rest since then.
func (dc *Decider) onRung(j *state.Job, i *state.Instance) bool {
	n := &j.Terms().Need
	l := dc.State.Listing(i.Machine().Offer)
	if len(n.Ladder) == 0 || dc.State.KeepsFor(j, i) {
		return true
	}
	open, _ := dc.open(j)
	rung := n.RungOf(*l.Offer(), i.PresentRate(), "")
	return rung >= 0 && open[rung]
}

// triedWarm is the largest number of idle machines weighed for a job.
const triedWarm = 4

// fitting returns the idle machines that j may use, those that are clean first, then the cheapest: machines of its
// user, or of its team if that shares machines, in the region of its checkpoint, that last long enough.
func (dc *Decider) fitting(j *state.Job) (list []vacancy) {
	if len(dc.State.Waiting()) == 0 || dc.State.Undecided() {
		return nil
	}
	for _, i := range dc.State.Waiting() {
		if !dc.fits(j, i) {
			continue
		}
		if room, limited := dc.queue.GPURoom(j); limited && i.Machine().GPUs > room {
			continue // the whole machine has more GPUs than a quota has left
		}
		if room, limited := dc.queue.RateRoom(j, i); limited && i.PresentRate() > room {
			continue
		}
		o := dc.State.Listing(i.Machine().Offer).Offer()
		p, _ := dc.Part(j, o, "", i)
		if units := unitsOf(p, j.Terms().Need.RequirementsOf("")); dc.lasts(j, i, o, units) {
			list = append(list, vacancy{i, i.PresentRate(), units})
		}
	}
	slices.SortStableFunc(list, func(a, b vacancy) int {
		x, _ := a.i.Idle()
		y, _ := b.i.Idle()
		return cmp.Or(boolean(x.Clean.IsZero())-boolean(y.Clean.IsZero()), cmp.Compare(a.rate, b.rate))
	})
	return list[:min(len(list), triedWarm)]
}

// fits reports whether an idle machine is still for sale, is or soon will be clean, is in the region of j's checkpoint,
// and last served a job that j may follow.
func (dc *Decider) fits(j *state.Job, i *state.Instance) bool {
	idle, _ := i.Idle()
	l := dc.State.Listing(i.Machine().Offer)
	soon := dc.Now().Before(idle.From.Add(dc.market.TimingOf(i.Machine()).Detect))
	if l == nil || !dc.market.listed(l) || !dc.market.Stays(i) || i.Disowned() || !i.Missing().IsZero() ||
		!dc.market.hasSomeImage(i.Machine(), j) || !dc.mayFollow(j, idle.User, idle.Owner, i) {
		return false
	}
	home := j.CheckpointRegion()
	return (!idle.Clean.IsZero() || soon) && (home == "" || home == i.Machine().Region)
}

// mayFollow reports whether j may have a machine that a job of the given user and owner has or had: if it is of the
// same user, or of the same team if the team shares its machines and the machine isolates programs by system user.
func (dc *Decider) mayFollow(j *state.Job, user string, owner ledger.Owner, i *state.Instance) bool {
	switch team := j.Terms().Owner.Team; {
	case owner.Tenant != j.Tenant():
		return false
	case user == j.User() || dc.Faults.Anyone:
		return true
	default:
		return team != "" && team == owner.Team && i.Agent() != nil && i.Agent().Isolated && dc.sharesMachines(team)
	}
}

// sharesMachines reports whether jobs of the team may follow and neighbour those of its other users.
func (dc *Decider) sharesMachines(team string) bool { return slices.Contains(dc.Rules().Shares, team) }

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// lasts reports whether the rest of a machine's lifetime is enough for the job on that many processors or accelerators
// of it, or at least half of a new one's.
func (dc *Decider) lasts(j *state.Job, i *state.Instance, o *market.Offer, units int) bool {
	if o.MaxLifetime <= 0 {
		return true
	}
	rest := i.From().Add(o.MaxLifetime).Sub(dc.Now())
	left, _, known := j.Left(dc.speedOf(j, o, "", units))
	return rest >= o.MaxLifetime/2 || known && rest >= left+j.Restart()
}

// IdleUntil is when an idle machine is terminated: when its time is over and no part of it is kept, or when its cost at
// the current price would exceed the amount held for it.
func (dc *Decider) IdleUntil(i *state.Instance, idle *state.Idle) time.Time {
	keep := idle.Keep
	if most := idle.From.Add(dc.market.TimingOf(i.Machine()).Idle); most.Before(keep) { // the setting was lowered
		keep = most
	}
	if by := dc.State.KeptUntil(i); by.After(keep) {
		keep = by
	}
	left := idle.Most.Sub(idle.Posted).Sub(i.Cost(dc.Now()).Sub(i.Posted()))
	return dc.Now().Add(plan.WaitWarm(i.PresentRate(), keep.Sub(dc.Now()), left))
}

// ImageOf returns the container image that the job uses in that variant; empty means the engine's default.
func ImageOf(j *state.Job, variant string) string {
	return j.Terms().Need.RequirementsOf(variant).Image
}

// hasImage reports whether the machine was rented with the image that the job uses in that variant. A machine with
// another image does not suit it, nor one with an image if the job names none.
func (mk *Market) hasImage(on *state.Machine, j *state.Job, variant string) bool {
	return on.Image == ImageOf(j, variant) || mk.Faults.Images
}

// hasSomeImage reports whether hasImage holds for any variant.
func (mk *Market) hasSomeImage(on *state.Machine, j *state.Job) bool {
	variants := j.Terms().Need.Variants
	for i := range variants {
		if mk.hasImage(on, j, variants[i].Name) {
			return true
		}
	}
	return mk.hasImage(on, j, "")
}
