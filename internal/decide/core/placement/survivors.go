package placement

import (
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/state"
	"scrimp/internal/market"
)

// Survivors returns the machines of a gang that another attempt could continue on.
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

// Kept returns the survivors that belong to the offer and run the image of that variant, up to the given number.
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

// meanwhile lets a regrouping gang continue with its remaining machines while the table with the cost of each
// choice is missing. Otherwise its machines would be terminated.
func (dc *Decider) meanwhile(j *state.Job, d plan.Decision) plan.Decision {
	if d.Take != "" || d.Why != plan.Weighing {
		return d
	}
	if k := dc.heldBack(j); k != nil {
		d.Take, d.Variant, d.Rate, d.Why = k.Machine().Offer, k.Attempt().Variant(), k.Rate(), plan.Stays
	}
	return d
}

// heldBack returns a machine of a regrouping gang if its job may use the same offer again: the remaining machines
// are enough, or more may be requested. It returns nil if there is none.
func (dc *Decider) heldBack(j *state.Job) *state.Task {
	keeps := dc.queue.Keeps
	// reserved machines go to the most urgent job
	if dc.queue.Keeping != j || len(keeps) == 0 || keeps[0].Machine().Prepaid {
		return nil
	}
	k := dc.queue.Keeps[0]
	left, wanted := len(dc.Kept(j, k.Machine().Offer, k.Attempt().Variant(), len(dc.queue.Keeps))), dc.Enough(j)
	if room, limited := dc.queue.GPURoom(j); limited && max(left, wanted)*k.GPUs() > room {
		return nil
	}
	if room, limited := dc.queue.RateRoom(j, nil); limited && k.Rate().Times(max(left, wanted)) > room {
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
