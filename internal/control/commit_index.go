package control

import (
	"sync"
	"sync/atomic"
)

// commitIndex says how far the log is durable, and lets wait for more. Its zero value is a log without events.
type commitIndex struct {
	mu   sync.Mutex
	seq  uint64
	more chan struct{} // closed when seq rises; nil: nobody waits
	over bool          // it will rise no more
	lost atomic.Bool   // and events beyond seq were stepped: what was seen of them is not so
}

// rise says that all events up to seq are durable.
func (i *commitIndex) rise(seq uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.seq = max(i.seq, seq)
	i.wake()
}

// lose is end where a write has failed.
func (i *commitIndex) lose() {
	i.lost.Store(true) // before anybody is let go
	i.end()
}

// end lets go who waits for what will not be durable: the log takes no more.
func (i *commitIndex) end() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.over = true
	i.wake()
}

func (i *commitIndex) wake() {
	if i.more != nil {
		close(i.more)
		i.more = nil
	}
}

func (i *commitIndex) at() uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.seq
}

func (i *commitIndex) changed() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.next()
}

func (i *commitIndex) next() chan struct{} {
	if i.more == nil {
		i.more = make(chan struct{})
	}
	return i.more
}

// wait returns when the event seq is durable, and reports false where it will never be.
func (i *commitIndex) wait(seq uint64) bool {
	for {
		i.mu.Lock()
		there, over := i.seq >= seq, i.over
		more := i.next()
		i.mu.Unlock()
		if there || over {
			return there
		}
		<-more
	}
}
