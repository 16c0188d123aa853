package auth

import (
	"sync"
	"time"
)

// standardRate is the average rate of requests per second for one user, machine or attempt. A burst may use two
// seconds' worth at once.
const standardRate = 500

// Pace limits the rate of each of many callers, with a token bucket each.
type Pace struct {
	rate float64 // per second
	full float64 // burst

	mu      sync.Mutex
	buckets map[string]*bucket
	frozen  bool
	swept   time.Time
}

type bucket struct {
	left float64
	at   time.Time
}

// NewPace returns a limiter for rate requests per second of each caller; 0 means the standard rate.
func NewPace(rate int) *Pace {
	if rate <= 0 {
		rate = standardRate
	}
	return NewBurst(float64(rate), 2*float64(rate))
}

// NewBurst returns a limiter with the given rate per second and burst.
func NewBurst(rate, full float64) *Pace {
	return &Pace{rate: rate, full: full, buckets: map[string]*bucket{}}
}

// Times returns a limiter with n times the rate and burst, for all callers together.
func (p *Pace) Times(n float64) *Pace { return NewBurst(n*p.rate, n*p.full) }

// Freeze stops the refill: each caller can use what is left in its bucket. Tests use it, because their outcome must
// not depend on the speed of the host.
func (p *Pace) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = true
}

// take reports whether the caller may go on, and otherwise how long to wait.
func (p *Pace) take(caller string, now time.Time) (ok bool, wait time.Duration) {
	return p.TakeMany(caller, 1, now)
}

// TakeMany is take for n tokens at once, at most a full bucket.
func (p *Pace) TakeMany(caller string, n float64, now time.Time) (ok bool, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	full := p.full
	if now.Sub(p.swept) > time.Minute { // a full bucket need not be kept
		p.swept = now
		filled := max(time.Minute, time.Duration(full/p.rate*float64(time.Second)))
		for name, b := range p.buckets {
			if now.Sub(b.at) > filled {
				delete(p.buckets, name)
			}
		}
	}
	b := p.buckets[caller]
	if b == nil {
		b = &bucket{full, now}
		p.buckets[caller] = b
	}
	if !p.frozen {
		b.left = min(full, b.left+max(0, now.Sub(b.at).Seconds())*p.rate)
	}
	b.at = now
	if n = min(n, full); b.left < n {
		return false, time.Duration((n - b.left) / p.rate * float64(time.Second))
	}
	b.left -= n
	return true, 0
}
