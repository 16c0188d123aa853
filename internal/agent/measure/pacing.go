package measure

import (
	"slices"
	"sync"
	"time"

	"scrimp/internal/wire/telemetry"
)

// Which waits for progress are stalls: those that are much longer than most of the last ones.
const (
	lastWaits  = 31
	leastWaits = 6 // that are needed
	stallTimes = 3
	leastStall = time.Second
)

// Pacing follows how a program's steps come: how many, and for how long they stall. The zero value has seen none.
type Pacing struct {
	mu      sync.Mutex
	step    int64
	at      time.Time // of the last step; zero: none was reported
	since   int64     // steps since the last measurement
	waits   []time.Duration
	stalled time.Duration // since the last measurement
	counted time.Duration // of the wait that goes on, in earlier measurements
}

// Saw notes that the program has come to a step. A step that is not new is no step.
func (p *Pacing) Saw(now time.Time, step int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.at.IsZero() {
		if step == p.step {
			return
		}
		if wait := now.Sub(p.at); wait > 0 { // several lines are read at once
			p.stalled += max(0, p.stall(wait)-p.counted)
			p.waits = append(p.waits, wait)
			p.waits = p.waits[max(0, len(p.waits)-lastWaits):]
		}
		p.since += max(0, step-p.step) // less: it began anew
	}
	p.step, p.at, p.counted = step, now, 0
}

// stall returns the part of a wait by which it is longer than usual; 0: it is not much longer.
func (p *Pacing) stall(wait time.Duration) time.Duration {
	if len(p.waits) < leastWaits {
		return 0
	}
	sorted := slices.Clone(p.waits)
	slices.Sort(sorted)
	usual := sorted[len(sorted)/2]
	if wait < max(leastStall, stallTimes*usual) {
		return 0
	}
	return wait - usual
}

// put adds what was seen since the last call to a bucket, if any step ever was. A wait that goes on counts.
func (p *Pacing) put(now time.Time, span time.Duration, b *telemetry.Bucket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.IsZero() || span <= 0 {
		return
	}
	b.Set(telemetry.TaskSteps, float64(p.since)/span.Seconds())
	goesOn := p.stall(now.Sub(p.at))
	if len(p.waits) >= leastWaits {
		stalled := p.stalled + max(0, goesOn-p.counted)
		b.Set(telemetry.TaskStalled, min(1, stalled.Seconds()/span.Seconds()))
	}
	p.counted = max(p.counted, goesOn)
	p.since, p.stalled = 0, 0
}
