// Package metrics counts what a server answers, and shows Prometheus this and the state of the jobs and machines.
package metrics

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"scrimp/client"
	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/wire/telemetry"
)

// Metrics holds the Prometheus metrics. Amounts are dollars as floats, for graphs and alerts; the exact amounts
// are in the ledger.
type Metrics struct {
	reg      *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	output   prometheus.Counter
	refused  *prometheus.CounterVec
}

// A Metric describes one metric of /metrics, for the reference.
type Metric struct {
	Name, Kind, Help string
	Labels           []string
}

// List returns the metrics of scrimp itself.
func List() []Metric { return append(slices.Clone(counted), collected...) }

// The server updates counted metrics on each request, and reads collected ones from the state on each scrape.
var (
	counted = []Metric{
		{"scrimp_http_requests_total", "counter", "Requests that were answered, by route and status.",
			[]string{"route", "code"}},
		{"scrimp_http_request_duration_seconds", "histogram", "Duration of a request, without streams.",
			[]string{"route"}},
		{"scrimp_output_bytes_total", "counter", "Output of programs that agents have sent.", nil},
	}
	collected []Metric
)

// collect registers a metric that Collect sends.
func collect(kind, name, help string, labels ...string) *prometheus.Desc {
	collected = append(collected, Metric{name, kind, help, labels})
	return prometheus.NewDesc(name, help, labels, nil)
}

// New returns metrics that count from zero.
func New() *Metrics {
	m := &Metrics{
		reg: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: counted[0].Name, Help: counted[0].Help},
			counted[0].Labels),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: counted[1].Name,
			Help:    counted[1].Help,
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}}, counted[1].Labels),
		output: prometheus.NewCounter(prometheus.CounterOpts{Name: counted[2].Name, Help: counted[2].Help}),
	}
	m.refused = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "scrimp_refused_requests_total",
		Help: "Requests of users that were refused or failed, by user; the audit trail has the first of a kind in an hour."},
		[]string{"user"})
	m.reg.MustRegister(m.requests, m.seconds, m.output, m.refused, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Served counts a request of a route, and its duration unless it is a stream.
func (m *Metrics) Served(route string, stream bool, code int, took time.Duration) {
	if m == nil {
		return
	}
	m.requests.WithLabelValues(route, strconv.Itoa(code)).Inc()
	if !stream {
		m.seconds.WithLabelValues(route).Observe(took.Seconds())
	}
}

// Printed counts output of programs, in bytes.
func (m *Metrics) Printed(bytes int) { m.output.Add(float64(bytes)) }

// RefusedBy counts a request of a user that the server refused or failed.
func (m *Metrics) RefusedBy(user string) { m.refused.WithLabelValues(user).Inc() }

var (
	descJobs  = collect("gauge", "scrimp_jobs", "Jobs by state.", "state")
	descQuota = collect("gauge", "scrimp_jobs_over_quota", "Jobs that wait for a quota, by limit.", "limit")
	descSpent = collect("gauge", "scrimp_spent_dollars",
		"What the jobs of a team have spent so far, running machines included.", "team", "project")
	descBurn = collect("gauge", "scrimp_burn_dollars_per_hour", "Price of an hour of the machines that run now.",
		"team", "project")
	descMachines = collect("gauge", "scrimp_machines", "Machines that are rented now, by capacity.", "capacity")
	descTaken    = collect("counter", "scrimp_interruptions_total", "Interruptions of running jobs, by machine.")
	descEvents   = collect("counter", "scrimp_events_total", "Events of the log.")
	descDrawn    = collect("counter", "scrimp_watch_encodings_total",
		"Jobs that were encoded for those who watch them, once for all of them.")
	descAnomalies = collect("gauge", "scrimp_anomalies",
		"Anomalies that go on, without snoozed, dismissed and planned ones. Absent until the server has looked for them.",
		"team", "kind")
	descAtStake = collect("gauge", "scrimp_anomalies_at_stake",
		"What the anomalies that go on have cost beyond the usual so far, an estimate, in their currency.", "team", "kind",
		"currency")
	descLeader = collect("gauge", "scrimp_leader", "1 while this server leads.")
	descBuild  = collect("gauge", "scrimp_build_info", "The release that answers.", "version")
)

// mostMeasured bounds the running jobs with series of their own, so a queue of a million jobs makes no more
// series.
const mostMeasured = 200

// descMeasured holds the descriptors by telemetry metric. Single cores have no series.
var (
	descMeasured = measuredDescs()
	descLeftOut  = collect("gauge", "scrimp_job_telemetry_left_out", "Running jobs beyond those that have values below.")
)

func measuredDescs() (list [telemetry.Metrics]*prometheus.Desc) {
	for m := range telemetry.Metrics {
		if m != telemetry.Core {
			list[m] = collect("gauge", "scrimp_job_"+m.String(), m.Kind().Help+" Of a running job, "+
				map[bool]string{true: "summed", false: "as a mean"}[m.AddsUp()]+" over its machines.", "job", "team", "project")
		}
	}
	return list
}

// State is what a scrape reads of a server.
type State struct {
	Control *control.Control
	Leads   func() bool
	Drawn   func() uint64 // encodings of jobs for those who watch them
	// Running returns the telemetry of the running jobs, in the order of their attempts' start.
	Running func() []client.JobTelemetry
	// Anomalies returns the anomalies that go on; false: nobody has looked for them yet.
	Anomalies func() ([]client.OpenAnomalies, bool)
	Version   string
}

// Add adds the metrics of a state, which each scrape reads.
func (m *Metrics) Add(s State) { m.reg.MustRegister(s) }

// Describe implements prometheus.Collector.
func (s State) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descJobs, descQuota, descSpent, descBurn, descMachines, descTaken, descEvents,
		descDrawn, descAnomalies, descAtStake, descLeader, descBuild, descLeftOut} {
		ch <- d
	}
	for m, d := range descMeasured {
		if telemetry.Metric(m) != telemetry.Core {
			ch <- d
		}
	}
}

