package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/wire/api"
)

// Five epochs are five values for every reader: those in the log and those not yet in it, in order. The agent knows
// which metric it is.
func TestMetric_ShowsEveryValue(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &rents{}, nil)
	w.must("POST", "/v1/jobs", json.RawMessage(`{"spec":{"name":"a","command":"true","metric":{"name":"acc","goal":"maximize"}}}`), nil)
	attempt := ""
	w.until(func(m *core.Machine) bool {
		j, _ := m.Job("a")
		if a := j.Attempt(); a != nil && a.Live() && a.Task() == core.Assigned {
			attempt = a.ID()
		}
		return attempt != ""
	})
	as := w.take(attempt)
	if as.Metric != "acc" {
		t.Fatalf("the assignment is %+v", as)
	}
	now := time.Now().UTC()
	report := func(first int64, messages ...api.Message) (o api.Orders) {
		rec, p := w.ask("POST", "/v1/agent/report", as.AttemptToken, api.Report{Attempt: attempt, Now: now, First: first, Messages: messages})
		if err := json.Unmarshal(rec.Body.Bytes(), &o); err != nil || rec.Code >= 300 {
			t.Fatalf("%v %+v", err, p)
		}
		return o
	}
	epochs := func(from, to int) *api.Step {
		s := &api.Step{Step: int64(to), Epoch: float64(to), Metrics: map[string]float64{"acc": float64(to) / 16}}
		for i := range 60 {
			s.Metrics[fmt.Sprintf("<b>m%02d", i)] = float64(to * i)
		}
		for n := from; n <= to; n++ {
			s.Values = append(s.Values, api.Value{At: now, Step: int64(n), Epoch: float64(n), Value: float64(n) / 16})
		}
		return s
	}
	report(1, api.Message{Seq: 1, At: now, Started: &api.Started{}}, api.Message{Seq: 2, At: now, Step: epochs(1, 3)},
		api.Message{Seq: 3, At: now, Saved: &api.Saved{Manifest: "m"}})
	if o := report(4, api.Message{Seq: 4, At: now, Step: epochs(4, 5)}); o.Heard != 4 || o.Ack != 3 {
		t.Errorf("what is no event yet: %d heard, %d durable, want 4 and 3", o.Heard, o.Ack)
	}
	var got api.MetricValues
	w.must("GET", "/v1/jobs/a/metric", nil, &got)
	var list []string
	for _, v := range got.Values {
		list = append(list, fmt.Sprintf("%s %d %g %g", v.Attempt, v.Step, v.Epoch, *v.Value))
	}
	want := []string{"a.1 1 1 0.0625", "a.1 2 2 0.125", "a.1 3 3 0.1875", "a.1 4 4 0.25", "a.1 5 5 0.3125"}
	if got.Metric != "acc" || !slices.Equal(list, want) {
		t.Errorf("of %q it shows %v, want %v", got.Metric, list, want)
	}
	var bill receipt.Receipt
	w.must("GET", "/v1/jobs/a/receipt", nil, &bill)
	if len(bill.Loss) != 5 || bill.LossName != "acc" {
		t.Errorf("the receipt draws %v of %s", bill.Loss, bill.LossName)
	}
	var curves client.Curves
	w.must("GET", "/v1/jobs/a/curves", nil, &curves)
	if len(curves.Curves) != 50 || curves.More != 11 || curves.Curves[0].Metric != "acc" || !curves.Curves[0].Judges ||
		len(curves.Curves[0].Points) != 5 {
		t.Fatalf("61 metrics have %d curves and %d more, first %+v", len(curves.Curves), curves.More, curves.Curves[0])
	}
	for i, c := range curves.Curves[1:] { // the log has the report at step 3, and the server has that at step 5
		var at []string
		for _, p := range c.Points {
			at = append(at, fmt.Sprint(p.Step, p.Value))
		}
		if c.Metric != fmt.Sprintf("<b>m%02d", i) || !slices.Equal(at, []string{fmt.Sprint(3, 3*i), fmt.Sprint(5, 5*i)}) {
			t.Errorf("curve %d is %s: %v", i, c.Metric, at)
		}
	}
}
