package control

import (
	"sync"

	"scrimp/internal/decide/core"
)

// drains holds the pending orders for agents, by attempt. It has its own lock, because the writer adds orders while
// the core may be waiting for the writer.
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
