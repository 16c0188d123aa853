// Package measure measures the program of an attempt and its machine, and keeps the measurements
// until the server has them.
package measure

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"scrimp/internal/agent/meter"
	"scrimp/internal/agent/outbox"
	"scrimp/internal/agent/program"
	"scrimp/internal/lib/threadtime"
	"scrimp/internal/lib/wait"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/telemetry"
)

// How often to measure each core and the threads, and the share of a processor that measuring may
// cost: with very many processes it runs less often.
const (
	lookCores     = time.Minute
	lookThreads   = 20 * time.Second
	lookManyCores = 3 * time.Minute // with more than manyCores, to keep an hour of data small
	manyCores     = 128
	measureShare  = 200 // at most 1/measureShare of a processor
	maxPause      = 30 * time.Second
)

// Limits on the buckets in one report and on those that wait for the server. Buckets that the
// server does not take are sent again.
const (
	maxBuckets   = 30
	keptBuckets  = 24 * 360 // a day
	bucketsAgain = 10 * time.Second
)

// Measurer measures the program of an attempt and its machine.
type Measurer struct {
	Box       *outbox.Box
	GPUs      *meter.GPUs // the machine's GPUs; nil: do not measure
	Part      *api.Part   // the attempt's part of the machine; nil: all of it
	Visible   []int       // indices of the GPUs of a task without a part; nil: all
	NeedsGPUs bool        // the job requests GPUs
	Now       func() time.Time
	Every     time.Duration // minimum time between two measurements
	Series    *Series
	Pacing    *Pacing
	// InUse reports whether a session is in use, apart from what the measurement shows; nil: the job is not a session.
	InUse func(context.Context, api.Usage) *bool

	program *program.Meter
	machine meter.Machine
	cores   time.Time // time of the last measurement of each core
	threads time.Time // time of the last count of threads
	head    telemetry.Head
}

// Run measures the program and its machine until ctx is done, and rests in proportion to the processor time that a
// measurement costs.
func (m *Measurer) Run(ctx context.Context, p *program.Program) {
	now := time.Now()
	m.program, m.cores = p.Meter(now), now
	m.head = m.machine.Head()
	m.machine.Measure(now, &telemetry.Bucket{})
	m.taskGPUs(now) // request the first GPU reading
	for pause := m.Every; wait.For(ctx, pause) == nil; {
		cost := threadtime.Of(func() { m.once(ctx, time.Now()) })
		pause = max(m.Every, min(measureShare*cost, maxPause))
	}
	m.once(ctx, time.Now())
	m.Series.close()
}

// once measures the time since its last call.
func (m *Measurer) once(ctx context.Context, now time.Time) {
	var b telemetry.Bucket
	span := m.machine.Measure(now, &b)
	every := lookCores
	if m.head.Cores > manyCores {
		every = lookManyCores
	}
	if now.Sub(m.cores) >= every {
		m.machine.Cores(&b)
		m.cores = now
	}
	u, known := m.program.Measure(now)
	if known && span > 0 {
		b.Set(telemetry.TaskCPU, u.CPU)
		b.Set(telemetry.TaskMemory, float64(u.Memory))
		b.Set(telemetry.TaskRead, float64(u.Read)/span.Seconds())
		b.Set(telemetry.TaskWrite, float64(u.Written)/span.Seconds())
		m.detail(u.Detail, now, span, &b)
	}
	m.Pacing.put(now, span, &b)
	gpus := m.taskGPUs(now)
	if of := meter.Put(gpus, &b); len(of.GPUs) > 0 {
		m.head.GPUs, m.head.Driver = of.GPUs, of.Driver
	}
	if known {
		use := api.Usage{CPU: u.CPU, Memory: u.Memory, DiskRead: u.Read, DiskWrite: u.Written, Processes: u.Processes,
			GPU: m.inUse(gpus)}
		if m.InUse != nil {
			use.InUse = m.InUse(ctx, use)
		}
		m.Box.Usage(m.Now(), use)
	}
	m.Series.add(m.Now(), span, b, m.head)
}

// detail adds the program's detailed usage if it is known.
func (m *Measurer) detail(d *program.Detail, now time.Time, span time.Duration, b *telemetry.Bucket) {
	if d == nil {
		return
	}
	b.Set(telemetry.TaskSystem, d.System)
	b.Set(telemetry.TaskMain, d.Main)
	b.Set(telemetry.TaskMainBlocked, d.Blocked)
	if now.Sub(m.threads) >= lookThreads {
		b.Set(telemetry.TaskThreads, float64(d.Threads))
		m.threads = now
	}
	for metric, n := range map[telemetry.Metric]int64{telemetry.TaskFaults: d.Faults, telemetry.TaskReadCalls: d.Reads,
		telemetry.TaskWriteCalls: d.Writes, telemetry.TaskReadCallBytes: d.ReadBytes,
		telemetry.TaskWriteCallBytes: d.WriteBytes} {
		b.Set(metric, float64(n)/span.Seconds())
	}
}

