package limits_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/state"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/limits"
)

// A number out of bounds is reported with its field and its bounds; a number equal to a bound is accepted.
func TestCheck_RefusesNumbersOutOfBounds(t *testing.T) {
	t.Parallel()
	limit, token := reflect.TypeFor[client.SetBudget](), reflect.TypeFor[client.NewToken]()
	for _, c := range []struct {
		of          reflect.Type
		text, field string
	}{
		{limit, `{"limit":{"dollars":"150000000000000000000000000"}}`, "limit.dollars"}, {limit, `{"limit":{"dollars":"1000000000000"}}`, ""},
		{limit, `{"limit":{"dollars":"-1"}}`, "limit.dollars"}, {limit, `{"limit":{"dollars":null,"gpu_hours":1.7e308}}`, "limit.gpu_hours"},
		{limit, `{"limit":{"gpu_hours":1e400}}`, "limit.gpu_hours"}, {limit, `{"limit":{"gpu_hours":2000000}}`, ""},
		{limit, `{"limit":{"jobs":9223372036854775807}}`, "limit.jobs"}, {limit, `{"limit":{"warn":[0.5,2]}}`, "limit.warn[1]"},
		{limit, `{"limit":{"approve_within_ns":9223372036854775807}}`, "limit.approve_within_ns"},
		{token, `{"life_ns":315360000000000000}`, ""}, {token, `{"life_ns":315360000000000001}`, "life_ns"}, // the same float64
		{token, `{"life_ns":415360000000000000}`, "life_ns"}, {token, `{"life_ns":-1}`, "life_ns"},
		{reflect.TypeFor[client.SetTeam](), `{"disk_bytes":1e30}`, "disk_bytes"},
		{reflect.TypeFor[[]client.Submission](), `[{}]`, ""},
		// reports of agents are clipped, not refused
		{reflect.TypeFor[api.Report](), `{"messages":[{"step":{"step":1,"total":20000000000000}}]}`, ""},
	} {
		var e *limits.ExcessError
		err := limits.Check(c.of, []byte(c.text))
		if c.field == "" && err != nil || c.field != "" && (!errors.As(err, &e) || e.Field != c.field || e.Kind == nil || e.Fix() == "") {
			t.Errorf("%v %s: %v", c.of, c.text, err)
		}
	}
}

// Numbers in a report beyond the bounds count as missing: the job continues, and nothing uses them.
func TestClipNumbers_DropsNumbersOutOfBounds(t *testing.T) {
	t.Parallel()
	now := time.Now()
	far, half, many := time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), 0.5, 7.0
	metrics := map[string]float64{"loss": 1, "huge": 1e300}
	r := api.Report{Attempt: "job.1", Messages: []api.Message{
		{Seq: 1, At: far, Step: &api.Step{Step: 5, Total: 20_000_000_000_000, Epoch: math.Inf(1), Metrics: metrics,
			Values: []api.Value{{At: now, Step: 1, Value: 3}, {At: now, Step: 2, Value: -1e200}}}},
		{Seq: 2, At: now, Saved: &api.Saved{Step: 5, Took: math.MaxInt64, Bytes: math.MaxInt64, Captured: far}},
		{Seq: 3, At: now, Usage: &api.Usage{CPU: math.NaN(), Memory: -1, GPU: &many}},
		{Seq: 4, At: now, Usage: &api.Usage{CPU: 1, Memory: 7, GPU: &half}},
		{Seq: 5, At: now, Started: &api.Started{Step: math.MinInt64, Took: -1}},
	}, Telemetry: &api.Measurements{Buckets: []api.Measurement{{Start: 10, Covered: 10,
		Values: map[string][]*float64{"gpu": {&half, new(float64)}}}}}}
	*r.Telemetry.Buckets[0].Values["gpu"][1] = 1e300
	fields := limits.ClipNumbers(&r, time.Now())
	want := []string{"messages[0].at", "messages[0].step.total", "messages[0].step.epoch", "messages[0].step.metrics.huge",
		"messages[0].step.values[1].value", "messages[1].saved.bytes", "messages[1].saved.captured", "messages[1].saved.took_ns",
		"messages[2].usage.cpu", "messages[2].usage.memory", "messages[2].usage.gpu", "messages[4].started.step", "messages[4].started.took_ns",
		"telemetry.buckets[0].values.gpu[1]"}
	if !slices.Equal(fields, want) {
		t.Errorf("out of bounds are %v,\nwant %v", fields, want)
	}
	step, saved := r.Messages[0].Step, r.Messages[1].Saved
	switch {
	case step.Step != 5 || step.Total != 0 || step.Epoch != 0 || len(step.Metrics) != 1 || !slices.Equal(step.Broken, []string{"huge"}):
		t.Errorf("the step is %+v", step)
	case !step.Values[1].Broken || step.Values[0].Broken || r.Messages[0].At.After(now.Add(time.Hour)):
		t.Errorf("the values are %+v at %v", step.Values, r.Messages[0].At)
	case saved.Took != 0 || saved.Bytes != 0 || saved.Step != 5 || saved.Captured.After(now.Add(time.Hour)):
		t.Errorf("what was saved is %+v", saved)
	case r.Messages[2].Usage.GPU != nil || r.Messages[3].Usage.GPU == nil || r.Telemetry.Buckets[0].Values["gpu"][1] != nil:
		t.Errorf("the usage is %+v", r.Messages[2].Usage)
	case len(metrics) != 2:
		t.Error("the program's own map was changed")
	}
	if again := limits.ClipNumbers(&r, time.Now()); len(again) > 0 || limits.Numbers(r, time.Now()) != nil {
		t.Errorf("%v are out of bounds still", again)
	}
	before, _ := json.Marshal(r)
	limits.Clip(&r)
	if after, _ := json.Marshal(r); !bytes.Equal(after, before) {
		t.Errorf("%s was cut to %s", before, after)
	}
}

