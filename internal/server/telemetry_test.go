package server

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/telemetry"
	"scrimp/internal/store/logfile"
	"scrimp/internal/wire/api"
	series "scrimp/internal/wire/telemetry"
)

// measuredAt returns ten seconds of telemetry with two GPUs; the second does not report its power.
func measuredAt(start int64, gpu, cpu, iowait float64) api.Measurement {
	half, watts := gpu/2, 300.0
	return api.Measurement{Start: start, Covered: 10, Values: map[string][]*float64{
		"gpu_utilization_ratio": {&gpu, &half}, "gpu_power_watts": {&watts, nil}, "cpu_utilization_ratio": {&cpu},
		"cpu_iowait_ratio": {&iowait}, "disk_read_bytes_per_second": {new(float64(1 << 20))},
	}}
}

var twoGPUs = &api.MeasuredMachine{Cores: 8, Memory: 64 << 30, Driver: "550.54.15", GPUs: []api.MeasuredGPU{
	{Index: 0, Name: "NVIDIA L4", Memory: 23 << 30, Power: 72}, {Index: 1, Name: "NVIDIA L4"}}}

// reports sends telemetry, and returns the time up to which the server wants no more of it.
func (w *world) reports(attempt string, node int, list ...api.Measurement) int64 {
	w.t.Helper()
	rec, p := w.ask("POST", "/v1/agent/report", w.rankToken(attempt, node), api.Report{Attempt: attempt, Node: node,
		Now: time.Now(), Telemetry: &api.Measurements{Head: twoGPUs, Buckets: list}})
	var o api.Orders
	if err := json.Unmarshal(rec.Body.Bytes(), &o); rec.Code != 200 || err != nil {
		w.t.Fatalf("%d %+v %v", rec.Code, p, err)
	}
	return o.Telemetry
}

func (w *world) measured(job, query string) (t client.Telemetry) {
	w.t.Helper()
	w.must("GET", "/v1/jobs/"+job+"/telemetry"+query, nil, &t)
	return t
}

func tenSeconds(before time.Duration) int64 { return time.Now().Add(-before).Unix() / 10 * 10 }

// The API, the receipt and Prometheus show the means and peaks of what the agent sent, computed here in a separate
// way.
func TestTelemetry_IsStoredAndShown(t *testing.T) {
	t.Parallel()
	w, attempt := rentedWorld(t, nil)
	rng := rand.New(rand.NewPCG(1, 2))
	begin, sum, peak, last := tenSeconds(50*time.Minute), 0.0, 0.0, 0.0
	const n = 295
	for i := range n {
		v := math.Round(rng.Float64()*1000) / 1000
		if got, want := w.reports(attempt, 0, measuredAt(begin+int64(10*i), v, 0.3, 0.4)), begin+int64(10*i)+10; got != want {
			t.Fatalf("after bucket %d the server has what was up to %d, want %d", i, got, want)
		}
		sum, peak, last = sum+v+v/2, max(peak, v), v
	}
	w.reports(attempt, 0, measuredAt(begin, 1, 1, 1), measuredAt(begin+10, 1, 1, 1)) // again: the server has them
	v := w.measured("a", "?last=1m")
	gpu := v.Figures["gpu_utilization_ratio"]
	near := func(what string, is, want float64) {
		t.Helper()
		if math.Abs(is-want) > 0.001*max(1, math.Abs(want)) {
			t.Errorf("%s is %v, want %v", what, is, want)
		}
	}
	near("the mean", gpu.Average, sum/(2*n))
	near("the peak", gpu.Peak, peak)
	near("what it is now", *gpu.Last, last*0.75)
	near("the seconds", v.Seconds, 10*n)
	near("what was read", *v.Figures["disk_read_bytes_per_second"].Total, 10*n*(1<<20))
	node := v.Nodes[0]
	if !v.Live || v.State != "running" || v.Attempt != attempt || len(v.Nodes) != 1 || *node.Cores != 8 || len(node.GPUs) != 2 ||
		*node.GPUs[0].Power != 72 || node.GPUs[1].Memory != nil || node.Driver != "550.54.15" {
		t.Errorf("%+v", v)
	}
	if len(node.Buckets) != 6 || node.Buckets[5].Mean["gpu_power_watts"][1] != nil ||
		*node.Buckets[5].Mean["gpu_power_watts"][0] != 300 || len(w.measured("a", "").Nodes[0].Buckets) != n {
		t.Errorf("%d buckets in the last minute: %+v", len(node.Buckets), node.Buckets)
	}
	if want := fmt.Sprintf("GPU %.0f %% used: data loading waits (I/O wait 40 %%)", 100*sum/(2*n)); v.Hint != want {
		t.Errorf("the hint is %q, want %q", v.Hint, want)
	}

	var r client.Receipt
	w.must("GET", "/v1/jobs/a/receipt", nil, &r)
	near("the mean on the receipt", r.Telemetry.Figures["gpu_utilization_ratio"].Average, sum/(2*n))
	if r.Telemetry.Hint != v.Hint || r.Telemetry.Machines != 1 || r.Telemetry.GPUs != 2 || len(r.Telemetry.Points) < 90 {
		t.Errorf("%+v", r.Telemetry)
	}
	w.reports(attempt, 0, measuredAt(tenSeconds(10*time.Second), 1, 1, 0))
	rec, _ := w.ask("GET", "/metrics", auth.OwnerName, nil)
	for _, line := range []string{`scrimp_job_gpu_utilization_ratio{job="a",project="",team=""} 0.75`,
		`scrimp_job_gpu_power_watts{job="a",project="",team=""} 300`,
		`scrimp_job_disk_read_bytes_per_second{job="a",project="",team=""} 1.048576e+06`, `scrimp_job_telemetry_left_out 0`} {
		if !strings.Contains(rec.Body.String(), "\n"+line+"\n") {
			t.Errorf("no %q", line)
		}
	}
	if strings.Contains(rec.Body.String(), "scrimp_job_gpu_temperature_celsius{") {
		t.Error("a temperature that nobody measured has a value")
	}
	var list []client.JobTelemetry
	w.must("GET", "/v1/telemetry", nil, &list)
	if len(list) != 1 || list[0].GPUs != 2 || list[0].Measured != 1 || list[0].Now["gpu_utilization_ratio"] != 0.75 {
		t.Errorf("%+v", list)
	}
}

