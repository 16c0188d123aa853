package control

import (
	"sync"

	"scrimp/internal/decide/core"
)

// drains are the orders to be given to agents, by attempt. They have a lock of their own: the writer gives them while
// the core may wait for it.
type drains struct {
	mu sync.Mutex
	by map[string]core.Drain
}

func (d *drains) put(o core.Drain) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by == nil {
		d.by = map[string]core.Drain{}
	}
	d.by[o.Attempt] = o
}

func (d *drains) of(attempt string) (o core.Drain, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o, ok = d.by[attempt]
	return o, ok
}
