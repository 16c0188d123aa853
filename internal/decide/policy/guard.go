package policy

import "time"

// Stop is why a run is ended before its program ends.
type Stop string

// Guardrails. Each saves a checkpoint first.
const (
	TargetReached Stop = "target_reached" // success: the rest of the money is not spent
	BudgetSpent   Stop = "budget_spent"
	BudgetShort   Stop = "budget_short" // the rest of the budget does not pay for the remaining work
	GPUHoursSpent Stop = "gpu_hours_spent"
	WallClock     Stop = "wall_clock"
	Plateau       Stop = "plateau"
	Diverged      Stop = "diverged"
	MachineIdle   Stop = "machine_idle"
	DeadlineGone  Stop = "deadline_passed"
)

// IsBudget reports whether a budget of the job ends the run: dollars, GPU-hours or wall-clock time.
func (s Stop) IsBudget() bool {
	return s == BudgetSpent || s == BudgetShort || s == GPUHoursSpent || s == WallClock
}

// Metric is the metric that the user watches.
type Metric struct {
	Name     string  `json:"name"`
	Maximize bool    `json:"maximize,omitempty"`
	Target   float64 `json:"target,omitempty"`
	HasGoal  bool    `json:"has_target,omitempty"` // whether Target is set
	Patience int64   `json:"patience,omitempty"`   // steps without improvement after which the run ends; 0: never
	MinDelta float64 `json:"min_delta,omitempty"`  // smallest change that counts as an improvement
}

// Seen summarizes the metric so far, over all attempts. A run that resumes from a checkpoint reports the values
// after it again, which changes nothing.
type Seen struct {
	Best     float64 `json:"best,omitempty"`
	BestStep int64   `json:"best_step,omitempty"`
	Any      bool    `json:"any,omitempty"`
}

// Judge processes values in the order in which they were reported. It returns the summary after all of them, and
// the first reason to end the run, or "".
func (s Seen) Judge(m Metric, values Values) (after Seen, stop Stop) {
	for _, v := range values {
		if stop == "" {
			stop = s.verdict(m, v)
		}
		if !v.Broken && s.improved(m, v.Value) {
			s = Seen{Best: v.Value, BestStep: v.Step, Any: true}
		}
	}
	return s, stop
}

// verdict returns why a value should end the run, given the values before it.
func (s Seen) verdict(m Metric, v Value) Stop {
	switch {
	case v.Broken:
		return Diverged
	case m.HasGoal && (v.Value == m.Target || m.better(v.Value, m.Target)):
		return TargetReached
	case !s.improved(m, v.Value) && m.Patience > 0 && v.Step-s.BestStep >= m.Patience:
		return Plateau
	}
	return ""
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

// Idle reports whether a machine has been idle since the given time for at least limit.
func Idle(since, now time.Time, limit time.Duration) bool {
	return limit > 0 && !since.IsZero() && now.Sub(since) >= limit
}
