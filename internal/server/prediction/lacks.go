package prediction

import (
	"slices"

	"scrimp/internal/decide/plan"
	"scrimp/internal/job/spec"
	"scrimp/internal/sim"
)

// shortLived explains that only the machines' lifetime rules them out, and names a fix; it returns "" if that is not
// so.
func shortLived(f sim.Forecast) string {
	for _, r := range f.First.Rejected {
		if r.Why == plan.ShortLived {
			return "the machines of " + string(r.Offer) + " are taken before the work is done, and the job saves nothing " +
				"that the next one could go on from: set checkpoint.dir to where the program saves"
		}
	}
	return ""
}

// noImages explains that machines would do if they ran the job's image, and names a fix; it returns "" if that is not
// so.
func noImages(f sim.Forecast, j spec.Job) string {
	lacks := func(r plan.Rejection) bool { return r.Why == plan.NoImages }
	if !slices.ContainsFunc(f.First.Rejected, lacks) {
		return ""
	}
	image := "the image that the job names"
	if j.Image != "" {
		image = "image " + j.Image
	}
	return "no offer of this market runs " + image + ": leave image out and put what it holds into setup, or name a " +
		"Kubernetes engine (scrimp engine add)"
}

// unknownFare explains that offers would do if the price of reading the job's data there were known, and names a fix;
// it returns "" if that is not so.
func unknownFare(f sim.Forecast, j spec.Job) string {
	if !slices.ContainsFunc(f.First.Rejected, func(r plan.Rejection) bool { return r.Why == plan.UnknownFare }) {
		return ""
	}
	for _, d := range j.Data {
		if d.Region != "" && d.Size == 0 {
			return "the job reads " + d.Path + " from " + d.Region + ", and what that costs elsewhere is unknown: give data.size"
		}
	}
	return "the job reads data from another region than every offer, and the catalogue has no price of that: leave out " +
		"data.region where reading costs nothing, or copy the data"
}

// tooSmall explains that no offer has enough memory for the job's model, and names a fix; it returns "" if that is not
// so.
func tooSmall(sale []sold, n *plan.Need) string {
	holds := func(s sold) bool { return n.Holds(&s.offer) }
	accelerated := func(s sold) bool { return n.Accelerated(&s.offer) }
	if !slices.ContainsFunc(sale, accelerated) || slices.ContainsFunc(sale, holds) {
		return ""
	}
	return "no offer of this market holds the model, which takes " + n.LeastFootprint().String() + " by its estimate " +
		"(scrimp estimate --model): say how it is divided (model.sharding), or trains in less (model.tuning, " +
		"model.activation_checkpointing); an exact resources.accelerator, such as A10G:1, goes before it, and " +
		"resources.memory on machines without accelerators"
}

// tooLarge says what the first offer that is only too large has, and how the job would accept it, or "".
func tooLarge(sale []sold, f sim.Forecast, n *plan.Need) string {
	for _, r := range f.First.Rejected {
		i := slices.IndexFunc(sale, func(s sold) bool { return s.offer.ID == r.Offer })
		if r.Why == plan.TooLarge && i >= 0 && n.Excess(&sale[i].offer) != "" {
			return string(r.Offer) + " has " + n.Excess(&sale[i].offer)
		}
	}
	return ""
}
