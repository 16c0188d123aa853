package server

import (
	"context"
	"slices"
	"sync"
	"testing"

	"scrimp/internal/engine"
)

// slow is an engine whose launches wait; one that cannot be given up is granted a moment after it
// was asked for.
type slow struct {
	firm
	at        sync.Mutex
	asked     []string      // launches that were neither granted nor given up
	granted   []string      // machines that run
	looks     int           // at the list since it is leaving
	leaving   bool          // the server
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

// canceller is one whose launches can be given up.
type canceller struct{ slow }

func (l *canceller) Cancel(_ context.Context, key string) error {
	l.at.Lock()
	defer l.at.Unlock()
	l.asked = slices.DeleteFunc(l.asked, func(k string) bool { return k == key })
	return nil
}

// A server that gives back every machine of its own leaves no launch behind that is granted when
// nobody is left to end it: it gives it up where it can, and looks again where it cannot.
func TestAStopLeavesNoLaunchBehind(t *testing.T) {
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
