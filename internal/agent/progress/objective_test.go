package progress

import (
	"strings"
	"testing"
	"time"

	"scrimp/internal/wire/api"
)

// The rate limit allows ten values a second forever, plus a burst. The agent refuses and counts the
// values above it, and its message says what to do. It accepts a non-finite value even then.
func TestObjective_RefusesValuesAboveRate(t *testing.T) {
	t.Parallel()
	o := Objective{Name: "loss"}
	now, step := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), int64(0)
	say := func(s api.Step) (taken bool, why error) {
		step++
		s.Step = step
		v, err := o.Take(now, s, s)
		return v != nil, err
	}
	loss := api.Step{Metrics: map[string]float64{"loss": 1}}
	for range 1000 { // ten a second
		if ok, err := say(loss); !ok || err != nil {
			t.Fatalf("value %d: %v", step, err)
		}
		now = now.Add(100 * time.Millisecond)
	}
	now = now.Add(time.Minute)
	taken := 0
	for range 200 { // all at once
		if ok, _ := say(loss); ok {
			taken++
		}
	}
	if taken != valuesAtOnce || o.refused != 200-valuesAtOnce {
		t.Errorf("of 200 at once %d are taken and %d refused", taken, o.refused)
	}
	_, err := say(loss)
	if err == nil || !strings.Contains(err.Error(), "refused 151 values of loss") ||
		!strings.Contains(err.Error(), "every few steps") {
		t.Errorf("it says %v", err)
	}
	if ok, err := say(api.Step{Broken: []string{"loss"}}); !ok || err != nil {
		t.Errorf("a loss that is not a number is refused: %v", err)
	}
	if ok, err := say(api.Step{Broken: []string{"loss"}}); ok || err == nil {
		t.Error("every loss that is not a number is taken, however many")
	}
	if ok, err := say(api.Step{Metrics: map[string]float64{"acc": 1}}); ok || err != nil {
		t.Errorf("another metric: %v, %v", ok, err)
	}
}
