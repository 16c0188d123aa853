package core

import (
	"fmt"
	"testing"
	"time"

	"scrimp/internal/decide/state"
)

// While the provider refuses every launch for its quota for an hour, the core tries only a few times, however many jobs
// wait. A refusal is not an attempt of a job.
func TestRefusals_BackOff(t *testing.T) {
	h := newHall(t, 10)
	h.sells(2, true)
	size := 0
	for i := range 50 {
		h.submit(fmt.Sprintf("j-%02d", i), 2, 1)
	}
	refuse := func() {
		for a := range h.step.State.Allocations() {
			h.tell(LaunchRefused{Launch: a.ID(), Reason: "quota", Scope: state.AccountScope})
			return
		}
	}
	for end := h.at.Add(time.Hour); h.at.Before(end); {
		refuse()
		h.at = h.at.Add(5 * time.Second)
		h.tell(Tick{})
		if size == 0 && h.at.Sub(end.Add(-time.Hour)) > 10*time.Minute {
			size = len(snap(t, h.Machine))
		}
	}
	if n := len(h.launched); n < 12 || n > 20 { // ten at once, then 1, 2, 4, 8, 16 and 32 minutes later
		t.Errorf("%d launches in an hour", n)
	}
	if now := len(snap(t, h.Machine)); now > size+2_000 {
		t.Errorf("the state grew from %d to %d bytes by refusals", size, now)
	}
	for _, j := range h.step.State.Jobs() {
		if len(j.Attempts()) > 0 || j.Failures() > 0 {
			t.Errorf("%s has %d attempts and %d failures", j.ID(), len(j.Attempts()), j.Failures())
		}
	}
}

// While one job retries a scope, no other does; its answer counts for all.
func TestRefusals_OneJobRetriesAScope(t *testing.T) {
	h := newHall(t, 10)
	h.sells(2, true)
	h.submit("a", 2, 1)
	h.tell(LaunchRefused{Launch: "a.1", Reason: "no_capacity", Wait: 3 * time.Minute})
	for i := range 20 {
		h.submit(fmt.Sprintf("j-%02d", i), 2, 1)
	}
	h.launched = nil
	for range 5 * 60 / 5 {
		h.at = h.at.Add(5 * time.Second)
		h.tell(Tick{})
	}
	if len(h.launched) != 1 {
		t.Fatalf("%v try it, and one would do", h.launched)
	}
	h.tell(LaunchDone{Launch: h.step.State.Job(h.launched[0]).Asked().ID(), Instance: "i", Offer: "m2", Rate: 1e12, From: h.at})
	h.at = h.at.Add(5 * time.Second)
	h.tell(Tick{})
	if len(h.launched) != 10 {
		t.Errorf("%d run once it is granted, and ten may", len(h.launched))
	}
}

// During the backoff after a refusal, every offer of its scope is listed with the provider's message.
func TestRefusals_OffersInBackoffStateTheReason(t *testing.T) {
	h := newHall(t, 1)
	h.sells(2, true)
	h.submit("a", 2, 1)
	said := func() (list []string) {
		for _, l := range h.Sale() {
			if !l.Cools.IsZero() {
				list = append(list, fmt.Sprint(l.Cools.Sub(h.at), " ", l.CoolsFor))
			}
		}
		return list
	}
	if list := said(); len(list) > 0 {
		t.Errorf("%v cool off, and none was refused", list)
	}
	h.tell(LaunchRefused{Launch: "a.1", Reason: "quota", Detail: "no more of these", Scope: state.AccountScope, Wait: 3 * time.Minute})
	offers := 0
	for range h.Sale() {
		offers++
	}
	list := said()
	if len(list) != offers || list[0] != "3m0s no more of these" {
		t.Errorf("of %d offers %q cool off", offers, list)
	}
	h.at = h.at.Add(3*time.Minute + time.Second)
	h.tell(Tick{})
	h.tell(LaunchDone{Launch: h.step.State.Job("a").Asked().ID(), Instance: "i", Offer: "m2", Rate: 1e12, From: h.at})
	if list := said(); len(list) > 0 {
		t.Errorf("%v cool off, and one was granted", list)
	}
}
