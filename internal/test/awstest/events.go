package awstest

import (
	"fmt"
	"slices"
	"time"

	"scrimp/internal/test/awstest/catalog"
)

func (s *Server) change(id string, do func(*instance, time.Time) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.advance(now)
	for _, i := range s.instances {
		if i.id == id {
			err := do(i, now)
			s.advanceOne(i, now)
			return err
		}
	}
	return fmt.Errorf("instance %s is not listed", id)
}

// Interrupt makes the cloud reclaim a spot instance: a rebalance recommendation now, the notice after
// Spans.Rebalance, the end after Spans.Notice. Code is the status of its request then; "":
// instance-terminated-no-capacity.
func (s *Server) Interrupt(id, code string) error {
	return s.change(id, func(i *instance, now time.Time) error {
		if code == "" {
			code = "instance-terminated-no-capacity"
		}
		switch {
		case interruptions[code] == "":
			return fmt.Errorf("%q is no status code of an interruption", code)
		case i.request == nil:
			return fmt.Errorf("instance %s is on-demand, which is not interrupted", id)
		case !live(i.state):
			return fmt.Errorf("instance %s is %s", id, stateNames[i.state])
		case !i.notice.IsZero():
			return nil
		}
		i.interruption, i.rebalance, i.notice = code, now, now.Add(s.o.Spans.Rebalance)
		i.end = i.notice.Add(s.o.Spans.Notice)
		return nil
	})
}

// Reclaim reclaims a spot instance at once, as if its notice came too late to be read.
func (s *Server) Reclaim(id string) error {
	return s.change(id, func(i *instance, now time.Time) error {
		switch {
		case i.request == nil:
			return fmt.Errorf("instance %s is on-demand, which is not interrupted", id)
		case !live(i.state):
			return fmt.Errorf("instance %s is %s", id, stateNames[i.state])
		}
		i.interruption, i.notice, i.end = "instance-terminated-no-capacity", now, now
		return nil
	})
}

// Stop stops an instance as a user does. From then on only its volumes are billed. Source: "Stop and start Amazon
// EC2 instances", EC2 User Guide; an instance of a one-time spot request cannot be stopped.
func (s *Server) Stop(id string) error {
	return s.change(id, func(i *instance, now time.Time) error {
		switch {
		case i.request != nil:
			return fmt.Errorf("instance %s is of a one-time spot request, and cannot be stopped", id)
		case i.state != running:
			return fmt.Errorf("instance %s is %s", id, stateNames[i.state])
		}
		i.state, i.billed, i.due = stopping, now, now.Add(s.o.Spans.Ending)
		i.reasonCode, i.reasonText = "Client.UserInitiatedShutdown", "Client.UserInitiatedShutdown: User initiated shutdown"
		i.transition = userInitiated(now)
		s.powerOff(i, true)
		return nil
	})
}

// Rebalance sends a rebalance recommendation for a spot instance without ending it.
func (s *Server) Rebalance(id string) error {
	return s.change(id, func(i *instance, now time.Time) error {
		if i.request == nil {
			return fmt.Errorf("instance %s is on-demand", id)
		}
		i.rebalance = now
		return nil
	})
}

// Kill ends an instance without a notice, because its hardware failed.
func (s *Server) Kill(id string) error {
	return s.change(id, func(i *instance, now time.Time) error {
		text := "Server.InternalError: Internal error"
		if i.running.IsZero() {
			i.broken, text = "Server.InternalError", text+" on launch"
		}
		s.finish(i, now, "Server.InternalError", text, "Server.InternalError", false)
		return nil
	})
}

// Impair makes an instance's status checks fail and kills its processes; it stays running and billed.
func (s *Server) Impair(id string) error {
	return s.change(id, func(i *instance, _ time.Time) error {
		i.impaired = true
		s.powerOff(i, false)
		return nil
	})
}

// Shutdown shuts the instance down from within its system.
func (s *Server) Shutdown(id string) error {
	return s.change(id, func(i *instance, now time.Time) error {
		s.ownShutdown(i, now)
		return nil
	})
}

