package inbox

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/policy"
	"scrimp/internal/engine"
	"scrimp/internal/test/lane"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// e0 is the start time of the programs in these tests.
var e0 = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// sampled simulates a program that reports twice a second for the given span, and returns the resulting events.
func sampled(speed float64, metric policy.Metric, span time.Duration, say func(n int64) (api.Step, *api.Usage)) (list []core.Event) {
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	c := New(Config{Clock: engine.Clock{Wall: start, Market: start, Speed: speed}, Silence: 20 * time.Second})
	c.live = 1
	l := c.hear("a", 0, start)
	l.history.Metric, l.known = metric, true
	seq := int64(0)
	for n := int64(1); time.Duration(n)*reportAtLeast <= span; n++ {
		wall := start.Add(time.Duration(n) * reportAtLeast)
		step, usage := say(n)
		seq++
		events := c.heardFrom(l, api.Message{Seq: seq, At: wall, Step: &step}, wall)
		if usage != nil {
			seq++
			events = append(events, c.heardFrom(l, api.Message{Seq: seq, At: wall, Usage: usage}, wall)...)
		}
		l.committed(events, wall)
		all, of := c.Due(wall)
		c.Release(of, true, wall)
		list = append(append(list, events...), all...)
	}
	return list
}

// At real speed a long run adds few events: about sixty in its first hour and twelve in each later hour, for progress
// and usage alike. A faster market clock does not add more per wall hour.
func TestSampling_ThinsOutInLongRuns(t *testing.T) {
	t.Parallel()
	busy := func(n int64) (api.Step, *api.Usage) { return api.Step{Step: n}, &api.Usage{CPU: 1} }
	for _, c := range []struct {
		speed       float64
		span        time.Duration
		least, most int // for both together
	}{
		{1, time.Minute, 20, 40},
		{1, time.Hour, 90, 150},
		{1, 11 * time.Hour, 90 + 240, 150 + 240},
		{720, 2 * time.Minute, 60, 75},
	} {
		if n := len(sampled(c.speed, policy.Metric{}, c.span, busy)); n < c.least || n > c.most {
			t.Errorf("%v at speed %v: %d events, want %d to %d", c.span, c.speed, n, c.least, c.most)
		}
	}
}

// A program that reports its job's metric at each step causes no more events than another, and each value costs a few
// bytes of log.
func TestSampling_PutsManyValuesIntoFewEvents(t *testing.T) {
	t.Parallel()
	metric := policy.Metric{Name: "loss"}
	for _, span := range []time.Duration{time.Hour, time.Duration(lane.Pick(1, 6)) * time.Hour} {
		values, events, bytes := 0, 0, 0
		for _, e := range sampled(1, metric, span, func(n int64) (api.Step, *api.Usage) {
			loss := float64(float32(3 + 1/float64(n)))
			return api.Step{Step: n, Metrics: map[string]float64{"loss": loss}, Values: []api.Value{{At: e0.Add(time.Duration(n) * reportAtLeast), Step: n, Value: loss}}}, nil
		}) {
			b, err := json.Marshal(e)
			must.Do(t, err)
			values, events, bytes = values+len(e.Body.(core.Progressed).Values), events+1, bytes+len(b)
		}
		each := float64(bytes) / float64(values)
		t.Logf("%v: %d values in %d events, %.1f bytes a value with all that an event is", span, values, events, each)
		if said := int(span / reportAtLeast); values < said-1000 || events > 60+values/500 || each > 24 {
			t.Errorf("%v: %d values of %d in %d events, %.1f bytes a value, want at most 24", span, values, said, events, each)
		}
	}
}

// However seldom progress becomes an event, a metric value that ends the job does so within two seconds, even if the
// next report is worse again. Patience counts from the best value reported, not from the best value in an event.
func TestSampling_MissesNoDecisiveValue(t *testing.T) {
	t.Parallel()
	const half = int64(3600) // reports in half an hour
	play := func(m policy.Metric, value func(n int64) float64) (stop policy.Stop, at time.Duration) {
		var seen policy.Seen
		start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		for _, e := range sampled(1, m, time.Hour, func(n int64) (api.Step, *api.Usage) {
			return api.Step{Step: n, Metrics: map[string]float64{"loss": value(n)}}, nil
		}) {
			b := e.Body.(core.Progressed)
			if seen, stop = seen.Judge(m, b.Objective(m)); stop != "" {
				return stop, e.At.Sub(start)
			}
		}
		return "", 0
	}
	once := func(n int64) float64 { // reaches the target in one report
		if n == half {
			return 0.1
		}
		return 1
	}
	if stop, at := play(policy.Metric{Name: "loss", Target: 0.2, HasGoal: true}, once); stop != policy.TargetReached ||
		at > time.Hour/2+stepAtLeast {
		t.Errorf("a target that is reached after half an hour ends the job as %q after %v", stop, at)
	}
	falls := func(n int64) float64 { // improves every 90 s, in one report of 180
		if n%180 == 90 {
			return 1 / float64(n)
		}
		return 2
	}
	if stop, at := play(policy.Metric{Name: "loss", Patience: 200}, falls); stop != "" {
		t.Errorf("a loss that gets better every 180 steps ends a job of patience 200 as %q after %v", stop, at)
	}
	stalls := func(n int64) float64 {
		return falls(min(n, half/180*180+90)) + float64(max(0, n-half-90))/1e6
	}
	if stop, at := play(policy.Metric{Name: "loss", Patience: 200}, stalls); stop != policy.Plateau ||
		at < time.Hour/2 || at > time.Hour/2+(90+200)*reportAtLeast+stepAtLeast {
		t.Errorf("a loss that stalls after half an hour ends the job as %q after %v", stop, at)
	}
}

