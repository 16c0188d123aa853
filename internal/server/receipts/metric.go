package receipts

import (
	"math"
	"net/http"

	"scrimp/internal/control/inbox"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/policy"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/reports"
	"scrimp/internal/view"
	"scrimp/internal/wire/api"
)

// metricReader reads a metric of a job from the log: every value of the metric that judges the job, or else the
// remaining samples of its loss.
type metricReader struct {
	name     string
	metric   policy.Metric
	attempts map[string]int64        // newest message read, by attempt
	now      map[string]inbox.Latest // latest values, by attempt
	order    []string
	values   []said
}

// said is a value with the attempt that reported it.
type said struct {
	policy.Value
	attempt string
}

// newMetricReader must run before the log is read: values that are not in an event yet may be in one by then.
func newMetricReader(b *Service, j *core.Job) *metricReader {
	r := &metricReader{name: j.Terms().Metric.Name, metric: j.Terms().Metric, attempts: map[string]int64{},
		now: map[string]inbox.Latest{}}
	if r.name == "" {
		r.name, r.metric = "loss", policy.Metric{Name: "loss"}
	}
	for _, a := range j.Attempts() {
		r.attempts[a.ID()] = 0
		r.order = append(r.order, a.ID())
		if l, ok := b.Control.Latest(a.ID()); ok && j.Terms().Metric.Name != "" {
			r.now[a.ID()] = l
		}
	}
	return r
}

// event reads an event of the log. It counts a repeated message once.
func (r *metricReader) event(e core.Event) {
	b, ok := e.Body.(core.Progressed)
	if !ok {
		return
	}
	last, ours := r.attempts[b.Attempt]
	if !ours || b.Message > 0 && b.Message <= last {
		return
	}
	r.attempts[b.Attempt] = max(last, b.Message)
	list := b.Values
	if len(list) == 0 {
		list = r.metric.Of(e.At, b.Step, b.Epoch, b.Metrics, b.Broken)
	}
	r.add(b.Attempt, list)
}

func (r *metricReader) add(attempt string, list policy.Values) {
	for _, v := range list {
		r.values = append(r.values, said{v, attempt})
	}
}

// all returns the values read, and those that are not in an event yet.
func (r *metricReader) all() []said {
	for _, attempt := range r.order {
		if l, ok := r.now[attempt]; ok {
			r.add(attempt, l.Values(r.attempts[attempt], math.MaxInt64))
		}
	}
	return r.values
}

// Metric lists the values that the job's programs reported for the metric that judges it.
func (b *Service) Metric(w http.ResponseWriter, r *http.Request) {
	of, known := b.known(w, r)
	if !known {
		return
	}
	var reader *metricReader
	b.Control.Job(of.ID, func(m *core.Machine, j *core.Job) { reader, of = newMetricReader(b, j), jobOf(m, j) })
	if reader == nil {
		reply.Problem(w, http.StatusServiceUnavailable, "cannot read the job", "try again", nil)
		return
	}
	err := b.events(r.Context(), of, view.Progress, func(_ uint64, e core.Event, _ []core.Fact) error {
		reader.event(e)
		return nil
	})
	if err != nil {
		reports.Unread(w, "cannot read the log", err)
		return
	}
	clock := b.Control.Clock()
	answered := api.MetricValues{Metric: reader.name, Values: []api.MetricValue{}}
	for _, v := range reader.all() {
		one := api.MetricValue{Attempt: v.attempt, At: clock.ToWall(v.At), MarketAt: v.At, Step: v.Step, Epoch: v.Epoch}
		if !v.Broken {
			one.Value = new(v.Value.Value)
		}
		answered.Values = append(answered.Values, one)
	}
	reply.JSON(w, answered)
}
