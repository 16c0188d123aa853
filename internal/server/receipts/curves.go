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
	"scrimp/internal/server/books"
	"scrimp/internal/server/reply"
	"scrimp/internal/view"
)

const (
	mostCurves = 50   // metrics in an answer
	mostNames  = 1000 // metrics that are read and counted; a program that reports more gets no curves for the others
	mostPoints = 400  // points of a curve in an answer
)

// curveReader reads all metrics of a job from the log.
type curveReader struct {
	judged *metricReader
	judges bool // the job is judged by that metric
	by     map[string]*samples
	latest map[string]inbox.Latest // newest report, by attempt, as it was before the log was read
}

// samples is an evenly spaced sample of a long series: each step-th point, at most twice mostPoints.
type samples struct {
	points []client.CurvePoint
	step   int
	seen   int
	last   client.CurvePoint
}

// add adds a point, and thins the series when it grows too long.
func (s *samples) add(p client.CurvePoint) {
	if s.last = p; s.seen%s.step == 0 {
		s.points = append(s.points, p)
	}
	s.seen++
	if len(s.points) < 2*mostPoints {
		return
	}
	kept := s.points[:0]
	for i := 0; i < len(s.points); i += 2 {
		kept = append(kept, s.points[i])
	}
	s.points, s.step = kept, 2*s.step
}

// all returns the sample with the newest point.
func (s *samples) all() []client.CurvePoint {
	if n := len(s.points); n > 0 && s.points[n-1] != s.last {
		s.points = append(s.points, s.last)
	}
	return sampleEvenly(s.points, mostPoints)
}

// newCurveReader must run before the log is read, as newMetricReader.
func newCurveReader(b *Desk, j *core.Job) *curveReader {
	c := &curveReader{judged: newMetricReader(b, j), judges: j.Terms().Metric.Name != "", by: map[string]*samples{}, latest: map[string]inbox.Latest{}}
	for _, a := range j.Attempts() {
		if l, ok := b.Control.Latest(a.ID()); ok {
			c.latest[a.ID()] = l
		}
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
		v := metrics[name]
		if c.judges && name == c.judged.name || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		of := c.by[name]
		if of == nil {
			if len(c.by) == mostNames {
				continue
			}
			of = &samples{step: 1}
			c.by[name] = of
		}
		of.add(client.CurvePoint{MarketAt: at, Step: step, Value: v})
	}
}

// answer returns the curves, with the reports that are not in an event yet.
func (c *curveReader) answer(now time.Time) client.Curves {
	v := client.Curves{Curves: []client.Curve{}}
	if judged := c.judgedSamples(); judged.seen > 0 {
		v.Curves = append(v.Curves, client.Curve{Metric: c.judged.name, Judges: true, Points: judged.all()})
	}
	newest := map[string]int64{}
	for name, of := range c.by {
		newest[name] = of.last.Step
	}
	for _, attempt := range c.judged.order {
		l, ok := c.latest[attempt]
		fresh := map[string]float64{}
		for name, value := range l.Step.Metrics {
			if step, known := newest[name]; ok && (!known || l.Step.Step > step) {
				fresh[name] = value
			}
		}
		c.add(now, l.Step.Step, fresh)
	}
	for _, name := range slices.Sorted(maps.Keys(c.by)) {
		if len(v.Curves) == mostCurves {
			v.More++
			continue
		}
		v.Curves = append(v.Curves, client.Curve{Metric: name, Points: c.by[name].all()})
	}
	return v
}

// judgedSamples samples the metric that the job is judged by; it is empty if there is none.
func (c *curveReader) judgedSamples() *samples {
	of := &samples{step: 1}
	for _, one := range c.judged.all() {
		if c.judges && !one.Broken {
			of.add(client.CurvePoint{MarketAt: one.At, Step: one.Step, Value: one.Value.Value})
		}
	}
	return of
}

// Curves samples every metric that the job's programs reported.
func (b *Desk) Curves(w http.ResponseWriter, r *http.Request) {
	of, known := b.known(w, r)
	if !known {
		return
	}
	var reader *curveReader
	b.Control.Job(of.ID, func(m *core.Machine, j *core.Job) { reader, of = newCurveReader(b, j), jobOf(m, j) })
	if reader == nil {
		reply.Problem(w, http.StatusServiceUnavailable, "the job was not read", "try again", nil)
		return
	}
	err := b.events(r.Context(), of, view.Progress, func(_ uint64, e core.Event, _ []core.Fact) error {
		reader.event(e)
		return nil
	})
	if err != nil {
		books.Unread(w, "the log was not read", err)
		return
	}
	reply.JSON(w, reader.answer(b.Control.Now()))
}
