// Package simulation plays a trace of requests, event by event, against machines under a rule: batches, replicas,
// scale to zero, a warm pool. Time is virtual.
package simulation

import "time"

// The kinds of event, in the order in which they happen at the same time.
const (
	answered = iota
	booted
	expired
)

// event is something that happens to a server (answered) or to a machine (booted, expired).
type event struct {
	at   time.Duration
	kind int
	id   int
	n    int // requests that are answered
}

func (e event) before(o event) bool {
	if e.at != o.at {
		return e.at < o.at
	}
	if e.kind != o.kind {
		return e.kind < o.kind
	}
	return e.id < o.id
}

// heap is a binary heap of events, the earliest first.
type heap []event

func (h *heap) push(e event) {
	l := append(*h, e)
	i := len(l) - 1
	for i > 0 && e.before(l[(i-1)/2]) {
		l[i] = l[(i-1)/2]
		i = (i - 1) / 2
	}
	l[i] = e
	*h = l
}

func (h *heap) pop() event {
	l := *h
	first, last := l[0], l[len(l)-1]
	l = l[:len(l)-1]
	i := 0
	for 2*i+1 < len(l) {
		c := 2*i + 1
		if c+1 < len(l) && l[c+1].before(l[c]) {
			c++
		}
		if !l[c].before(last) {
			break
		}
		l[i] = l[c]
		i = c
	}
	if len(l) > 0 {
		l[i] = last
	}
	*h = l
	return first
}
