// Package turn lets what has one name be done one after the other.
package turn

import "sync"

// Turns are the names of what is being done. The zero value is ready.
type Turns struct {
	mu   sync.Mutex
	busy map[string]chan struct{}
}

// Alone waits until nobody else does what has that name, and returns what ends it.
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