// taskGPUs returns the readings of the task's GPUs.
func (m *Measurer) taskGPUs(now time.Time) []meter.Reading {
	if m.GPUs == nil {
		return nil
	}
	return m.own(m.GPUs.Latest(now))
}

// own returns the task's GPUs of all. If the environment grants none of them, nvidia-smi numbers them differently,
// since it sees only those of the task.
func (m *Measurer) own(all []meter.Reading) []meter.Reading {
	devices := m.Visible
	if m.Part != nil {
		devices = m.Part.Devices
	}
	list := slices.DeleteFunc(slices.Clone(all), func(r meter.Reading) bool {
		return !slices.Contains(devices, r.Index)
	})
	if m.Part == nil && len(list) == 0 {
		return all
	}
	return list
}

// inUse returns the highest utilization of a GPU, or nil if the job requests none or it is unknown.
func (m *Measurer) inUse(list []meter.Reading) (most *float64) {
	if !m.NeedsGPUs {
		return nil
	}
	for _, r := range list {
		if u := r.Utilization; !math.IsNaN(u) && (most == nil || u > *most) {
			most = &u
		}
	}
	return most
}

// Series holds the measurements that the server has not taken.
type Series struct {
	mu   sync.Mutex
	open telemetry.Bucket // the unfinished ten seconds; Width is 0 if there are none
	list []telemetry.Bucket
	head telemetry.Head
	sent time.Time
	upTo int64 // end of the last bucket sent
}

// add records the measurements of a span that ends now. A span longer than ten seconds counts for each ten seconds of
// it, up to twice maxPause: of a longer one, in which the machine slept, only the end counts.
func (s *Series) add(now time.Time, span time.Duration, b telemetry.Bucket, h telemetry.Head) {
	if span <= 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.head = h
	const least = telemetry.Least * time.Second
	b.Width = telemetry.Least
	b.Clear()
	for span = min(span, 2*maxPause); span > 0; span -= least {
		part := min(span, least)
		at := now.Add(part/2 - span).Unix() // most of the part lies in this bucket
		b.Start, b.Covered = at-at%telemetry.Least, part.Seconds()
		s.put(b)
	}
}

// put adds a bucket to the open ten seconds, or finishes them and opens the next. The caller holds mu.
func (s *Series) put(b telemetry.Bucket) {
	switch {
	case s.open.Width == 0:
		s.open = b
	case s.open.Start == b.Start:
		s.open = telemetry.Merge([]telemetry.Bucket{s.open, b}, b.Start, b.Width)
		s.open.Covered = min(s.open.Covered, telemetry.Least)
	case b.Start > s.open.Start: // after the clock was set back, wait until it catches up
		s.flush()
		s.open = b
	}
}

// flush finishes the current ten seconds, and drops the oldest buckets beyond keptBuckets.
func (s *Series) flush() {
	if s.open.Width > 0 {
		s.list = append(s.list, s.open)
		s.open = telemetry.Bucket{}
	}
	if n := len(s.list) - keptBuckets; n > 0 {
		s.list = slices.Delete(s.list, 0, n)
	}
}

// close finishes the current ten seconds at the end of the program.
func (s *Series) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
	s.sent = time.Time{}
}

// Next returns the measurements for the next report, or nil if nothing is new.
func (s *Series) Next(now time.Time) *api.Measurements {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list[:min(len(s.list), maxBuckets)]
	if len(list) == 0 || list[len(list)-1].End() <= s.upTo && now.Sub(s.sent) < bucketsAgain {
		return nil
	}
	s.upTo, s.sent = list[len(list)-1].End(), now
	t := &api.Measurements{Buckets: make([]api.Measurement, 0, len(list))}
	for i := range list {
		t.Buckets = append(t.Buckets, wireBucket(&list[i]))
	}
	h := s.head
	t.Head = &api.MeasuredMachine{Cores: h.Cores, Memory: h.Memory, Driver: h.Driver}
	for _, d := range h.GPUs {
		t.Head.GPUs = append(t.Head.GPUs, api.MeasuredGPU(d))
	}
	return t
}

// Taken drops the buckets that the server has.
func (s *Series) Taken(upTo int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(b telemetry.Bucket) bool { return b.End() <= upTo })
}

// wireBucket converts a bucket to its wire format.
func wireBucket(b *telemetry.Bucket) api.Measurement {
	out := api.Measurement{Start: b.Start, Covered: b.Covered, Values: map[string][]*float64{}}
	for m := range telemetry.Metrics {
		for _, v := range b.V[m] {
			var p *float64
			if v.Known() {
				p = &v.Mean
			}
			out.Values[m.String()] = append(out.Values[m.String()], p)
		}
	}
	return out
}
