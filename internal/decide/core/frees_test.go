package core_test

import (
	"testing"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/market"
)

// A reserved machine becomes free when the remaining work of its job is done, by stated work and progress. For a
// job with unknown work the core predicts nothing.
func TestReserved_BecomesFreeWhenTheWorkIsDone(t *testing.T) {
	h := newHall(t, 3)
	frees := func() (int, []time.Time) {
		for o := range h.m.Sale() {
			if o.ID == paidFor {
				return h.m.Frees(&o, h.now)
			}
		}
		t.Fatal("it is not for sale")
		return 0, nil
	}
	if used, at := frees(); used != 0 || len(at) != 0 {
		t.Errorf("%d are in use, and come free at %v", used, at)
	}
	var ends []time.Time
	for _, job := range []string{"a", "b"} {
		h.submit(job, 0)
		h.tell(h.propose())
		if h.on(job) != paidFor {
			t.Fatalf("%s is on %q", job, h.on(job))
		}
		ends = append(ends, h.now.Add(10*time.Hour)) // its work, from its beginning on
		h.later(40 * time.Second)
	}
	used, at := frees()
	if used != 2 || len(at) != 2 {
		t.Fatalf("%d are in use, and come free at %v", used, at)
	}
	for k, end := range ends {
		if off := at[k].Sub(end).Abs(); off > time.Second {
			t.Errorf("machine %d comes free at %v, and its work ends at %v", k, at[k], end)
		}
	}
	h.tell(core.JobSubmitted{Job: "endless", Terms: core.Terms{Currency: "USD", Priority: 1, Restart: time.Minute, Saves: true}})
	h.tell(h.propose())
	if used, at = frees(); h.on("endless") != paidFor || used != 3 || len(at) != 2 {
		t.Errorf("on %q: %d are in use, and come free at %v", h.on("endless"), used, at)
	}
	for o, l := range h.m.Sale() {
		if o.ID == paidFor && l.Quote.Available {
			t.Error("all are in use, and one is for sale")
		}
		if o.ID == rented {
			if used, at := h.m.Frees(&o, h.now); used != 0 || at != nil {
				t.Errorf("on-demand: %d in use, free at %v", used, at)
			}
		}
	}
	other := market.Offer{ID: "other", Reserved: market.Reservation{Count: 2, From: start, Until: start.Add(time.Hour)}}
	if used, at := h.m.Frees(&other, h.now); used != 0 || len(at) != 0 {
		t.Errorf("what nobody has: %d in use, free at %v", used, at)
	}
}
