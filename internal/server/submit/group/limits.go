package group

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	"scrimp/internal/decide/core"
	"scrimp/internal/server/reply"
)

// ShortPipeline refuses a pipeline whose GPU-hours do not pay for the saves of stages that begin together, or whose
// time is over before a machine has started: it would end at once. Stages that follow the same stages begin together,
// as many as may run at once.
func ShortPipeline(t *core.GroupTerms) *reply.Refusal {
	no := func(field, title, fix string) *reply.Refusal {
		return &reply.Refusal{Status: http.StatusUnprocessableEntity, Field: field, Title: title, Fix: fix}
	}
	gpus := map[string][]int{} // of the stages that follow the same stages
	for i := range t.Stages {
		s := &t.Stages[i]
		name := t.Pipeline.Stages[i].Name
		if wall := t.WallClock; wall > 0 && wall <= s.Restart {
			return no("budget.wall_clock", fmt.Sprintf("a machine for stage %s takes %s to start, and the pipeline has %s",
				name, s.Restart, wall), "give more time")
		}
		n := s.Need.LeastGPUs() * s.Fewest()
		if own := float64(n) * t.Grace.Hours(); t.GPUHours > 0 && t.GPUHours <= own {
			return no("budget.gpu_hours", fmt.Sprintf("the pipeline has %g GPU-hours, and stage %s needs more than %.3g to "+
				"save at the end: %d GPUs × %s (grace)", t.GPUHours, name, own, n, t.Grace),
				"give more GPU-hours, or a shorter grace")
		}
		after := fmt.Sprint(t.Pipeline.Stages[i].Needs)
		gpus[after] = append(gpus[after], n)
	}
	for _, list := range gpus {
		slices.SortFunc(list, func(a, b int) int { return cmp.Compare(b, a) })
		together, sum := min(len(list), t.AtOnce), 0
		for _, n := range list[:together] {
			sum += n
		}
		if own := float64(sum) * t.Grace.Hours(); t.GPUHours > 0 && t.GPUHours <= own {
			return no("budget.gpu_hours", fmt.Sprintf("the pipeline has %g GPU-hours, and %d stages that run at once need more "+
				"than %.3g to save at the end: %d GPUs × %s (grace)", t.GPUHours, together, own, sum, t.Grace),
				"give more GPU-hours, or let fewer stages run at once (parallel)")
		}
	}
	return nil
}
