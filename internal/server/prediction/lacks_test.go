package prediction

import (
	"slices"
	"strings"
	"testing"

	api "scrimp/client"
	"scrimp/internal/decide/plan"
)

// A job with an image starts on the dearer machine that supports images. If none does, the plan reports it with the
// fix.
func TestPlan_JobWithImageNeedsSupport(t *testing.T) {
	bare, box := onDemand("hpc", "bare", 100_000_000_000), onDemand("k8s", "box", 300_000_000_000)
	box.Offer.Images = true
	if p := plannedOn(t, "image: pytorch/pytorch:2.4.0\n", bare, box); p.Take != box.Offer.ID || !p.Feasible {
		t.Errorf("it begins on %q (%s): %+v", p.Take, p.Why, p.Rejected)
	}
	if p := plannedOn(t, "any_of: [{image: pytorch/pytorch, throughput: 9}]\n", bare, box); p.Take != box.Offer.ID {
		t.Errorf("nine times as fast in an image: it begins on %q (%s)", p.Take, p.Why)
	}
	p := plannedOn(t, "image: pytorch/pytorch:2.4.0\n", bare)
	if p.Take != "" || p.Feasible || !slices.ContainsFunc(p.Rejected, func(r api.PlanRefusal) bool { return r.Why == string(plan.NoImages) }) {
		t.Errorf("it begins on %q (%s): %+v", p.Take, p.Why, p.Rejected)
	}
	if len(p.Reasons) == 0 || !strings.Contains(p.Reasons[0], "pytorch/pytorch:2.4.0: leave image out") {
		t.Errorf("it does not say what to do: %q", p.Reasons)
	}
}
