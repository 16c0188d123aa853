package inbox

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"scrimp/internal/decide/core"
)

// Acquire waits until no other goroutine turns the attempt's messages into events. It returns false if ctx is done.
func (l *Latest) Acquire(ctx context.Context) bool {
	select {
	case l.proposing <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// Release lets others turn the attempt's messages into events.
func (l *Latest) Release() { <-l.proposing }

// Due collects the buffered messages that become events now, in one transaction. Until Release, no other goroutine
// makes events of these attempts' messages.
func (in *Inbox) Due(wall time.Time) (all []core.Event, of map[*Latest][]core.Event) {
	of = map[*Latest][]core.Event{}
	in.mu.Lock()
	defer in.mu.Unlock()
	complete := false
	defer func() {
		for l := range of {
			if !complete { // another call panicked
				l.put = 0
				l.Release()
			}
		}
	}()
	for _, attempt := range slices.Sorted(maps.Keys(in.by)) {
		for _, l := range in.by[attempt].heard() {
			if list := in.dueOf(l, wall); len(list) > 0 {
				of[l] = list
				all = append(all, list...)
			}
		}
	}
	complete = true
	return all, of
}

// dueOf returns the events that are due for a rank. If there are any, no other goroutine makes events of its messages
// until Release. The caller holds the lock.
func (in *Inbox) dueOf(l *Latest, wall time.Time) []core.Event {
	step, usage := in.stepDue(l, wall), in.usageDue(l, wall)
	if !step && !usage {
		return nil
	}
	select {
	case l.proposing <- struct{}{}:
	default: // its agent has sent something urgent, which the due messages will precede
		return nil
	}
	upTo := l.usage.Seq
	if step || len(l.values) > 0 {
		upTo = max(upTo, l.step.Seq)
	}
	var list []core.Event
	defer func() {
		if len(list) == 0 { // also if waiting panics
			l.Release()
		}
	}()
	list = in.waiting(l, upTo+1, wall)
	return list
}

// Release ends what Due started; durable says whether its events are.
func (in *Inbox) Release(of map[*Latest][]core.Event, durable bool, wall time.Time) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for l, list := range of {
		if l.put = 0; durable {
			l.committed(list, wall)
		}
		l.Release()
	}
}

// All returns the events of all buffered messages of a rank. The caller has acquired the rank.
func (in *Inbox) All(l *Latest, wall time.Time) []core.Event {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.waiting(l, math.MaxInt64, wall)
}
