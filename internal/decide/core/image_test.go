package core

import (
	"fmt"
	"testing"
	"time"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// imageRig is a core that offers a machine of eight processors that runs images, shared by tasks if seats is set. A
// job has run in an image on it, or still runs.
func imageRig(t *testing.T, image string, seats int) *warmRig {
	t.Helper()
	w := &warmRig{Machine: New(), t: t, cost: map[string]money.Amount{}}
	cfg := DefaultConfig()
	cfg.Idle, cfg.Seats, cfg.MaxRunning = time.Hour, seats, 9
	o := market.Offer{ID: "p/z/m/on-demand", Provider: "p", Zone: "z", Machine: "m", Capacity: market.OnDemand, CPUs: 8, Memory: 16 << 30,
		Speed: 1, Images: true, Currency: money.USD}
	w.step(0, Configured{Config: cfg})
	w.step(0, MarketSeen{Offers: []market.Offer{o}, Quotes: []market.Quote{{Offer: o.ID, Rate: 1e12, Priced: true, Available: true, At: agentsStart}}})
	w.names("j", plan.Need{Requirements: plan.Requirements{CPUs: 1, Image: image}})
	w.step(0, LaunchDone{Launch: "j.1", Instance: "i1", Offer: o.ID, Rate: 1e12, From: agentsStart})
	w.step(0, MachineRegistered{Instance: "i1", Allocation: "j.1", Key: "k"})
	w.step(time.Minute, Tick{})
	w.begins("j.1")
	w.step(9*time.Minute, Tick{})
	return w
}

// names submits a job with the given need and returns its launch, or nil.
func (w *warmRig) names(job string, need plan.Need) *Launch {
	out := w.step(0, JobSubmitted{Job: job, Terms: Terms{Name: job, Currency: money.USD, Steps: 100, Priority: 1, Restart: time.Minute,
		Owner: ledger.Owner{Team: "vision"}, Need: need}})
	for _, a := range out.Actions {
		if l, ok := a.(Launch); ok {
			return &l
		}
	}
	return nil
}

// Only a job that names the image of a waiting or partly free machine takes it; any other job requests a machine
// with its own image. The same holds if an alternative names the image.
func TestImage_ReusesOnlyAMachineOfTheSameImage(t *testing.T) {
	either := plan.Need{Requirements: plan.Requirements{CPUs: 1, Image: "a/a"},
		Variants: []plan.Variant{{Name: "boxed", Throughput: 2, Requirements: plan.Requirements{CPUs: 1, Image: "b/b"}}}}
	for _, how := range []string{"waits", "beside"} {
		for _, c := range []struct {
			image  string
			next   plan.Need
			taken  bool
			launch string
		}{
			{"", plan.Need{Requirements: plan.Requirements{CPUs: 1}}, true, ""},
			{"a/a", plan.Need{Requirements: plan.Requirements{CPUs: 1, Image: "a/a"}}, true, ""},
			{"a/a", plan.Need{Requirements: plan.Requirements{CPUs: 1, Image: "b/b"}}, false, "b/b"},
			{"a/a", plan.Need{Requirements: plan.Requirements{CPUs: 1}}, false, ""},
			{"", plan.Need{Requirements: plan.Requirements{CPUs: 1, Image: "a/a"}}, false, "a/a"},
			{"c/c", either, false, "b/b"}, // the alternative is twice as fast
		} {
			seats := map[string]int{"beside": 4}[how]
			w := imageRig(t, c.image, seats)
			if how == "waits" {
				w.step(0, AttemptEnded{Attempt: "j.1", Reason: "completed"})
				w.step(10*time.Second, MachineCleaned{Instance: "i1"})
				if !w.waits() {
					t.Fatal("it does not wait")
				}
			}
			l := w.names("k", c.next)
			k, _ := w.Job("k")
			if taken := k.Attempt() != nil && k.Attempt().Instance() == "i1"; taken != c.taken || taken != (l == nil) {
				t.Errorf("%s with %q, %+v: taken %v, launched %+v", how, c.image, c.next, taken, l)
			}
			if l != nil && l.Image != c.launch {
				t.Errorf("%s with %q, %+v: the launch asks for %q", how, c.image, c.next, l.Image)
			}
			if on := w.State().Instance("i1").Machine(); on.Image != c.image {
				t.Errorf("i1 was rented with %q, and is said to run %q", c.image, on.Image)
			}
		}
	}
}

// A gang keeps its remaining machines only if it continues in their image.
func TestImage_GangKeepsMachinesOfItsImage(t *testing.T) {
	g := newGang(t, 2, 0, func(x *Terms) {
		x.Need.Variants = []plan.Variant{{Name: "boxed", Requirements: plan.Requirements{Image: "a/a"}}}
	})
	g.grants("g.1", "i1", "i2")
	j := g.job()
	g.queue.Keeping, g.queue.Keeps = j, g.decider.Survivors(j.Attempt())
	defer func() { g.queue.Keeping, g.queue.Keeps = nil, nil }()
	if same, other := g.decider.Kept(j, "p/z/m/spot", "", 2), g.decider.Kept(j, "p/z/m/spot", "boxed", 2); len(same) != 2 || len(other) != 0 {
		t.Errorf("without an image it keeps %v, in one %v", same, other)
	}
}

// An image that the provider cannot run fails its job after some tries with the provider's message. Other jobs can
// use the offer.
func TestImage_RefusalFailsOnlyItsJob(t *testing.T) {
	w := imageRig(t, "", 0)
	need := plan.Need{Requirements: plan.Requirements{CPUs: 1, Image: "a/a"}}
	first := w.names("first", need)
	// the next launch retries for all
	w.step(time.Second, LaunchRefused{Launch: first.Allocation, Reason: "no_capacity"})
	w.step(time.Hour, JobEnded{Job: "first"})
	l := w.names("k", plan.Need{Requirements: plan.Requirements{CPUs: 1, Image: "no/such"}})
	for tries := 1; l != nil; tries++ {
		out := w.step(time.Minute, LaunchRefused{Launch: l.Allocation, Reason: "image", Detail: "no/such is not there"})
		l = nil
		for _, a := range out.Actions {
			if again, ok := a.(Launch); ok {
				l = &again
			}
		}
		k, _ := w.Job("k")
		if over := tries == 3; (l == nil) != over || (k.State() == Failed) != over || k.Detail() != "no/such is not there" && over {
			t.Fatalf("after %d tries it is %s: %s (%s), and launches %+v", tries, k.State(), k.Why(), k.Detail(), l)
		}
		if w.names(fmt.Sprint("other", tries), need) == nil { // while it retries
			t.Fatalf("after %d tries another job waits for the offer", tries)
		}
	}
}
