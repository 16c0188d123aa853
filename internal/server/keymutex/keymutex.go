// Package keymutex serializes actions with the same name.
package keymutex

import "sync"

// Turns holds the names of actions in progress. The zero value is ready.
type Turns struct {
	mu   sync.Mutex
	busy map[string]chan struct{}
}

// Alone waits until no action of that name is in progress. The caller calls done at the end of its own.
func (t *Turns) Alone(what string) (done func()) {
	for {
		t.mu.Lock()
		before, busy := t.busy[what]
		if !busy {
			mine := make(chan struct{})
			if t.busy == nil {
				t.busy = map[string]chan struct{}{}
			}
			t.busy[what] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				delete(t.busy, what)
				t.mu.Unlock()
				close(mine)
			}
		}
		t.mu.Unlock()
		<-before
	}
}