// An event with a number out of bounds is refused with the field.
func TestNumbers_RefusesEventsOutOfBounds(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	far := now.Add(quantity.Decade + time.Hour)
	wide, _ := money.Parse("150000000000000000000000000")
	debt, _ := money.Parse("-5")
	for _, c := range []struct {
		body  state.Body
		field string
	}{
		{state.JobSubmitted{Terms: state.Terms{Budget: wide}}, "terms.budget"},
		{state.JobSubmitted{Terms: state.Terms{Deadline: far}}, "terms.deadline"},
		{state.JobSubmitted{Terms: state.Terms{Work: math.MaxInt64}}, "terms.work_ns"},
		{state.JobSubmitted{Terms: state.Terms{Steps: 1 << 60}}, "terms.steps"},
		{state.JobSubmitted{Terms: state.Terms{RetryCodes: []int{1, 1 << 40}}}, "terms.retry_codes[1]"},
		{state.JobUpdated{Changes: state.Changes{Deadline: &far}}, "changes.deadline"},
		{state.JobUpdated{Changes: state.Changes{Budget: &debt}}, "changes.budget"},
		{state.Progressed{Metrics: map[string]float64{"loss": math.Inf(1)}}, "metrics.loss"},
		{state.CheckpointSaved{Took: math.MaxInt64}, "took_ns"},
		{state.MarketSeen{Quotes: []market.Quote{{}, {Rate: 2e18}}}, "quotes[1].rate"},
		{state.MarketSeen{Offers: []market.Offer{{Speed: math.NaN()}}}, "offers[0].speed"},
		{state.BillReceived{Lines: []state.BillLine{{Amount: debt}, {Amount: wide}}}, "lines[1].amount"},
		{state.Configured{Config: state.Config{Providers: map[string]state.Timing{"a": {Idle: -1}}}}, "config.providers.a.idle_ns"},
		{state.Configured{Config: state.DefaultConfig()}, ""},
		{state.Tick{}, ""},
		{state.JobSubmitted{Terms: state.Terms{Deadline: now.Add(quantity.Decade), Work: quantity.Decade, Steps: 1e11}}, ""},
	} {
		var e *limits.ExcessError
		err := limits.Numbers(c.body, now)
		if c.field == "" && err != nil || c.field != "" && (!errors.As(err, &e) || e.Field != c.field) {
			t.Errorf("%s: %v, want %s", c.body.Kind(), err, c.field)
		}
	}
}

// Numbers of engines beyond the bounds are clipped: the core must know a machine even if its price makes no sense.
func TestClipped_LowersPricesOfEngines(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	var b state.Body = state.LaunchDone{Instance: "i", Rate: math.MaxInt64, From: now.Add(2 * quantity.Decade)}
	b, fields := limits.Clipped(b, now)
	done, _ := b.(state.LaunchDone)
	if done.Instance != "i" || done.Rate.String() != "1000000" || !done.From.Equal(now) || !slices.Equal(fields, []string{"rate", "from"}) {
		t.Errorf("%+v, cut down are %v", done, fields)
	}
	b, _ = limits.Clipped[state.Body](state.InventorySeen{Running: []state.Rented{{Rate: -1, From: now}}}, now)
	if seen, _ := b.(state.InventorySeen); seen.Running[0].Rate != 0 || limits.Numbers(b, now) != nil {
		t.Errorf("%+v", b)
	}
}

// Every number in an event has a bound.
func TestEvents_EveryNumberHasABound(t *testing.T) {
	t.Parallel()
	for _, kind := range state.Kinds {
		var e state.Event
		text := fmt.Sprintf(`{"kind":%q,"at":"2026-01-01T00:00:00Z","schema":1,"tenant":"t","body":{}}`, kind)
		must.Do(t, json.Unmarshal([]byte(text), &e))
		for _, missing := range limits.Unbounded(reflect.TypeOf(e.Body)) {
			t.Errorf("%s: %s has no bound: add it to kinds", kind, missing)
		}
	}
	if list := limits.Unbounded(reflect.TypeFor[struct {
		Depth int `json:"depth"`
	}]()); len(list) != 1 || !strings.HasSuffix(list[0], "depth") {
		t.Errorf("a number that nobody knows is not found: %v", list)
	}
}

func BenchmarkNumbers(b *testing.B) {
	body := state.JobSubmitted{Terms: state.Terms{Deadline: time.Now(), Work: time.Hour, Steps: 1000}}
	for b.Loop() {
		must.Do(b, limits.Numbers(body, time.Now()))
	}
}
