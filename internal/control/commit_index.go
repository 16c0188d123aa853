package control

import (
	"sync"
	"sync/atomic"
)

// commitIndex tracks how far the log is durable and lets callers wait for more. Its zero value is an empty log.
type commitIndex struct {
	mu   sync.Mutex
	seq  uint64
	more chan struct{} // closed when seq rises; nil: nobody waits
	over bool          // seq will not rise any more
	lost atomic.Bool   // events beyond seq were stepped, so readers have seen state that will never be durable
}

// rise marks all events up to seq as durable.
func (i *commitIndex) rise(seq uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.seq = max(i.seq, seq)
	i.wake()
}

// lose ends the index after a failed write.
func (i *commitIndex) lose() {
	i.lost.Store(true) // before any waiter wakes
	i.end()
}

// end wakes all waiters: the log takes no more events.
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

// wait returns once event seq is durable. It returns false if it never will be.
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
