package limits_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/limits"
)

// Each request that exceeds a bound is refused with the field and the bound.
func TestCheck_NamesTheFieldAboveItsBound(t *testing.T) {
	t.Parallel()
	many := func(n int, item string) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }
	named := func(n int) (all string) {
		for i := range n {
			all += fmt.Sprintf(`"m%d":1,`, i)
		}
		return strings.TrimSuffix(all, ",")
	}
	report, submission := reflect.TypeFor[api.Report](), reflect.TypeFor[client.Submission]()
	for _, c := range []struct {
		of          reflect.Type
		text, field string
		most        int
	}{
		{report, `{"messages":[` + many(257, `{}`) + `]}`, "messages", 256},
		{report, `{"messages":[{},{"step":{"metrics":{` + named(101) + `}}}]}`, "messages[1].step.metrics", 100},
		{report, `{"messages":[{"step":{"metrics":{"` + strings.Repeat("m", 129) + `":1}}}]}`,
			"messages[0].step.metrics." + strings.Repeat("m", 20) + "…", 128},
		{report, `{"messages":[{"step":{"broken":["` + strings.Repeat("m", 129) + `"]}}]}`, "messages[0].step.broken[0]", 128},
		{report, `{"MESSAGES":[{"Refused":{"why":"` + strings.Repeat("w", 1001) + `"}}]}`, "messages[0].refused.why", 1000},
		{report, `{"trouble":"` + strings.Repeat("w", 3_900_000) + `"}`, "trouble", 1000},
		{report, `{"messages":[{"seq":1` + strings.Repeat("0", 64) + `}]}`, "messages[0].seq", 64},
		{reflect.TypeFor[client.Review](), `{"reason":"` + strings.Repeat("w", 1001) + `"}`, "reason", 1000},
		{reflect.TypeFor[[]client.Submission](), `[` + many(1001, `{}`) + `]`, "", 1000},
		{reflect.TypeFor[[]client.Submission](), `[{},{"key":"` + strings.Repeat("w", 256) + `"}]`, "[1].key", 255},
		{submission, `{"spec":"` + strings.Repeat("w", 1<<20) + `"}`, "spec", 1 << 20},
		{submission, `{"secrets":{` + named(201) + `}}`, "secrets", 200},
		{reflect.TypeFor[client.Resume](), `{"budget":"` + strings.Repeat("1", 65) + `"}`, "budget", 64},
		{reflect.TypeFor[client.SetBudget](), `{"limit":{"notify":"` + strings.Repeat("w", 2049) + `"}}`, "limit.notify", 2048},
		{reflect.TypeFor[client.NewToken](), `{"note":"` + strings.Repeat(`\u0041`, 34) + `"}`, "note", 200},
	} {
		var e *limits.ExcessError
		if err := limits.Check(c.of, []byte(c.text)); !errors.As(err, &e) || e.Field != c.field || e.Most != c.most {
			t.Errorf("%v %.60s: %v, want %s above %d", c.of, c.text, err, c.field, c.most)
		}
	}
	for of, text := range map[reflect.Type]string{report: `{"messages":[{"step":{"metrics":{` + named(100) + `}}}]}`,
		submission: `{"spec":{"name":"x","command":"` + strings.Repeat("x", 100_000) + `","tags":{` + named(2000) + `}}}`,
		// the decoder reports text that is not JSON or not such a request
		reflect.TypeFor[client.Review](): `{"reason":`, reflect.TypeFor[client.End](): `[[[[`} {
		if err := limits.Check(of, []byte(text)); err != nil {
			t.Errorf("%v %.60s: %v", of, text, err)
		}
	}
}

// Clip cuts any report of a program to one that the server accepts.
func TestClip_MakesAReportAcceptable(t *testing.T) {
	t.Parallel()
	metrics := map[string]float64{strings.Repeat("ü", 200): 1}
	for i := range 25_000 {
		metrics[fmt.Sprintf("metric-%05d", i)] = float64(i)
	}
	long := strings.Repeat("\x00\"€\xff", 1_000_000)
	m := api.Message{Seq: 1, At: time.Now(), Step: &api.Step{Metrics: metrics, Broken: []string{long}},
		Refused: &api.Refused{Manifest: long, Why: long}, Ended: &api.Ended{Error: long, Outputs: long}}
	limits.Clip(&m)
	text, err := json.Marshal(api.Report{Messages: []api.Message{m}})
	if err != nil || limits.Check(reflect.TypeFor[api.Report](), text) != nil {
		t.Errorf("%d bytes: %v, %v", len(text), err, limits.Check(reflect.TypeFor[api.Report](), text))
	}
	if len(metrics) != 25_001 || len(m.Step.Metrics) != 100 || m.Step.Metrics["metric-00099"] != 99 ||
		!strings.HasSuffix(m.Refused.Why, "…") {
		t.Errorf("%d metrics of %d, why %.20q", len(m.Step.Metrics), len(metrics), m.Refused.Why)
	}
	same := api.Message{Seq: 1, Ended: &api.Ended{Error: "no room"}, Step: &api.Step{Metrics: map[string]float64{"loss": 1}}}
	before, _ := json.Marshal(same)
	limits.Clip(&same)
	if after, _ := json.Marshal(same); !bytes.Equal(after, before) {
		t.Errorf("%s was cut to %s", before, after)
	}
}

// Check handles any text for every request type, and accepts every request below the bounds.
func FuzzCheck(f *testing.F) {
	for _, text := range []string{`{"messages":[{"step":{"metrics":{"loss":1}}}]}`, `[{"key":"k"}]`, `{`, `"\ud800"`, `{"a":{"b":[1e9]}}`,
		`{"Messages":[null,{}],"messages":7}`, "\xff"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := limits.Check(reflect.TypeFor[[]client.Submission](), text); err == nil {
			var list []client.Submission
			if json.Unmarshal(text, &list) == nil && len(list) > 1000 {
				t.Errorf("%d are let in", len(list))
			}
		}
		var r api.Report
		if limits.Check(reflect.TypeFor[api.Report](), text) != nil || json.Unmarshal(text, &r) != nil {
			return
		}
		for _, m := range r.Messages {
			if m.Step != nil && len(m.Step.Metrics) > 100 || m.Refused != nil && len(m.Refused.Why) > 3*1000 {
				t.Errorf("%.200s is let in", text)
			}
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	text, _ := json.Marshal(api.Report{Attempt: "job.1", Messages: []api.Message{{Seq: 1, At: time.Now(),
		Step: &api.Step{Step: 7, Metrics: map[string]float64{"loss": 1, "accuracy": 0.5}}}}})
	for b.Loop() {
		must.Do(b, limits.Check(reflect.TypeFor[api.Report](), text))
	}
}
