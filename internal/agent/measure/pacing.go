package measure

import (
	"slices"
	"sync"
	"time"

	"scrimp/internal/wire/telemetry"
)

// A wait for progress is a stall if it is much longer than most of the last ones.
const (
	lastWaits  = 31
	minWaits   = 6 // minimum number of waits
	stallTimes = 3
	minStall   = time.Second
)

// Pacing tracks a program's steps: their number, and how long they stall. The zero value has seen no step.
type Pacing struct {
	mu      sync.Mutex
	step    int64
	at      time.Time // time of the last step; zero: none yet
	since   int64     // steps since the last measurement
	waits   []time.Duration
	stalled time.Duration // since the last measurement
	counted time.Duration // part of the current wait that earlier measurements counted
}

// Saw records that the program reported a step. It ignores a repeated step.
func (p *Pacing) Saw(now time.Time, step int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.at.IsZero() {
		if step == p.step {
			return
		}
		if wait := now.Sub(p.at); wait > 0 { // the agent may read several lines at once
			p.stalled += max(0, p.stall(wait)-p.counted)
			p.waits = append(p.waits, wait)
			p.waits = p.waits[max(0, len(p.waits)-lastWaits):]
		}
		p.since += max(0, step-p.step) // negative: the counter started again
	}
	p.step, p.at, p.counted = step, now, 0
}

// stall returns by how much a wait exceeds the usual one; 0 unless it is much longer.
func (p *Pacing) stall(wait time.Duration) time.Duration {
	if len(p.waits) < minWaits {
		return 0
	}
	sorted := slices.Clone(p.waits)
	slices.Sort(sorted)
	usual := sorted[len(sorted)/2]
	if wait < max(minStall, stallTimes*usual) {
		return 0
	}
	return wait - usual
}

// put adds the pace since the last call to a bucket, once the program has reported a step. It
// includes the current wait.
func (p *Pacing) put(now time.Time, span time.Duration, b *telemetry.Bucket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.IsZero() || span <= 0 {
		return
	}
	b.Set(telemetry.TaskSteps, float64(p.since)/span.Seconds())
	current := p.stall(now.Sub(p.at))
	if len(p.waits) >= minWaits {
		stalled := p.stalled + max(0, current-p.counted)
		b.Set(telemetry.TaskStalled, min(1, stalled.Seconds()/span.Seconds()))
	}
	p.counted = max(p.counted, current)
	p.since, p.stalled = 0, 0
}
