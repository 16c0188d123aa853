package ssh

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/lib/wait"
)

// Away names exactly the machine whose cable is out, and stops once the cable is back.
func TestAway_NamesSilentMachine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := newHurt(t, 1, dir)
		h.mu.Lock()
		h.calm = true // nothing happens except what this test does
		h.mu.Unlock()
		away := func() (names []string) {
			for range 20 { // polls
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				_, _, _ = h.d.Offers(ctx)
				cancel()
				_ = wait.For(t.Context(), 3*time.Second)
			}
			for _, m := range h.d.Away() {
				if names = append(names, m.Name); m.Err == nil {
					t.Errorf("%s is away, and nobody says why", m.Name)
				}
			}
			return names
		}
		if names := away(); len(names) > 0 {
			t.Errorf("all answer, and away are %v", names)
		}
		h.machines[1].cut()
		if names := away(); !slices.Equal(names, []string{h.machines[1].name}) {
			t.Errorf("%s is cut off, and away are %v", h.machines[1].name, names)
		}
		h.machines[1].restore()
		if names := away(); len(names) > 0 {
			t.Errorf("all answer again, and away are %v", names)
		}
		_ = h.d.Close(t.Context())
		_ = wait.For(t.Context(), 2*time.Minute) // let running requests arrive
	})
}

// With the usual settings a cable that is out for 20 s loses nothing, and instances behind a
// permanent outage leave the list before the detection time is over.
func TestList_ToleratesShortOutage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		h := newHurt(t, 1, dir)
		h.mu.Lock()
		h.calm = true
		h.mu.Unlock()
		list, err := h.d.Launch(t.Context(), engine.Request{Key: "k", Nodes: 1, Offer: paperOffer})
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		n := slices.IndexFunc(h.machines, func(p *paper) bool { return strings.Contains(list[0].ID, "-"+p.name+"-") })
		// listedFor polls until the machine is not listed, at most for that long, and returns the time.
		listedFor := func(most time.Duration) time.Duration {
			began := time.Now()
			for time.Since(began) < most {
				now, err := h.d.List(t.Context())
				if err == nil && !slices.ContainsFunc(now, func(i engine.Instance) bool {
					return i.ID == list[0].ID && i.State == engine.Running
				}) {
					break
				}
				_ = wait.For(t.Context(), usual.Poll)
			}
			return time.Since(began)
		}
		if span := listedFor(time.Minute); span < time.Minute {
			t.Errorf("all cables are in, and it is lost after %v", span)
		}
		h.machines[n].cut()
		if span := listedFor(20 * time.Second); span < 20*time.Second {
			t.Errorf("its cable is out, and it is lost after %v", span)
		}
		h.machines[n].restore()
		if span := listedFor(time.Minute); span < time.Minute {
			t.Errorf("its cable is in again, and it is lost after %v", span)
		}
		h.machines[n].cut()
		if span := listedFor(time.Hour); span > usual.Detect {
			t.Errorf("its cable stays out, and it is lost after %v", span)
		}
		h.machines[n].restore()
		_ = h.d.Close(t.Context())
		_ = wait.For(t.Context(), 2*time.Minute) // let running requests arrive
	})
}