// Telemetry survives the server and the attempt, is removed with the output of an old job, and counts towards its
// team's disk.
func TestTelemetry_SurvivesARestartAndIsRemovedWithOutput(t *testing.T) {
	t.Parallel()
	w, attempt := rentedWorld(t, nil)
	begin := tenSeconds(5 * time.Minute)
	w.reports(attempt, 0, measuredAt(begin, 0.5, 0.5, 0))
	again := &telemetry.Service{Control: w.control, Store: w.store, Room: w.disk, Errors: w.opts.Log, Quota: w.quota.Bytes}
	take := func(list ...api.Measurement) int64 {
		return again.Take(t.Context(), "a", api.Report{Attempt: attempt, Now: time.Now(),
			Telemetry: &api.Measurements{Head: twoGPUs, Buckets: list}})
	}
	if upTo := take(measuredAt(begin, 1, 1, 1), measuredAt(begin+10, 1, 0.5, 0)); upTo != begin+20 {
		t.Errorf("a server that was started again has what was up to %d, want %d", upTo, begin+20)
	}
	if got := w.measured("a", "").Figures["gpu_utilization_ratio"].Average; got != (0.5+0.25+1+0.5)/4 {
		t.Errorf("the mean is %v", got)
	}
	if err := w.store.AppendSeries(t.Context(), attempt, []byte{200, 1, 'B', 7}); err != nil { // killed during a write
		t.Fatal(err)
	}
	again = &telemetry.Service{Control: w.control, Store: w.store, Room: w.disk, Errors: w.opts.Log, Quota: w.quota.Bytes}
	take(measuredAt(begin+20, 1, 0.5, 0))
	if n := len(w.measured("a", "").Nodes[0].Buckets); n != 3 {
		t.Errorf("after a torn write there are %d buckets, want 3", n)
	}
	before, _ := w.store.AllSeries(t.Context())
	w.must("POST", "/v1/jobs/a/end", api.End{}, nil)
	w.until(func(m *core.Machine) bool { _, live := m.Attempt(attempt); return !live })
	if v := w.measured("a", ""); v.Live || v.State != "cancelled" || v.Seconds != 30 || v.Attempt != attempt {
		t.Errorf("of the attempt that is over: %+v", v)
	}
	if before[attempt] == 0 {
		t.Errorf("measurements take %v", before)
	}
	if err := w.store.DropLog(t.Context(), attempt); err != nil {
		t.Fatal(err)
	}
	if left, _ := w.store.AllSeries(t.Context()); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if v := w.measured("a", ""); v.Seconds != 0 || len(v.Attempts) != 0 {
		t.Errorf("%+v", v)
	}
}

