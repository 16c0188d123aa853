package policy

import (
	"math"
	"slices"
	"time"
)

// Stop is why a run is ended before its program ends it.
type Stop string

// The guardrails. Each saves a checkpoint first.
const (
	TargetReached Stop = "target_reached" // success: the rest of the money comes back
	BudgetSpent   Stop = "budget_spent"
	BudgetShort   Stop = "budget_short" // what is left of it does not pay for what is left of the work
	GPUHoursSpent Stop = "gpu_hours_spent"
	WallClock     Stop = "wall_clock"
	Plateau       Stop = "plateau"
	Diverged      Stop = "diverged"
	MachineIdle   Stop = "machine_idle"
	DeadlineGone  Stop = "deadline_passed"
)

// Metric is what the user watches.
type Metric struct {
	Name     string  `json:"name"`
	Maximize bool    `json:"maximize,omitempty"`
	Target   float64 `json:"target,omitempty"`
	HasGoal  bool    `json:"has_target,omitempty"` // whether Target is set
	Patience int64   `json:"patience,omitempty"`   // steps without improvement that end the run; 0: never
	MinDelta float64 `json:"min_delta,omitempty"`  // what counts as improvement
}

// Seen is what became of the metric so far, over all attempts: a run that resumes from a
// checkpoint shows the values after it again, which changes nothing.
type Seen struct {
	Best     float64 `json:"best,omitempty"`
	BestStep int64   `json:"best_step,omitempty"`
	Any      bool    `json:"any,omitempty"`
}

// Verdict takes the metrics of one report and says whether the run should end, by what
// was seen before it. broken names the metrics that are not a finite number.
func (s Seen) Verdict(m Metric, step int64, values map[string]float64, broken []string) (Stop, bool) {
	v, ok := values[m.Name]
	switch {
	case m.isBroken(values, broken):
		return Diverged, true
	case !ok || m.Name == "":
		return "", false
	case m.HasGoal && (v == m.Target || m.better(v, m.Target)):
		return TargetReached, true
	case !s.improved(m, v) && m.Patience > 0 && step-s.BestStep >= m.Patience:
		return Plateau, true
	}
	return "", false
}

// See returns what became of the metric after a report.
func (s Seen) See(m Metric, step int64, values map[string]float64, broken []string) Seen {
	v, ok := values[m.Name]
	if !ok || m.Name == "" || m.isBroken(values, broken) || !s.improved(m, v) {
		return s
	}
	return Seen{Best: v, BestStep: step, Any: true}
}

// isBroken reports whether what is watched is no finite number.
func (m Metric) isBroken(values map[string]float64, broken []string) bool {
	if slices.Contains(broken, m.Name) || m.Name == "" && slices.Contains(broken, "loss") {
		return true
	}
	v, ok := values[m.Name]
	return ok && m.Name != "" && (math.IsNaN(v) || math.IsInf(v, 0))
}

// better reports whether a is better than b.
func (m Metric) better(a, b float64) bool {
	if m.Maximize {
		return a > b
	}
	return a < b
}

// improved reports whether v counts as an improvement.
func (s Seen) improved(m Metric, v float64) bool {
	margin := m.MinDelta
	if !m.Maximize {
		margin = -margin
	}
	return !s.Any || m.better(v, s.Best+margin)
}

// Idle reports whether a machine that used cpu cores has done nothing since.
func Idle(since, now time.Time, limit time.Duration) bool {
	return limit > 0 && !since.IsZero() && now.Sub(since) >= limit
}
