// Package tries repeats a delivery until its receiver accepts or refuses it. The tries go on after a restart of the
// server.
package tries

import (
	"context"
	"time"
)

// Rule bounds the tries of a delivery and the waits between them.
type Rule struct {
	Most    int           // tries
	First   time.Duration // before the second try; each further wait is twice as long
	Longest time.Duration // bounds a wait, also one that the receiver asks for
}

// after returns the wait after try n, which counts from 1.
func (r Rule) after(n int) time.Duration {
	d := r.First
	for ; n > 1 && d < r.Longest; n-- {
		d *= 2
	}
	return min(d, r.Longest)
}

// Progress is how far an earlier server came with a delivery.
type Progress struct {
	Tries int       // that have failed
	Next  time.Time // of the next try
	// Failed records a try that a further one follows; nil: nobody is interested.
	Failed func(tries int, next time.Time, err error)
}

// Delivery describes one delivery.
type Delivery struct {
	Rule
	Progress
	// Once tries once. asked is the wait that the receiver asks for.
	Once    func(ctx context.Context) (asked time.Duration, err error)
	Refused func(error) bool // the receiver will never accept it
	Pause   func(context.Context, time.Duration) error
	Waits   func(try int, wait time.Duration, err error) // is called before each wait
}

// Do makes the tries. It returns their number, those of earlier servers included, and the error of the last one.
func (d Delivery) Do(ctx context.Context) (tries int, err error) {
	if d.Tries > 0 {
		if err := d.Pause(ctx, min(time.Until(d.Next), d.Longest)); err != nil {
			return d.Tries, err
		}
	}
	for n := d.Tries + 1; ; n++ {
		asked, err := d.Once(ctx)
		if err == nil || d.Refused(err) || ctx.Err() != nil || n >= d.Most {
			return n, err
		}
		wait := max(d.after(n), min(asked, d.Longest))
		d.Waits(n, wait, err)
		if d.Failed != nil {
			d.Failed(n, time.Now().Add(wait).UTC(), err)
		}
		if err := d.Pause(ctx, wait); err != nil {
			return n, err
		}
	}
}
