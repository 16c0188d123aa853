package placement

import (
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// Survivors are the machines of a gang that another attempt could go on with.
func (dc *Decider) Survivors(a *state.Attempt) (list []*state.Task) {
	for _, k := range a.Tasks() {
		i := dc.State.Instance(k.Instance())
		if k.Live() && i != nil && dc.market.Stays(i) && i.Agent() != nil && !i.Disowned() && i.Missing().IsZero() &&
			i.Noticed().IsZero() && len(i.Seats()) == 1 && a.DrainWhy() != "lifetime_ends" {
			list = append(list, k)
		}
	}
	return list
}

// Kept are those of the survivors that are of the offer and run the image of that way of doing the
// work, for so many nodes at most.
func (dc *Decider) Kept(j *state.Job, offer market.OfferID, variant string, nodes int) (list []string) {
	if dc.queue.Keeping != j {
		return nil
	}
	for _, k := range dc.queue.Keeps {
		if k.Machine().Offer == offer && dc.market.hasImage(k.Machine(), j, variant) && len(list) < nodes {
			list = append(list, k.Instance())
		}
	}
	return list
}

// meanwhile has a gang that is being made up again go on with what is left of it as long as
// the table is missing that says what each choice costs: its machines would be given back else.
func (dc *Decider) meanwhile(j *state.Job, d plan.Decision) plan.Decision {
	if d.Take != "" || d.Why != plan.Weighing {
		return d
	}
	if k := dc.heldBack(j); k != nil {
		d.Take, d.Variant, d.Rate, d.Why = k.Machine().Offer, k.Attempt().Variant(), k.Rate(), plan.Stays
	}
	return d
}

// heldBack is a machine of a gang that is being made up again where its job may have that again:
// what is left is enough for the job, or more of the same may be asked for. nil: it has none.
func (dc *Decider) heldBack(j *state.Job) *state.Task {
	keeps := dc.queue.Keeps
	if dc.queue.Keeping != j || len(keeps) == 0 || keeps[0].Machine().Prepaid { // reserved ones go to the most urgent
		return nil
	}
	k := dc.queue.Keeps[0]
	left, wanted := len(dc.Kept(j, k.Machine().Offer, k.Attempt().Variant(), len(dc.queue.Keeps))), dc.Enough(j)
	if room, limited := dc.queue.GPURoom(j); limited && max(left, wanted)*k.GPUs() > room {
		return nil
	}
	if left >= wanted {
		return k
	}
	l := dc.State.Listing(k.Machine().Offer)
	if l == nil || !l.Quote().Available {
		return nil
	}
	if _, cools := dc.State.Cooling(l); cools {
		return nil
	}
	return k
}
