package server

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"scrimp/internal/decide/core"
	"scrimp/internal/wire/telemetry"
)

// metrics holds the Prometheus metrics. Amounts are dollars as floats, for graphs and alerts; the exact amounts
// are in the ledger.
type metrics struct {
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

// Metrics returns the metrics of scrimp itself.
func Metrics() []Metric { return append(slices.Clone(counted), collected...) }

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

func newMetrics() *metrics {
	m := &metrics{
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

// served counts a request and its duration.
func (m *metrics) served(t route, code int, took time.Duration) {
	if m == nil {
		return
	}
	name := t.Method + " " + t.Path
	m.requests.WithLabelValues(name, strconv.Itoa(code)).Inc()
	if t.Stream == "" {
		m.seconds.WithLabelValues(name).Observe(took.Seconds())
	}
}

// refusedBy counts a request of a user that the server refused or failed.
func (m *metrics) refusedBy(user string) { m.refused.WithLabelValues(user).Inc() }

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

// Describe implements prometheus.Collector.
func (s *Server) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descJobs, descQuota, descSpent, descBurn, descMachines, descTaken, descEvents,
		descDrawn, descLeader, descBuild, descLeftOut} {
		ch <- d
	}
	for m, d := range descMeasured {
		if telemetry.Metric(m) != telemetry.Core {
			ch <- d
		}
	}
}

// Collect implements prometheus.Collector.
func (s *Server) Collect(ch chan<- prometheus.Metric) {
	type owner struct{ team, project string }
	states, machines := map[string]int{}, map[string]int{}
	spent, burn := map[owner]float64{}, map[owner]float64{}
	taken, events := 0, uint64(0)
	var quotas map[string]int
	now := s.control.Now()
	readState := func(f func(*core.Machine)) { s.control.Read(f) }
	if s.control.Full() != nil { // monitoring must see it even while no event can be committed
		readState = s.control.ReadUncommitted
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
	ch <- prometheus.MustNewConstMetric(descDrawn, prometheus.CounterValue, float64(s.jobs.Drawn()))
	leads := 0.0
	if s.store.Leads() {
		leads = 1
	}
	gauge(descLeader, leads)
	gauge(descBuild, 1, s.opts.Version)
	s.collectMeasured(gauge)
}

// collectMeasured sends the telemetry of the running jobs that started first.
func (s *Server) collectMeasured(gauge func(d *prometheus.Desc, v float64, labels ...string)) {
	jobs := s.telemetry.Running()
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

func (s *Server) getMetrics(w http.ResponseWriter, r *http.Request) {
	promhttp.HandlerFor(s.metrics.reg, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}
