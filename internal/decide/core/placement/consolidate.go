package placement

import (
	"cmp"
	"time"

	"scrimp/internal/decide/core/admission"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
)

// Consolidation is a move of a running job from a machine that it has alone to a free portion of a machine that others
// use, so that its own machine is released.
type Consolidation struct {
	Decision plan.Decision
	Portion  *state.Portion // kept for the job while it saves
	Rests    time.Time      // when the move has earned what it cost; nothing moves the job before
}

// MoveConsolidates is why an attempt of a consolidation is drained.
const MoveConsolidates = "move_" + string(plan.Consolidates)

// Consolidates returns the cheapest seat beside others that saves a running job more than moving there costs. ok is
// false if there is none. Several jobs of a user or a team do not move at the same time, because they might
// choose the same seat, or leave each other's machines.
func (dc *Decider) Consolidates(j *state.Job) (c Consolidation, ok bool) {
	a := j.Live()
	if len(dc.State.Partly()) == 0 || !dc.aloneToMove(j, a) {
		return c, false
	}
	for _, p := range dc.beside(j) {
		rests, saves := dc.earned(j, a, p)
		if !saves || dc.consolidating(j) {
			continue
		}
		d := dc.asHeld(j, p)
		if d.Take != p.i.Machine().Offer || d.Table != nil {
			continue
		}
		portion, free := dc.Part(j, dc.State.Listing(d.Take).Offer(), d.Variant, p.i)
		if !free || portion == nil {
			continue
		}
		d.Why, d.Instance = plan.Consolidates, p.i.ID()
		return Consolidation{d, portion, rests}, true
	}
	return c, false
}

// aloneToMove reports whether j may be moved, and has a rented machine for itself.
func (dc *Decider) aloneToMove(j *state.Job, a *state.Attempt) bool {
	t := j.Terms()
	if !Movable(j, a) || a.Machine().Prepaid || !t.Saves || !j.HasSaved() || t.Most() > 1 || t.Unpreemptible ||
		t.Session != "" || a.Variant() != "" || j.Pinned() || dc.Awaits(j) || j.Rough() {
		return false
	}
	i := dc.State.Instance(a.Instance())
	return i != nil && len(i.Seats()) == 1 && (!j.Rests().After(dc.Now()) || dc.Faults.Restless)
}

// consolidating reports whether another job of j's user or team is leaving its machine for a seat beside others.
func (dc *Decider) consolidating(j *state.Job) bool {
	for _, k := range dc.State.Running() {
		a := k.Live()
		if a == nil || !a.Draining() || a.DrainWhy() != MoveConsolidates || k.Tenant() != j.Tenant() {
			continue
		}
		if team := j.Terms().Owner.Team; k.User() == j.User() || team != "" && team == k.Terms().Owner.Team {
			return true
		}
	}
	return false
}

// earned reports whether the move of j to a portion saves at least as much as it costs once, beyond that cost: it then
// still pays if the job ends when half of the saving is earned. It returns when the saving has paid for the move.
//
// Example: a job with 9 hours to go on a machine of $1 an hour may have a seat of $0.375 an hour. Staying costs $9. The
// restart takes 6 minutes, and 30 minutes of work are not saved: at the seat's rate they cost $0.225 once. Moving costs
// $3.60 in total, and is earned 22 minutes after the restart ($0.225 / $0.625 an hour).
// TestConsolidate_MovesToSeatBesideOthersAndReleasesMachine.
func (dc *Decider) earned(j *state.Job, a *state.Attempt, p vacancy) (rests time.Time, ok bool) {
	o, own := dc.State.Listing(p.i.Machine().Offer).Offer(), dc.State.Instance(a.Instance())
	stay, known := HoldsFor(j, a, dc.Now())
	others := dc.othersStay(p.i)
	if !known || p.i == own || p.i.Machine().Prepaid || dc.IsSpotOffer(o.ID) && !IsSpot(a) ||
		others <= j.Terms().Grace+j.Restart() {
		return rests, false
	}
	from, to := cmp.Or(max(a.Machine().Speed, 0), 1), cmp.Or(max(dc.speedOf(j, o, "", p.units), 0), 1)
	lost := quantity.Scale(Repeats(j, a, dc.Now()), from/to)
	rest := quantity.Add(lost, quantity.Scale(stay, from/to))
	if !dc.inTimeBeside(j, to, rest) || !dc.affords(j, p) {
		return rests, false
	}
	reads, priced := j.Terms().Need.ReadCost(o)
	if !priced {
		return rests, false
	}
	paid := dc.books.PaidUntil(own).Sub(dc.Now()) // of a minimum charge: billed in any case
	leaves := own.PresentRate().Until(max(j.SaveCost(), paid))
	once := leaves.Add(reads).Add(p.rate.Until(quantity.Add(j.Restart(), lost)))
	seat := quantity.Add(j.Restart(), rest)
	moves := leaves.Add(reads).Add(p.rate.Until(min(seat, others))).Add(p.i.PresentRate().Until(max(0, seat-others)))
	saves := own.PresentRate().Until(max(stay, paid)).Sub(moves)
	hourly := money.Rate(quantity.Scale(time.Duration(own.PresentRate()), to/from)) - p.rate
	if dc.Faults.Restless {
		return dc.Now(), true
	}
	span, earns := hourly.Buys(once)
	return dc.Now().Add(quantity.Add(j.SaveCost()+j.Restart(), span)), earns && hourly > 0 && saves.Cmp(once) >= 0
}

// othersStay is how long the tasks on a machine are expected to share its cost. A task of unknown end promises nothing.
func (dc *Decider) othersStay(i *state.Instance) (longest time.Duration) {
	for _, a := range dc.State.SeatedAll(i) {
		if rest, known := HoldsFor(dc.State.Job(a.Job()), a, dc.Now()); known && !a.Releasing() {
			longest = max(longest, rest)
		}
	}
	return longest
}

// inTimeBeside reports whether j meets its deadline and its wall-clock limit if it moves to a seat of that speed, on
// which its work takes rest.
func (dc *Decider) inTimeBeside(j *state.Job, speed float64, rest time.Duration) bool {
	progress := dc.Progress(j, speed)
	slack, timed := progress.Slack(false)
	if timed && slack < progress.Detect+progress.Margin {
		return false
	}
	limit := j.Terms().WallClock
	return limit == 0 || quantity.Add(admission.WallClock(j, dc.Now())+j.SaveCost()+j.Restart(), rest) <= limit
}

// Repeats is the work of a running attempt that a move repeats: all since its checkpoint, whenever the program last
// reported a step, unless the program has shown that it saves when it is asked to end.
func Repeats(j *state.Job, a *state.Attempt, t time.Time) time.Duration {
	list := j.Attempts()
	for n := len(list) - 1; n >= 0; n-- {
		if x := list[n]; !x.Started().IsZero() && x.End() == "drained" {
			if j.Terms().Saves && x.LostTime() == 0 {
				return 0
			}
			break
		}
	}
	return max(0, t.Sub(a.Kept()))
}
