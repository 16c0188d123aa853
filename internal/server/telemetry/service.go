// Package telemetry stores the telemetry of machines, apart from the log, and shows it.
package telemetry

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"sync"
	"time"

	"scrimp/internal/control"
	"scrimp/internal/server/disk"
	"scrimp/internal/store/logfile"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/telemetry"
)

// Limits on the telemetry and the clock of agents.
const (
	oldest    = 8 * 24 * time.Hour
	future    = time.Minute
	clockSlip = 20 * time.Second
	compactAt = 720 // narrow buckets in a series before compaction: two hours of them
	forget    = 10 * time.Minute
)

// Store stores series by the name of the rank's output.
type Store interface {
	AppendSeries(ctx context.Context, attempt string, b []byte) error
	PutSeries(ctx context.Context, attempt string, b []byte) error
	Series(ctx context.Context, attempt string) ([]byte, error)
}

// Service takes telemetry and shows it.
type Service struct {
	Control *control.Control
	Store   Store
	Room    disk.Room
	// Quota reserves n bytes for a job, or returns why there is no room.
	Quota  func(ctx context.Context, job string, n int64) error
	Errors *slog.Logger

	mu   sync.Mutex
	by   map[string]*rank // by name of the output
	tidy time.Time
}

// rank is the state of a series that is being written.
type rank struct {
	mu     sync.Mutex
	loaded bool
	head   telemetry.Head
	upTo   int64 // end of the newest bucket
	narrow int
	last   telemetry.Bucket
	heard  time.Time // guarded by the service's lock
}

func (d *Service) rank(name string, now time.Time) *rank {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by == nil {
		d.by = map[string]*rank{}
	}
	if now.Sub(d.tidy) > time.Minute {
		for name, r := range d.by {
			if now.Sub(r.heard) > forget {
				delete(d.by, name)
			}
		}
		d.tidy = now
	}
	r := d.by[name]
	if r == nil {
		r = &rank{}
		d.by[name] = r
	}
	r.heard = now
	return r
}

// Take stores the telemetry from the agent of a rank. It returns the time, by the agent's clock, up to which the
// agent need not send it again; 0: nothing is stored. It refuses nothing: it drops impossible values, and without
// room the agent sends the telemetry later.
func (d *Service) Take(ctx context.Context, job string, report api.Report) (upTo int64) {
	t := report.Telemetry
	if t == nil || len(t.Buckets) == 0 {
		return 0
	}
	now := time.Now()
	slip := slipOf(report.Now, now)
	name := logfile.Name(report.Attempt, report.Node)
	r := d.rank(name, now)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := d.load(ctx, name, r); err != nil {
		d.Errors.Warn("measurements not read", "of", name, "error", err)
		return 0
	}
	var text []byte
	if h, changed := headOf(t.Head, r.head); changed {
		text = telemetry.AppendHead(text, h)
		r.head = h
	}
	end, narrow, last := r.upTo, 0, r.last
	for _, w := range t.Buckets {
		b, ok := bucketOf(w, slip)
		if !ok || b.Start < end || b.End() > now.Add(future).Unix() || b.Start < now.Add(-oldest).Unix() {
			continue
		}
		text, end, last, narrow = telemetry.AppendBucket(text, b), b.End(), b, narrow+1
	}
	if narrow > 0 && !d.write(ctx, name, job, r, text) {
		return 0
	}
	r.upTo, r.last, r.narrow = end, last, r.narrow+narrow
	if r.narrow >= compactAt {
		if err := d.compact(ctx, name, r); err != nil {
			d.Errors.Warn("cannot compact telemetry", "of", name, "error", err)
		}
	}
	sent := t.Buckets[len(t.Buckets)-1].Start // dropped buckets are not sent again
	return max(end-slip, min(sent, math.MaxInt64-telemetry.Least)+telemetry.Least)
}

// slipOf is how many seconds the server's clock is ahead of an agent's, in whole buckets; 0 where both go alike.
func slipOf(agent, server time.Time) int64 {
	s := server.Sub(agent)
	if s >= -clockSlip && s <= clockSlip {
		return 0
	}
	return int64(math.Round(s.Seconds()/telemetry.Least)) * telemetry.Least
}

