package policy

import (
	"math"
	"testing"
	"time"
)

func TestDeadlineModes(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(left time.Duration) Progress {
		return Progress{Now: now, Began: now.Add(-6 * time.Hour), Deadline: now.Add(left), Left: 3 * time.Hour, Known: true, Done: 6 * time.Hour, Restart: 6 * time.Minute, Detect: time.Minute}
	}
	for _, c := range []struct {
		p    Progress
		want Mode
	}{
		{at(4 * time.Hour), Patient},
		{at(3*time.Hour + 13*time.Minute), Certain}, // the guard, to the minute
		{at(3*time.Hour + 14*time.Minute), Patient},
		{at(time.Hour), Certain}, // too late already
		{Progress{Now: now, Began: now.Add(-6 * time.Hour), Deadline: now.Add(4 * time.Hour), Left: 3 * time.Hour, Known: true, Done: time.Minute}, Steady},
		{Progress{Now: now, Left: 3 * time.Hour, Known: true}, Patient}, // no deadline
		{Progress{Now: now, Deadline: now.Add(time.Minute)}, Patient},   // nobody knows the work
	} {
		if got := Deadline(c.p); got != c.want {
			t.Errorf("%+v: %s, want %s", c.p, got, c.want)
		}
	}
}

func TestCertainAtIsWhenTheModeTurns(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	p := Progress{Now: now, Began: now, Deadline: now.Add(8 * time.Hour), Left: 3 * time.Hour, Known: true, Done: 100 * time.Hour, Restart: 6 * time.Minute, Detect: time.Minute}
	at, ok := CertainAt(p)
	if !ok {
		t.Fatal("a deadline never gets tight")
	}
	p.Now = at.Add(-time.Second)
	if Deadline(p) != Patient {
		t.Error("certain a second too early")
	}
	p.Now = at
	if Deadline(p) != Certain {
		t.Error("not certain when it was said")
	}
}

// TestIntervalLosesLeast compares with the interval that a search finds for the
// exact expected time of a run under interruptions at a constant rate:
// M·(e^((τ+δ)/M) − 1)/τ for each unit of work.
func TestIntervalLosesLeast(t *testing.T) {
	for _, c := range []struct{ cost, between time.Duration }{
		{10 * time.Second, time.Hour}, {time.Minute, 4 * time.Hour}, {5 * time.Minute, time.Hour}, {time.Second, 30 * time.Minute},
	} {
		d, m := c.cost.Seconds(), c.between.Seconds()
		per := func(tau float64) float64 { return m * (math.Exp((tau+d)/m) - 1) / tau }
		best := math.Inf(1)
		for tau := 1.0; tau < 3*m; tau *= 1.002 {
			best = min(best, per(tau))
		}
		if got := per(Interval(c.cost, c.between).Seconds()); got > best*1.002 {
			t.Errorf("δ=%v M=%v: %v costs %.5f for each unit of work, the best is %.5f", c.cost, c.between, Interval(c.cost, c.between), got, best)
		}
	}
	if got := Interval(10*time.Second, time.Hour).Round(time.Second); got < 258*time.Second || got > 264*time.Second {
		t.Errorf("the worked number is %v", got)
	}
}

func TestTheHazardLearns(t *testing.T) {
	if got := (Hazard{}).Between(); got != 4*time.Hour {
		t.Errorf("nothing seen: %v", got)
	}
	if got := (Hazard{Lost: 9, Served: 6 * time.Hour}).Between(); got != time.Hour {
		t.Errorf("nine losses in six hours: %v", got)
	}
}

func TestGuardrails(t *testing.T) {
	loss := Metric{Name: "loss", Target: 2, HasGoal: true, Patience: 10}
	for name, c := range map[string]struct {
		seen   Seen
		step   int64
		value  float64
		broken []string
		want   Stop
	}{
		"above the target":       {Seen{}, 1, 2.5, nil, ""},
		"at the target":          {Seen{}, 1, 2, nil, TargetReached},
		"not a number":           {Seen{}, 1, 3, []string{"loss"}, Diverged},
		"no better for too long": {Seen{Best: 2.5, BestStep: 5, Any: true}, 15, 2.6, nil, Plateau},
		"no better for a while":  {Seen{Best: 2.5, BestStep: 5, Any: true}, 14, 2.6, nil, ""},
	} {
		if got, _ := c.seen.Watch(loss, c.step, map[string]float64{"loss": c.value}, c.broken); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
