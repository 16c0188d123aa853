package receipts

import (
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"scrimp/client"
	"scrimp/internal/control/inbox"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/sample"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/reports"
	"scrimp/internal/view"
)

const (
	mostCurves = 50   // metrics in an answer
	mostNames  = 1000 // metrics that are read and counted; the others of a program get no curves
)

// curveReader reads all metrics of a job from the log.
type curveReader struct {
	judged *metricReader
	judges bool // the job is judged by that metric
	others sample.Named[client.CurvePoint]
	latest map[string]inbox.Latest // newest report, by attempt, as it was before the log was read
}

// newCurveReader must run before the log is read, as newMetricReader.
func newCurveReader(b *Service, j *core.Job) *curveReader {
	c := &curveReader{judged: newMetricReader(b, j), latest: map[string]inbox.Latest{}}
	c.judges, c.others.Limit = j.Terms().Metric.Name != "", mostNames
	for _, a := range j.Attempts() {
		c.latest[a.ID()], _ = b.Control.Latest(a.ID())
	}
	return c
}

// event reads an event of the log. It counts a repeated message once.
func (c *curveReader) event(e core.Event) {
	b, ok := e.Body.(core.Progressed)
	if !ok {
		return
	}
	last, ours := c.judged.attempts[b.Attempt]
	if c.judged.event(e); ours && (b.Message == 0 || b.Message > last) {
		c.add(e.At, b.Step, b.Metrics)
	}
}

// add adds a report of a program.
func (c *curveReader) add(at time.Time, step int64, metrics map[string]float64) {
	for _, name := range slices.Sorted(maps.Keys(metrics)) {
		judges := c.judges && name == c.judged.name
		if v := metrics[name]; !judges && !math.IsNaN(v) && !math.IsInf(v, 0) {
			c.others.Add(name, client.CurvePoint{MarketAt: at, Step: step, Value: v})
		}
	}
}

// answer returns the curves, with the reports that are not in an event yet.
func (c *curveReader) answer(now time.Time) client.Curves {
	v := client.Curves{Curves: []client.Curve{}}
	var judged sample.Series[client.CurvePoint]
	for _, one := range c.judged.all() {
		if c.judges && !one.Broken {
			judged.Add(client.CurvePoint{MarketAt: one.At, Step: one.Step, Value: one.Value.Value})
		}
	}
	if !judged.Empty() {
		v.Curves = append(v.Curves, client.Curve{Metric: c.judged.name, Judges: true, Points: judged.All()})
	}
	for _, attempt := range c.judged.order {
		l := c.latest[attempt].Step
		for name, value := range l.Metrics {
			if of := c.others.Of(name); of == nil || l.Step > of.Last().Step {
				c.add(now, l.Step, map[string]float64{name: value})
			}
		}
	}
	names := c.others.Names()
	v.More = max(0, len(v.Curves)+len(names)-mostCurves)
	for _, name := range names[:len(names)-v.More] {
		v.Curves = append(v.Curves, client.Curve{Metric: name, Points: c.others.Of(name).All()})
	}
	return v
}

// Curves samples every metric that the job's programs reported.
func (b *Service) Curves(w http.ResponseWriter, r *http.Request) {
	of, known := b.known(w, r)
	if !known {
		return
	}
	var reader *curveReader
	b.Control.Job(of.ID, func(m *core.Machine, j *core.Job) { reader, of = newCurveReader(b, j), jobOf(m, j) })
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
	reply.JSON(w, reader.answer(b.Control.Now()))
}