// A job's telemetry is visible to its team only. The server drops impossible telemetry but accepts the rest of the
// report.
func TestTelemetry_DropsGarbageAndHidesItFromOthers(t *testing.T) {
	t.Parallel()
	w, attempt := rentedWorld(t, nil)
	at := tenSeconds(time.Minute)
	many := make([]*float64, 17)
	for name, b := range map[string]api.Measurement{
		"a share above one":    measuredAt(at, 1.5, 0, 0),
		"a negative share":     measuredAt(at, -1, 0, 0),
		"a time to come":       measuredAt(at+3600, 0.5, 0, 0),
		"a time of last year":  measuredAt(at-300*86400, 0.5, 0, 0),
		"a time before all":    measuredAt(-10, 0.5, 0, 0),
		"a time after all":     measuredAt(math.MaxInt64-7, 0.5, 0, 0),
		"an odd time":          measuredAt(at+1, 0.5, 0, 0),
		"nothing covered":      {Start: at, Values: map[string][]*float64{"cpu_utilization_ratio": {new(0.5)}}},
		"more GPUs than there": {Start: at, Covered: 10, Values: map[string][]*float64{"gpu_utilization_ratio": many}},
	} {
		if upTo := w.reports(attempt, 0, b); upTo < b.Start && b.Start < math.MaxInt64-100 {
			t.Errorf("%s comes again: %d", name, upTo)
		}
		if v := w.measured("a", ""); v.Seconds != 0 {
			t.Fatalf("%s is kept: %+v", name, v)
		}
	}
	unknown := measuredAt(at, 0.5, 0, 0)
	unknown.Values["of_a_later_release"] = []*float64{new(7.0)}
	w.reports(attempt, 0, unknown)
	if v := w.measured("a", ""); v.Seconds != 10 || len(v.Figures) != 5 {
		t.Errorf("%+v", v.Figures)
	}
	for _, body := range []string{
		`{"attempt":"` + attempt + `","telemetry":{"buckets":[` + strings.Repeat(`{"start":1},`, 60) + `{"start":1}]}}`,
		`{"attempt":"` + attempt + `","telemetry":{"buckets":[{"values":{"x":[` + strings.Repeat("1,", 256) + `1]}}]}}`,
	} {
		if rec, p := w.ask("POST", "/v1/agent/report", w.rankToken(attempt, 0), body); rec.Code != http.StatusUnprocessableEntity || p.Fix == "" {
			t.Errorf("%.80s: %d %+v", body, rec.Code, p)
		}
	}
	w.must("PUT", "/v1/teams/other", api.SetTeam{}, nil)
	bob := w.user("bob", identity.Grant{Team: "other", Role: identity.Admin})
	if rec, _ := w.ask("GET", "/v1/jobs/a/telemetry", bob, nil); rec.Code != http.StatusNotFound {
		t.Errorf("another team sees %s", rec.Body)
	}
	if rec, _ := w.ask("GET", "/v1/telemetry", bob, nil); strings.TrimSpace(rec.Body.String()) != "[]" {
		t.Errorf("another team sees %s", rec.Body)
	}
	for _, query := range []string{"?last=x", "?last=-5m", "?attempt=2", "?attempt=0", "?attempt=x"} {
		if rec, p := w.ask("GET", "/v1/jobs/a/telemetry"+query, auth.OwnerName, nil); rec.Code != http.StatusBadRequest || p.Fix == "" {
			t.Errorf("%s: %d %+v", query, rec.Code, p)
		}
	}
}

// A series of weeks is compacted as it grows, and its figures stay.
func TestTelemetry_IsCompacted(t *testing.T) {
	t.Parallel()
	w, attempt := rentedWorld(t, nil)
	service := &telemetry.Service{Control: w.control, Store: w.store, Room: w.disk, Errors: w.opts.Log, Quota: w.quota.Bytes}
	begin, sum, n := tenSeconds(25*time.Hour), 0.0, 0
	var list []api.Measurement
	for at := begin; at < tenSeconds(0); at += 10 {
		v := float64(n%7) / 10
		list, sum, n = append(list, measuredAt(at, v, 0.3, 0)), sum+v, n+1
		if len(list) == 60 {
			service.Take(t.Context(), "a", api.Report{Attempt: attempt, Node: 1, Now: time.Now(),
				Telemetry: &api.Measurements{Head: twoGPUs, Buckets: list}})
			list = nil
		}
	}
	text, err := w.store.Series(t.Context(), logfile.Name(attempt, 1))
	_, kept, wrong := series.Decode(text)
	if err != nil || wrong != nil || len(text) > 64<<10 || len(kept) > 1400 {
		t.Fatalf("a day takes %d bytes in %d buckets: %v, %v", len(text), len(kept), err, wrong)
	}
	var s series.Summary
	s.Add(kept)
	if got, want := s.Of[series.GPU].Average, 0.75*sum/float64(n); math.Abs(got-want) > 0.002 {
		t.Errorf("the mean is %v, want %v", got, want)
	}
}

// The receipt of a job without telemetry says nothing about its machines.
func TestReceipt_WithoutTelemetryOmitsIt(t *testing.T) {
	t.Parallel()
	w, _ := rentedWorld(t, nil)
	var r receipt.Receipt
	w.must("GET", "/v1/jobs/a/receipt", nil, &r)
	if r.Telemetry != nil || strings.Contains(r.Text(80), "CPU") {
		t.Errorf("%+v", r.Telemetry)
	}
}
