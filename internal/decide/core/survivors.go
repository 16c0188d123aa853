package core

import (
	"scrimp/internal/decide/plan"
	"scrimp/internal/market"
)

// survivors are the machines of a gang that another attempt could go on with.
func (m *Machine) survivors(a *Attempt) (list []*Task) {
	for _, k := range a.Tasks() {
		i := m.s.Instance(k.Instance())
		if k.Live() && i != nil && m.Stays(i) && i.Agent() != nil && !i.Disowned() && i.Missing().IsZero() &&
			i.Noticed().IsZero() && len(i.Seats()) == 1 && a.DrainWhy() != "lifetime_ends" {
			list = append(list, k)
		}
	}
	return list
}

// kept are those of the survivors that are of the offer and run the image of that way of doing the
// work, for so many nodes at most.
func (m *Machine) kept(j *Job, offer market.OfferID, variant string, nodes int) (list []string) {
	if m.keeping != j {
		return nil
	}
	for _, k := range m.keeps {
		if k.Machine().Offer == offer && m.hasImage(k.Machine(), j, variant) && len(list) < nodes {
			list = append(list, k.Instance())
		}
	}
	return list
}

// meanwhile has a gang that is being made up again go on with what is left of it as long as
// the table is missing that says what each choice costs: its machines would be given back else.
func (m *Machine) meanwhile(j *Job, d plan.Decision) plan.Decision {
	if d.Take != "" || d.Why != plan.Weighing {
		return d
	}
	if k := m.heldBack(j); k != nil {
		d.Take, d.Variant, d.Rate, d.Why = k.Machine().Offer, k.Attempt().Variant(), k.Rate(), plan.Stays
	}
	return d
}

// heldBack is a machine of a gang that is being made up again where its job may have that again:
// what is left is enough for the job, or more of the same may be asked for. nil: it has none.
func (m *Machine) heldBack(j *Job) *Task {
	if m.keeping != j || len(m.keeps) == 0 || m.keeps[0].Machine().Prepaid { // what is reserved goes to the most urgent
		return nil
	}
	k := m.keeps[0]
	left, wanted := len(m.kept(j, k.Machine().Offer, k.Attempt().Variant(), len(m.keeps))), m.enough(j)
	if room, limited := m.gpuRoom(j); limited && max(left, wanted)*k.GPUs() > room {
		return nil
	}
	if left >= wanted {
		return k
	}
	l := m.s.Listing(k.Machine().Offer)
	if l == nil || !l.Quote().Available {
		return nil
	}
	if _, cools := m.s.Cooling(l); cools {
		return nil
	}
	return k
}
