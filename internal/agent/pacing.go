package agent

import (
	"sync"
	"time"

	"scrimp/internal/wire/telemetry"
)

// pacing follows how a program's steps come: how many, and the longest wait for one. The zero value has seen none.
type pacing struct {
	mu      sync.Mutex
	step    int64
	at      time.Time // of the last step; zero: none was reported
	since   int64     // steps since the last measurement
	longest time.Duration
}

// saw notes that the program has come to a step. A step that is not new is no step.
func (p *pacing) saw(now time.Time, step int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.at.IsZero() {
		if step == p.step {
			return
		}
		p.longest = max(p.longest, now.Sub(p.at))
		p.since += max(0, step-p.step) // less: it began anew
	}
	p.step, p.at = step, now
}

// put adds what was seen since the last call to a bucket, if any step ever was.
func (p *pacing) put(now time.Time, span time.Duration, b *telemetry.Bucket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.at.IsZero() || span <= 0 {
		return
	}
	b.Set(telemetry.TaskSteps, float64(p.since)/span.Seconds())
	b.Set(telemetry.TaskStepWait, max(p.longest, now.Sub(p.at)).Seconds())
	p.since, p.longest = 0, 0
}
