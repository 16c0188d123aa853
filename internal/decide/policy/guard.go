package policy

import "time"

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

// Judge takes values in the order in which they were reported. It returns what became of
// the metric after all of them, and why the run should end by the first that says so;
// "": it should not.
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

// verdict is why the run should end by a value, after what was seen before it.
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

// Idle reports whether a machine that used cpu cores has done nothing since.
func Idle(since, now time.Time, limit time.Duration) bool {
	return limit > 0 && !since.IsZero() && now.Sub(since) >= limit
}
