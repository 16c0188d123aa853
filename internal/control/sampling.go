package control

import (
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/policy"
	"scrimp/internal/wire/api"
)

// All agents together send about so many reports a second at most, and about so
// much of what they say becomes an event, where it decides nothing: the log
// keeps it for a week. Few agents are heard as often as they speak.
const (
	reportsASecond  = 1000
	progressASecond = 100
	usagesASecond   = 20
)

// Spans that few agents keep, on the wall.
const (
	reportAtLeast = 500 * time.Millisecond
	stepAtLeast   = 2 * time.Second
	usageAtLeast  = 10 * time.Second
	flushEvery    = 250 * time.Millisecond // what is due becomes an event
)

// The longer a program runs, the seldomer what it says becomes an event where that
// decides nothing: after an eighth of the time that it has run, up to five minutes of the market's.
const (
	stretch  = 8
	sparsest = 5 * time.Minute
)

// share is how often each of n may do something that all together do rate times a second.
func share(n, rate int, least time.Duration) time.Duration {
	return max(least, time.Duration(n)*time.Second/time.Duration(rate))
}

// reportEvery is the pause between two reports of one of n agents, short enough
// that an agent is never taken for silent.
func (c *Control) reportEvery(n int) time.Duration {
	return min(share(n, reportsASecond, reportAtLeast), max(c.cfg.Silence/4, reportAtLeast))
}

// seldom is the pause between two events that decide nothing.
func (c *Control) seldom(l *Latest, wall time.Time) time.Duration {
	return min(wall.Sub(l.began)/stretch, c.cfg.Clock.Shrink(sparsest))
}

// manyValues is how many values of what a job is judged by do not wait for more.
const manyValues = 1000

// stepDue says whether the newest progress becomes an event now, with all values of what
// the job is judged by: there is no better use of an event than to hold many of them.
func (c *Control) stepDue(l *Latest, wall time.Time) bool {
	pause := share(c.agents.live, progressASecond, stepAtLeast)
	if !l.decides && len(l.values) < manyValues {
		pause = max(pause, c.seldom(l, wall))
	}
	return l.step.Step != nil && wall.Sub(l.told) >= pause
}

// usageDue says whether the newest usage becomes an event now. One that is idle is watched
// closely, since its guard counts from the first that is.
func (c *Control) usageDue(l *Latest, wall time.Time) bool {
	if l.usage.Usage == nil {
		return false
	}
	pause := share(c.agents.live, usagesASecond, usageAtLeast)
	if !l.idle && (l.low.IsZero() || wall.Sub(l.low) < usageAtLeast) {
		pause = max(pause, c.seldom(l, wall))
	}
	return wall.Sub(l.used) >= pause
}

// hearStep keeps progress that decides nothing at once, and every value of what the job is
// judged by, until they are told.
func (c *Control) hearStep(l *Latest, m api.Message) {
	if m.Seq <= l.taken {
		return // it came twice
	}
	l.taken = m.Seq
	if l.metric.Name != "" {
		values := c.valuesOf(l.metric, m, l.since)
		var stop policy.Stop
		l.seen, stop = l.seen.Judge(l.metric, values)
		l.decides = l.decides || stop != "" || l.trial && len(values) > 0
		for _, v := range values {
			l.values = append(l.values, heard{m.Seq, m.At, v})
		}
	}
	if before := l.step.Step; before != nil && len(before.Broken) > 0 { // it was not told, for want of room
		step := *m.Step
		step.Broken = slices.Compact(slices.Sorted(slices.Values(slices.Concat(before.Broken, step.Broken))))
		m.Step = &step
	}
	l.step = m
}

// valuesOf is what a report says of the metric that the job is judged by, at market times.
// An agent of a release that knows of no values says one with each report. No value is older than since,
// when the attempt was asked for, nor of a time to come: what a job has cost is shown beside them.
func (c *Control) valuesOf(metric policy.Metric, m api.Message, since time.Time) policy.Values {
	within := func(wall time.Time) time.Time {
		at := earlier(c.cfg.Clock.ToMarket(wall), c.Now())
		if at.Before(since) {
			at = since
		}
		return at
	}
	if len(m.Step.Values) == 0 {
		return metric.Of(within(m.At), m.Step.Step, m.Step.Epoch, m.Step.Metrics, m.Step.Broken)
	}
	list := make(policy.Values, len(m.Step.Values))
	for i, v := range m.Step.Values {
		list[i] = policy.Value{At: within(v.At), Step: v.Step, Epoch: v.Epoch, Value: v.Value, Broken: v.Broken}
	}
	return list
}

// hearUsage keeps the mean of the processors in use, and the most of memory and GPUs, until it is told.
func (l *Latest) hearUsage(m api.Message, wall time.Time) {
	if m.Seq <= l.taken {
		return // it came twice
	}
	l.taken = m.Seq
	u := *m.Usage
	if last := l.usage.Usage; last != nil {
		u.CPU = last.CPU + (u.CPU-last.CPU)/float64(l.count+1)
		u.Memory = max(u.Memory, last.Memory)
		if u.GPU == nil || last.GPU != nil && *last.GPU > *u.GPU {
			u.GPU = last.GPU
		}
	} else {
		l.count = 0
	}
	l.count++
	switch {
	case !(core.UsageSeen{CPU: m.Usage.CPU, GPU: m.Usage.GPU}).Idle():
		l.low = time.Time{}
	case l.low.IsZero():
		l.low = wall
	}
	m.Usage = &u
	l.usage = m
}

// waiting is what the rank has said before message seq and what is no event yet, in
// the order in which it was said: its progress with all values, and its usage where that is
// due. No event of a message leaves a value of an earlier one behind: the core hears of
// that no more.
func (c *Control) waiting(l *Latest, seq int64, wall time.Time) []core.Event {
	told := max(l.said, l.put)
	waits := func(m api.Message) bool { return told < m.Seq && m.Seq < seq }
	var list []core.Event
	if m, ok := l.newest(told, seq); ok {
		b := c.body(l, m).(core.Progressed)
		b.Values = l.Values(told, m.Seq)
		list = append(list, c.said(l, m, b))
		l.put = max(l.put, m.Seq)
	}
	if waits(l.usage) && c.usageDue(l, wall) {
		list = append(list, c.said(l, l.usage, c.body(l, l.usage)))
		if l.put > l.usage.Seq {
			slices.Reverse(list)
		}
		l.put = max(l.put, l.usage.Seq)
	}
	return list
}

// newest is the newest progress after message told and before seq: the whole of it, or
// as much as the last value says where newer progress has taken its place.
func (l *Latest) newest(told, seq int64) (m api.Message, ok bool) {
	if s := l.step.Seq; l.step.Step != nil && told < s && s < seq {
		return l.step, true
	}
	for _, v := range l.values {
		if told < v.message && v.message < seq {
			m, ok = api.Message{Seq: v.message, At: v.at, Step: &api.Step{Step: v.value.Step, Epoch: v.value.Epoch}}, true
		}
	}
	return m, ok
}