// Collect implements prometheus.Collector.
func (s State) Collect(ch chan<- prometheus.Metric) {
	type owner struct{ team, project string }
	states, machines := map[string]int{}, map[string]int{}
	spent, burn := map[owner]float64{}, map[owner]float64{}
	taken, events := 0, uint64(0)
	var quotas map[string]int
	now := s.Control.Now()
	readState := func(f func(*core.Machine)) { s.Control.Read(f) }
	if s.Control.Full() != nil { // monitoring must see it even while no event can be committed
		readState = s.Control.ReadUncommitted
	}
	readState(func(m *core.Machine) {
		events, quotas = m.Seq(), m.Waiting()
		for _, a := range m.Accounts(now) {
			for state, n := range a.States {
				states[string(state)] += n
			}
			taken += a.Taken
			spent[owner{a.Team, a.Project}] = a.Spent.Float()
		}
		for _, a := range m.Live() {
			machines[string(a.Capacity())]++
			j, _ := m.Job(a.Job())
			burn[owner{j.Terms().Owner.Team, j.Terms().Owner.Project}] += a.Rate().Until(time.Hour).Float()
		}
	})
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	// send states with a count of 0, too
	for _, state := range []core.State{core.Held, core.Queued, core.Running, core.Paused, core.Succeeded, core.Failed} {
		states[string(state)] += 0
	}
	for state, n := range states {
		gauge(descJobs, float64(n), state)
	}
	for limit, n := range quotas {
		gauge(descQuota, float64(n), limit)
	}
	for o, v := range spent {
		gauge(descSpent, v, o.team, o.project)
	}
	for o, v := range burn {
		gauge(descBurn, v, o.team, o.project)
	}
	for capacity, n := range machines {
		gauge(descMachines, float64(n), capacity)
	}
	ch <- prometheus.MustNewConstMetric(descTaken, prometheus.CounterValue, float64(taken))
	ch <- prometheus.MustNewConstMetric(descEvents, prometheus.CounterValue, float64(events))
	ch <- prometheus.MustNewConstMetric(descDrawn, prometheus.CounterValue, float64(s.Drawn()))
	leads := 0.0
	if s.Leads() {
		leads = 1
	}
	gauge(descLeader, leads)
	gauge(descBuild, 1, s.Version)
	s.collectAnomalies(gauge)
	s.collectMeasured(gauge)
}

// collectAnomalies sends the anomalies that go on.
func (s State) collectAnomalies(gauge func(d *prometheus.Desc, v float64, labels ...string)) {
	list, known := s.Anomalies()
	if !known {
		return
	}
	counts := map[[2]string]int{}
	for _, o := range list {
		counts[[2]string{o.Team, o.Kind}] += o.Count
		gauge(descAtStake, o.AtStake.Float(), o.Team, o.Kind, string(o.Currency))
	}
	for k, n := range counts {
		gauge(descAnomalies, float64(n), k[0], k[1])
	}
}

// collectMeasured sends the telemetry of the running jobs that started first.
func (s State) collectMeasured(gauge func(d *prometheus.Desc, v float64, labels ...string)) {
	jobs := s.Running()
	shown := jobs[:min(len(jobs), mostMeasured)]
	gauge(descLeftOut, float64(len(jobs)-len(shown)))
	for _, j := range shown {
		for m, d := range descMeasured {
			if v, known := j.Now[telemetry.Metric(m).String()]; known && d != nil {
				gauge(d, v, j.Job, j.Team, j.Project)
			}
		}
	}
}

// Get answers a scrape.
func (m *Metrics) Get(w http.ResponseWriter, r *http.Request) {
	promhttp.HandlerFor(m.reg, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}