// write appends to a series if there is room.
func (d *Service) write(ctx context.Context, name, job string, r *rank, text []byte) bool {
	if d.Room.Full(0) != nil {
		return false
	}
	if d.Quota(ctx, job, int64(len(text))) != nil {
		return false
	}
	if err := d.Store.AppendSeries(ctx, name, text); err != nil {
		d.Errors.Warn("cannot store telemetry", "of", name, "error", err)
		r.loaded = false // unknown how much was written
		return false
	}
	return true
}

// load reads the position of a series, once.
func (d *Service) load(ctx context.Context, name string, r *rank) error {
	if r.loaded {
		return nil
	}
	b, err := d.Store.Series(ctx, name)
	if err != nil {
		return err
	}
	h, list, err := telemetry.Decode(b)
	if err != nil { // torn by a crash: the part before is good
		if err := d.Store.PutSeries(ctx, name, telemetry.Encode(h, list)); err != nil {
			return err
		}
	}
	r.loaded, r.head, r.upTo, r.narrow = true, h, 0, 0
	for i := range list {
		if r.upTo = list[i].End(); list[i].Width == telemetry.Least {
			r.narrow++
		}
		r.last = list[i]
	}
	return nil
}

// compact merges old buckets.
func (d *Service) compact(ctx context.Context, name string, r *rank) error {
	b, err := d.Store.Series(ctx, name)
	if err != nil {
		return err
	}
	h, list, err := telemetry.Decode(b)
	if err != nil && !errors.Is(err, telemetry.ErrTorn) {
		d.Errors.Warn("telemetry is damaged; keeping the part before", "of", name, "error", err)
	}
	list = telemetry.Compact(list)
	if err := d.Store.PutSeries(ctx, name, telemetry.Encode(h, list)); err != nil {
		return err
	}
	r.narrow = 0
	for i := range list {
		if list[i].Width == telemetry.Least {
			r.narrow++
		}
	}
	return nil
}

// headOf returns an agent's description of its machine, clipped to the bounds, and whether it has changed.
func headOf(w *api.MeasuredMachine, old telemetry.Head) (h telemetry.Head, changed bool) {
	if w == nil {
		return old, false
	}
	h = telemetry.Head{Cores: min(max(0, w.Cores), 1<<16), Memory: max(0, w.Memory), Driver: w.Driver}
	for _, g := range w.GPUs[:min(len(w.GPUs), telemetry.MaxGPUs)] {
		d := telemetry.Device(g)
		if !(d.Power >= 0 && d.Power < 1<<20) || d.Memory < 0 || d.Index < 0 {
			d = telemetry.Device{Name: d.Name}
		}
		h.GPUs = append(h.GPUs, d)
	}
	return h, !sameHead(h, old)
}

func sameHead(a, b telemetry.Head) bool {
	if a.Cores != b.Cores || a.Memory != b.Memory || a.Driver != b.Driver || len(a.GPUs) != len(b.GPUs) {
		return false
	}
	for n := range a.GPUs {
		if a.GPUs[n] != b.GPUs[n] {
			return false
		}
	}
	return true
}

// bucketOf converts a bucket to the server's time; false: it is invalid.
func bucketOf(w api.Measurement, slip int64) (b telemetry.Bucket, ok bool) {
	if w.Start < 0 || w.Start > 1<<40 {
		return b, false
	}
	b = telemetry.Bucket{Start: w.Start + slip, Width: telemetry.Least, Covered: w.Covered}
	for name, values := range w.Values {
		m, known := telemetry.Named(name)
		if !known { // from a later release
			continue
		}
		if len(values) > m.Width() {
			return b, false
		}
		for _, p := range values {
			b.V[m] = append(b.V[m], telemetry.Exactly(*cmp.Or(p, &telemetry.Unknown.Mean)))
		}
	}
	ok = b.Valid()
	return b, ok
}
