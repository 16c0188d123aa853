package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"scrimp/internal/core"
)

// metrics are what Prometheus reads. Amounts are dollars as numbers: for
// pictures and alarms; the ledger is the account.
type metrics struct {
	reg      *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	output   prometheus.Counter
}

func newMetrics() *metrics {
	m := &metrics{
		reg: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "scrimp_http_requests_total",
			Help: "Requests that were answered, by route and status."}, []string{"route", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "scrimp_http_request_duration_seconds",
			Help:    "Wall time of a request, streams left out.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}}, []string{"route"}),
		output: prometheus.NewCounter(prometheus.CounterOpts{Name: "scrimp_output_bytes_total",
			Help: "Output of programs that agents have sent."}),
	}
	m.reg.MustRegister(m.requests, m.seconds, m.output, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// served counts a request.
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

var (
	descJobs  = prometheus.NewDesc("scrimp_jobs", "Jobs by state.", []string{"state"}, nil)
	descQuota = prometheus.NewDesc("scrimp_jobs_over_quota", "Jobs that wait for a quota, by limit.",
		[]string{"limit"}, nil)
	descSpent = prometheus.NewDesc("scrimp_spent_dollars",
		"What the jobs of a team have spent so far, running machines included.", []string{"team", "project"}, nil)
	descBurn = prometheus.NewDesc("scrimp_burn_dollars_per_hour", "Price of an hour of the machines that run now.",
		[]string{"team", "project"}, nil)
	descMachines = prometheus.NewDesc("scrimp_machines", "Machines that are held, by what is sold.",
		[]string{"capacity"}, nil)
	descTaken = prometheus.NewDesc("scrimp_interruptions_total",
		"Machines that were taken from running jobs.", nil, nil)
	descEvents = prometheus.NewDesc("scrimp_events_total", "Events of the log.", nil, nil)
	descLeader = prometheus.NewDesc("scrimp_leader", "1 while this server leads.", nil, nil)
	descBuild  = prometheus.NewDesc("scrimp_build_info", "The release that answers.", []string{"version"}, nil)
)

// Describe implements prometheus.Collector.
func (s *Server) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descJobs, descQuota, descSpent, descBurn, descMachines, descTaken, descEvents,
		descLeader, descBuild} {
		ch <- d
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
	if s.control.Full() != nil { // who watches must learn of it
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
	// those that are 0 are drawn too
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
	leads := 0.0
	if s.store.Leads() {
		leads = 1
	}
	gauge(descLeader, leads)
	gauge(descBuild, 1, s.opts.Version)
}

func (s *Server) getMetrics(w http.ResponseWriter, r *http.Request) {
	promhttp.HandlerFor(s.metrics.reg, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}
