package server

import (
	"context"
	"slices"
	"sync"
	"testing"

	"scrimp/internal/engine"
)

// slow is an engine whose launches wait; it grants a launch that cannot be cancelled a moment later.
type slow struct {
	firm
	at        sync.Mutex
	asked     []string      // launches neither granted nor cancelled
	granted   []string      // running machines
	looks     int           // reads of the list since the server is stopping
	leaving   bool          // the server is stopping
	launching chan struct{} // closed by the first launch
}

func (l *slow) Launch(_ context.Context, r engine.Request) ([]engine.Instance, error) {
	l.at.Lock()
	defer l.at.Unlock()
	if len(l.asked) == 0 {
		close(l.launching)
		l.asked = []string{r.Key}
	}
	return nil, engine.ErrPending
}

func (l *slow) List(context.Context) (list []engine.Instance, err error) {
	l.at.Lock()
	defer l.at.Unlock()
	if l.leaving {
		if l.looks++; l.looks == 2 {
			l.granted, l.asked = append(l.granted, l.asked...), nil
		}
	}
	for _, key := range l.granted {
		list = append(list, engine.Instance{ID: "i-" + key, Key: key, Offer: "firm", State: engine.Running})
	}
	return list, nil
}

func (l *slow) Terminate(_ context.Context, id string) error {
	l.at.Lock()
	defer l.at.Unlock()
	l.granted = slices.DeleteFunc(l.granted, func(key string) bool { return "i-"+key == id })
	return nil
}

// canceller is a slow engine whose launches can be cancelled.
type canceller struct{ slow }

func (l *canceller) Cancel(_ context.Context, key string) error {
	l.at.Lock()
	defer l.at.Unlock()
	l.asked = slices.DeleteFunc(l.asked, func(k string) bool { return k == key })
	return nil
}

// A server that terminates its machines at its end leaves no launch that could be granted afterwards: it cancels the
// launch if possible, and otherwise looks again.
func TestStop_LeavesNoLaunchBehind(t *testing.T) {
	t.Parallel()
	for _, cancels := range []bool{true, false} {
		l := &slow{launching: make(chan struct{})}
		sells := engine.Driver(l)
		if cancels {
			c := &canceller{slow{launching: make(chan struct{})}}
			l, sells = &c.slow, c
		}
		w := newWorldOf(t, sells, nil)
		w.must("POST", "/v1/jobs", costing("x", "", ""), nil)
		<-l.launching
		l.at.Lock()
		l.leaving = true
		l.at.Unlock()
		w.closeEngines(t.Context())
		if len(l.asked)+len(l.granted) > 0 {
			t.Errorf("can be given up: %v; the server has gone, %v is asked for and %v runs", cancels, l.asked, l.granted)
		}
	}
}
