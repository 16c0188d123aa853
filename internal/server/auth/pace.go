package auth

import (
	"sync"
	"time"
)

// standardRate is how many requests a second one user, machine or attempt may send on average; it
// may send two seconds' worth at once.
const standardRate = 500

// Pace limits how often each of many callers may ask: a bucket of tokens each.
type Pace struct {
	rate float64 // a second
	full float64 // at once

	mu      sync.Mutex
	buckets map[string]*bucket
	frozen  bool
	swept   time.Time
}

type bucket struct {
	left float64
	at   time.Time
}

// NewPace is one of so many a second for each; 0 is the standard.
func NewPace(rate int) *Pace {
	if rate <= 0 {
		rate = standardRate
	}
	return NewBurst(float64(rate), 2*float64(rate))
}

// NewBurst is one of so many a second, and so many at once.
func NewBurst(rate, full float64) *Pace {
	return &Pace{rate: rate, full: full, buckets: map[string]*bucket{}}
}

// Times is a pace of so many times as much, for all callers together.
func (p *Pace) Times(n float64) *Pace { return NewBurst(n*p.rate, n*p.full) }

// Freeze ends the refill: each caller has what is left in its bucket, and no more. It is for tests, whose outcome must
// not depend on how fast the machine is.
func (p *Pace) Freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frozen = true
}

// take reports whether the caller may ask now, and otherwise how long to wait.
func (p *Pace) take(caller string, now time.Time) (ok bool, wait time.Duration) {
	return p.TakeMany(caller, 1, now)
}

// TakeMany is take of n at once; n is at most a full bucket.
func (p *Pace) TakeMany(caller string, n float64, now time.Time) (ok bool, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	full := p.full
	if now.Sub(p.swept) > time.Minute { // a full bucket is as good as none
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
