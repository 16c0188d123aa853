package inbox

import (
	"slices"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/decide/policy"
	"scrimp/internal/wire/api"
)

// Upper bounds on the reports of all agents together and on the events made of those that decide nothing, which the
// log keeps for a week. With few agents, every report is heard.
const (
	reportsASecond  = 500
	progressASecond = 100
	usagesASecond   = 20
)

// Least intervals, used when there are few agents, wall time.
const (
	reportAtLeast = 500 * time.Millisecond
	stepAtLeast   = 2 * time.Second
	usageAtLeast  = 10 * time.Second
	FlushEvery    = 250 * time.Millisecond // interval at which due messages become events
)

// The longer a program runs, the less often its messages become events if they decide nothing: after an eighth of its
// running time so far, at most five minutes of market time.
const (
	stretch  = 8
	sparsest = 5 * time.Minute
)

// share returns the interval for each of n agents that together act rate times a second.
func share(n, rate int, least time.Duration) time.Duration {
	return max(least, time.Duration(n)*time.Second/time.Duration(rate))
}

// ReportEvery returns the interval between two reports of an agent.
func (in *Inbox) ReportEvery() time.Duration { return in.reportEvery(in.Live()) }

// reportEvery returns the interval between two reports of one of n agents, short enough that no agent counts as
// silent.
func (in *Inbox) reportEvery(n int) time.Duration {
	return min(share(n, reportsASecond, reportAtLeast), max(in.Silence/4, reportAtLeast))
}

// seldom returns the interval between two events that decide nothing.
func (in *Inbox) seldom(l *Latest, wall time.Time) time.Duration {
	return min(wall.Sub(l.began)/stretch, in.Clock.Shrink(sparsest))
}

// manyValues is the number of buffered metric values that do not wait for more.
const manyValues = 1000

// stepDue reports whether the newest progress should become an event now, together with all buffered metric values.
// One event with many values is cheaper than many events.
func (in *Inbox) stepDue(l *Latest, wall time.Time) bool {
	pause := share(in.live, progressASecond, stepAtLeast)
	if !l.decides && len(l.values) < manyValues {
		pause = max(pause, in.seldom(l, wall))
	}
	return l.step.Step != nil && wall.Sub(l.told) >= pause
}

// usageDue reports whether the newest usage should become an event now. Idle usage is sampled more often, because the
// idle guard counts from the first idle event.
func (in *Inbox) usageDue(l *Latest, wall time.Time) bool {
	if l.usage.Usage == nil {
		return false
	}
	pause := share(in.live, usagesASecond, usageAtLeast)
	if !l.idle && (l.low.IsZero() || wall.Sub(l.low) < usageAtLeast) {
		pause = max(pause, in.seldom(l, wall))
	}
	return wall.Sub(l.used) >= pause
}

// hearStep buffers progress that decides nothing at once, and every metric value, until they become events.
func (in *Inbox) hearStep(l *Latest, m api.Message) {
	if m.Seq <= l.taken {
		return // a duplicate
	}
	l.taken = m.Seq
	if l.history.Metric.Name != "" {
		values := in.valuesOf(l.history.Metric, m, l.history.Since)
		var stop policy.Stop
		l.history.Seen, stop = l.history.Seen.Judge(l.history.Metric, values)
		l.decides = l.decides || stop != "" || l.history.Trial && len(values) > 0
		for _, v := range values {
			l.values = append(l.values, heard{m.Seq, m.At, v})
		}
	}
	if before := l.step.Step; before != nil && len(before.Broken) > 0 { // not yet an event, because the disk is full
		step := *m.Step
		step.Broken = slices.Compact(slices.Sorted(slices.Values(slices.Concat(before.Broken, step.Broken))))
		m.Step = &step
	}
	l.step = m
}

// valuesOf returns the values of the job's metric in a report, in market time. An agent of an older release that
// sends no value list counts as reporting one value. Values are dated between since, when the attempt was requested,
// and now, because the job's costs are shown beside them.
func (in *Inbox) valuesOf(metric policy.Metric, m api.Message, since time.Time) policy.Values {
	within := func(wall time.Time) time.Time {
		at := earlier(in.Clock.ToMarket(wall), in.now())
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

// hearUsage buffers the mean CPU use and the maxima of memory and GPU use until they become an event.
func (l *Latest) hearUsage(m api.Message, wall time.Time) {
	if m.Seq <= l.taken {
		return // a duplicate
	}
	l.taken = m.Seq
	u := *m.Usage
	if last := l.usage.Usage; last != nil {
		u.CPU = last.CPU + (u.CPU-last.CPU)/float64(l.count+1)
		u.Memory = max(u.Memory, last.Memory)
		if u.GPU == nil || last.GPU != nil && *last.GPU > *u.GPU {
			u.GPU = last.GPU
		}
		if last.InUse != nil && *last.InUse {
			u.InUse = last.InUse
		}
	} else {
		l.count = 0
	}
	l.count++
	switch {
	case !(core.UsageSeen{CPU: m.Usage.CPU, GPU: m.Usage.GPU, InUse: m.Usage.InUse}).Idle():
		l.low = time.Time{}
	case l.low.IsZero():
		l.low = wall
	}
	m.Usage = &u
	l.usage = m
}

// waiting returns what the rank has reported before message seq that is not an event yet, in order: its progress with
// all metric values, and its usage if that is due. The event of a message always carries the values of earlier
// messages, because the core would not accept them later.
func (in *Inbox) waiting(l *Latest, seq int64, wall time.Time) []core.Event {
	told := max(l.said, l.put)
	waits := func(m api.Message) bool { return told < m.Seq && m.Seq < seq }
	var list []core.Event
	if m, ok := l.newest(told, seq); ok {
		b := in.body(l, m).(core.Progressed)
		b.Values = l.Values(told, m.Seq)
		list = append(list, in.said(l, m, b))
		l.put = max(l.put, m.Seq)
	}
	if waits(l.usage) && in.usageDue(l, wall) {
		list = append(list, in.said(l, l.usage, in.body(l, l.usage)))
		if l.put > l.usage.Seq {
			slices.Reverse(list)
		}
		l.put = max(l.put, l.usage.Seq)
	}
	return list
}

// newest returns the newest progress after message told and before seq. If newer progress has replaced it, newest
// builds it from the last metric value.
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