// Mean CPU use stays exact however seldom it becomes an event, and a program that turns idle is noticed within ten
// seconds and watched closely from then on.
func TestSampling_KeepsMeanUsageAndNoticesIdleness(t *testing.T) {
	t.Parallel()
	const falls = 3 * 7200 // the report after three hours
	cpu := func(n int64) float64 {
		if n > falls {
			return 0
		}
		return float64(n%4) / 2 // 0, 0.5, 1, 1.5
	}
	list := sampled(1, policy.Metric{}, 3*time.Hour+2*time.Minute, func(n int64) (api.Step, *api.Usage) {
		return api.Step{}, &api.Usage{CPU: cpu(n), Memory: n}
	})
	list = slices.DeleteFunc(list, func(e core.Event) bool { return e.Body.Kind() != core.UsageSeen{}.Kind() })
	var sum, first time.Duration
	last, idle := list[0].At.Add(-reportAtLeast), 0
	for _, e := range list {
		b := e.Body.(core.UsageSeen)
		d := e.At.Sub(last)
		last = e.At
		sum += time.Duration(b.CPU * float64(d))
		if b.CPU < 0.05 {
			if idle++; idle == 1 {
				first = time.Duration(b.Memory) * reportAtLeast
			}
		}
	}
	if mean := sum.Hours() / 3; mean < 0.745 || mean > 0.755 {
		t.Errorf("%v processors over three hours, want 0.75", mean)
	}
	if late := first - falls*reportAtLeast; late < 0 || late > 2*usageAtLeast+time.Second || idle < 9 {
		t.Errorf("idleness is seen %v late, and %d times in two minutes", late, idle)
	}
	if fmt.Sprint(list[len(list)-1].Body.(core.UsageSeen).Memory) == "0" {
		t.Error("no memory")
	}
}

// A job that requested GPUs and lets them idle is noticed within ten seconds, whatever its CPU use, and a short use
// of a GPU between two events is not lost.
func TestSampling_NoticesIdleGPUs(t *testing.T) {
	t.Parallel()
	const falls = 3 * 7200 // the report after three hours
	gpu := func(n int64) *float64 {
		switch {
		case n > falls:
			return new(0.0)
		case n%600 == 300: // the only use in five minutes
			return new(0.7)
		case n%10 == 0: // the driver does not answer
			return nil
		}
		return new(0.0)
	}
	list := sampled(1, policy.Metric{}, 3*time.Hour+2*time.Minute, func(n int64) (api.Step, *api.Usage) {
		return api.Step{}, &api.Usage{CPU: 1, Memory: n, GPU: gpu(n)}
	})
	idle, busy := 0, 0
	for _, e := range list {
		b, ok := e.Body.(core.UsageSeen)
		if !ok {
			continue
		}
		after := b.Memory > falls
		switch {
		case b.Idle() && after:
			idle++
		case !b.Idle():
			busy++
			if after {
				t.Errorf("%v: in use after it fell idle", e.At)
			}
		}
	}
	if idle < 9 || busy < 30 {
		t.Errorf("idleness is seen %d times in two minutes, use %d times in three hours", idle, busy)
	}
}

// A value dated before its attempt or in the future counts within the attempt's time, because the job's costs at that
// time are shown beside it.
func TestValuesOf_DatesValuesWithinTheAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		c := New(Config{Clock: engine.Clock{Wall: now, Market: now, Speed: 1}})
		since := now.Add(-time.Hour)
		for said, want := range map[time.Time]time.Time{
			now.AddDate(10, 0, 0): now, now.AddDate(-300, 0, 0): since, now.Add(-time.Minute): now.Add(-time.Minute), since: since,
		} {
			list := c.valuesOf(policy.Metric{Name: "loss"}, api.Message{At: now, Step: &api.Step{Values: []api.Value{{At: said, Value: 1}}}}, since)
			bare := c.valuesOf(policy.Metric{Name: "loss"}, api.Message{At: said, Step: &api.Step{Metrics: map[string]float64{"loss": 1}}}, since)
			if len(list) != 1 || !list[0].At.Equal(want) || len(bare) != 1 || !bare[0].At.Equal(want) {
				t.Errorf("of %v: %v and %v, want %v", said, list, bare, want)
			}
		}
	})
}
