package control

import (
	"sync"
	"sync/atomic"
)

// tide says how far the log is durable, and lets wait for more. Its zero value is a log without events.
type tide struct {
	mu   sync.Mutex
	seq  uint64
	more chan struct{} // closed when seq rises; nil: nobody waits
	over bool          // it will rise no more
	lost atomic.Bool   // and events beyond seq were stepped: what was seen of them is not so
}

// rise says that all events up to seq are durable.
func (t *tide) rise(seq uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seq = max(t.seq, seq)
	t.wake()
}

// lose is end where a write has failed.
func (t *tide) lose() {
	t.lost.Store(true) // before anybody is let go
	t.end()
}

// end lets go who waits for what will not be durable: the log takes no more.
func (t *tide) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	t.wake()
}

func (t *tide) wake() {
	if t.more != nil {
		close(t.more)
		t.more = nil
	}
}

func (t *tide) at() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.seq
}

func (t *tide) changed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.next()
}

func (t *tide) next() chan struct{} {
	if t.more == nil {
		t.more = make(chan struct{})
	}
	return t.more
}

// wait returns when the event seq is durable, and reports false where it will never be.
func (t *tide) wait(seq uint64) bool {
	for {
		t.mu.Lock()
		there, over := t.seq >= seq, t.over
		more := t.next()
		t.mu.Unlock()
		if there || over {
			return there
		}
		<-more
	}
}
