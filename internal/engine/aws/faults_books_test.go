//go:build !local

package aws

import (
	"math/big"
	"strings"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/engine/aws/tag"
	"scrimp/internal/market"
)

var causes = map[string]engine.Cause{"Client.UserInitiatedShutdown": engine.Terminated,
	"Client.InstanceInitiatedShutdown": engine.Stopped, "Server.SpotInstanceTermination": engine.Interrupted,
	"Server.InternalError": engine.Interrupted}

// failures are the reasons of instances that end before they run.
var failures = map[string]bool{"Server.InternalError": true, "Client.InternalError": true,
	"Server.InsufficientInstanceCapacity": true, "Client.VolumeLimitExceeded": true}

// books compares what the servers reported with the cloud's own bill.
func (h *hurt) books() (machines int) {
	for _, k := range h.asks {
		if n := len(h.rented[k.q.Key]); n != 0 && n != k.q.Machines() { // a fleet grants all required machines or none
			h.Errorf("%s has had %d machines, and asks for %d", k.q.Key, n, k.q.Machines())
		}
	}
	for _, l := range h.Bill() {
		if l.Kind == "reservation" {
			continue
		}
		i, ok := h.told[l.Instance]
		if !ok || i.State != engine.Ended {
			h.Errorf("%s of %s is billed from %v to %v, and listed as %+v", l.ID, l.Tags[tag.Key], l.From, l.To, i)
			continue
		}
		want, seconds := l.USD, int64(i.Ended.Sub(i.Launched)/time.Second)
		if l.Kind == "instance" {
			machines++
			if i.Cause != causes[h.reason[i.ID]] {
				h.Errorf("%s ended for %s, and is said to be %s", i.ID, h.reason[i.ID], i.Cause)
			}
			last := l.To.Add(time.Second) // or, if EC2 does not report it, when a server could first see it
			if h.unsaid(i.ID) {
				last = h.firstPoll(l.From, l.To)
			}
			if i.Ended.Before(l.To) || i.Ended.After(last) {
				h.Errorf("%s ended at %v, and is said to at %v (%s)", i.ID, l.To, i.Ended, h.reason[i.ID])
			}
		}
		least := int64(60)
		if l.Kind == "instance" && strings.HasSuffix(string(i.Offer), "/reserved") {
			least = 0 // each second of a reservation is billed once, used or not
		}
		switch {
		case h.unsaid(i.ID) && l.Seconds == 0: // its price is not known
			continue
		case h.unsaid(i.ID): // its own end counts, at the same price per second
			want = new(big.Rat).Mul(l.USD, big.NewRat(max(least, seconds), l.Seconds))
		}
		rule := map[string]string{"instance": "instance", "volume": "disk", "address": "address"}[l.Kind]
		got := sumOf(&i, rule)
		if off := new(big.Rat).Sub(got, want); off.Abs(off).Cmp(big.NewRat(1, 1e9)) > 0 {
			h.Errorf("%s of %s (%s, %s, %d s) costs %s, and is told as %s", rule, i.ID, i.Offer, h.reason[i.ID], seconds,
				want.FloatString(12), got.FloatString(12))
		}
	}
	h.reservation()
	for id := range h.told {
		if h.reason[id] == "" {
			h.Errorf("%s is listed, and was not in the cloud", id)
		}
		if i := h.told[id]; h.never[id] && failures[h.reason[id]] { // a machine that was terminated meanwhile may have run
			h.failed++
			if sumOf(&i, "all").Sign() != 0 || len(i.Bill) == 0 || i.Cause != engine.Interrupted {
				h.Errorf("%s never ran (%s), and is told as %s of %v", id, h.reason[id], i.Cause, i.Bill)
			}
		}
	}
	return machines
}

// reservation checks that everything rented as reserved ran in the reservation, and nothing else did.
func (h *hurt) reservation() {
	if h.reserved == "" {
		return
	}
	var used, unused, all time.Duration
	for _, l := range h.Bill() {
		switch {
		case l.Kind == "reservation":
			unused += time.Duration(l.Seconds) * time.Second
			all += seatsReserved * l.To.Sub(l.From).Truncate(time.Second)
		case l.Kind == "instance" && strings.HasSuffix(string(h.told[l.Instance].Offer), "/reserved"):
			used += l.To.Sub(l.From).Truncate(time.Second)
		}
	}
	if used+unused != all {
		h.Errorf("of %v that are reserved %v are not used, and machines that were rented as reserved ran for %v", all, unused, used)
	}
	h.inReserved += used
}

// firstPoll returns when servers could first see that a machine had ended.
func (h *hurt) firstPoll(launched, ended time.Time) time.Time {
	for _, at := range h.polls {
		if at.After(ended) && !at.Before(launched.Add(hidden)) { // a poll in the same second may have come before
			return at
		}
	}
	return time.Time{}
}

// sumOf adds up a machine's bill exactly: the disk, the address, the instance (the rest), or everything.
func sumOf(i *engine.Instance, part string) *big.Rat {
	sum := new(big.Rat)
	for _, l := range i.Bill {
		rule := l.Rule
		if rule == "" || rule == market.RuleMinimum || rule == market.RuleInterruptedEarly {
			rule = "instance"
		}
		if rule == part || part == "all" {
			v, _ := new(big.Rat).SetString(l.Amount.String())
			sum.Add(sum, v)
		}
	}
	return sum
}