func (s *Server) ownShutdown(i *instance, now time.Time) {
	const code, text = "Client.InstanceInitiatedShutdown", "Client.InstanceInitiatedShutdown: Instance initiated shutdown"
	if i.spec.shutdown == "terminate" || i.request != nil { // a one-time spot instance cannot be stopped
		s.finish(i, now, code, text, "", false)
		return
	}
	if i.state == running {
		i.state, i.billed, i.due = stopping, now, now.Add(s.o.Spans.Ending)
		i.reasonCode, i.reasonText, i.transition = code, text, ""
		s.powerOff(i, true)
	}
}

// Terminate terminates an instance as an administrator does.
func (s *Server) Terminate(id string) error {
	return s.change(id, func(i *instance, now time.Time) error {
		s.endByUser(i, now)
		return nil
	})
}

// SetCapacity sets the number of instances that fit in a pool; negative: no limit. It interrupts spot instances
// above it, newest first.
func (s *Server) SetCapacity(p catalog.Pool, n int) error {
	s.mu.Lock()
	delete(s.capacity, p)
	if n >= 0 {
		s.capacity[p] = n
	}
	var there []string
	for _, i := range s.instances {
		if p.Spot && i.request != nil && live(i.state) && i.typ.Name == p.Type && i.zone.Name == p.Zone {
			there = append(there, i.id)
		}
	}
	s.mu.Unlock()
	if n < 0 || len(there) <= n {
		return nil
	}
	slices.Reverse(there)
	for _, id := range there[:len(there)-n] {
		if err := s.Interrupt(id, ""); err != nil {
			return err
		}
	}
	return nil
}

// SetSpotPrice sets a pool's price. Instances with a lower maximum price are interrupted with a notice.
func (s *Server) SetSpotPrice(typ, zone, price string) error {
	p, err := catalog.ParsePrice(price)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.advance(now)
	pool := catalog.Pool{Type: typ, Zone: zone, Spot: true}
	s.spot[pool] = append(slices.Clone(s.spotHistory(typ, zone)), catalog.Step{From: now, Pico: p})
	s.advance(now)
	return nil
}

// SetQuota sets a quota; negative: no limit.
func (s *Server) SetQuota(code string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.quotas, code)
	if n >= 0 {
		s.quotas[code] = n
	}
}

// AddAddress adds an unused public address to the account.
func (s *Server) AddAddress(region string, labels map[string]string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seq++
	a := &address{seq: s.seq, id: s.id("eipalloc"), region: region, public: fmt.Sprintf("198.51.100.%d", s.seq%256),
		tags:    labels,
		created: s.now()}
	s.addresses = append(s.addresses, a)
	return a.id
}

// Left lists what still exists by kind, with tags: instances that are not terminated, volumes, network interfaces,
// addresses, launch templates, security groups and placement groups.
func (s *Server) Left() (list []Thing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(s.now())
	add := func(kind, id, region string, t tags) { list = append(list, Thing{kind, id, region, t}) }
	for _, i := range s.instances {
		if i.state != terminated {
			add("instance", i.id, i.region, i.tags)
		}
	}
	for _, v := range s.volumes {
		add("volume", v.id, v.region, v.tags)
	}
	for _, k := range s.cards {
		add("network-interface", k.id, k.region, k.tags)
	}
	for _, a := range s.addresses {
		add("address", a.id, a.region, a.tags)
	}
	for _, t := range s.templates {
		add("launch-template", t.id, t.region, t.tags)
	}
	for _, g := range s.groups {
		add("security-group", g.id, g.region, g.tags)
	}
	for _, p := range s.places {
		add("placement-group", p.id, p.region, p.tags)
	}
	return list
}

// A Thing is a resource of the account.
type Thing struct {
	Kind   string            `json:"kind"`
	ID     string            `json:"id"`
	Region string            `json:"region"`
	Tags   map[string]string `json:"tags,omitempty"`
}
