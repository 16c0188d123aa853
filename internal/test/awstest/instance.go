package awstest

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"scrimp/internal/test/awstest/catalog"
	"scrimp/internal/test/awstest/machine"
)

// The states of an instance with their documented codes.
const (
	pending      = 0
	running      = 16
	shuttingDown = 32
	terminated   = 48
	stopping     = 64
	stopped      = 80
)

var stateNames = map[int]string{pending: "pending", running: "running", shuttingDown: "shutting-down",
	terminated: "terminated", stopping: "stopping", stopped: "stopped"}

type instance struct {
	seq                     int
	id, reservation, region string
	zone                    catalog.Zone
	typ                     catalog.Type
	image                   catalog.Image
	spec                    spec
	state                   int
	token, fleet            string
	index                   int
	launched, visible       time.Time
	running, billed         time.Time // start and end of its bill
	due                     time.Time // time of the next state
	ended                   time.Time // time of the termination
	reasonCode, reasonText  string
	transition              string
	request                 *spotRequest
	tags                    tags
	address                 netip.Addr
	public                  string
	subnet                  string
	broken                  string // the code with which it ends instead of running
	impaired                bool
	rebalance, notice, end  time.Time // of an interruption
	interruption            string    // status code of the spot request then
	byCloud                 bool      // it ended by an interruption
	console                 []byte
	machine                 *machine.Machine
	held                    *reservation // capacity reservation that it runs in; nil: none
	heldTo                  time.Time    // when it left the reservation
}

// A spotRequest is the request of a spot instance.
type spotRequest struct {
	seq               int
	id, region, state string
	code, message     string
	created, updated  time.Time
	max               int64 // maximum price
	instance          *instance
	tags              tags
}

func (r *spotRequest) status(now time.Time, code, message string) {
	r.code, r.message, r.updated = code, message, now
}

// advance performs the changes that are due by now.
func (s *Server) advance(now time.Time) {
	for _, i := range s.instances {
		s.advanceOne(i, now)
	}
	s.instances = slices.DeleteFunc(s.instances, func(i *instance) bool {
		over := i.state == terminated && now.Sub(i.ended) >= s.o.Spans.Listed
		if over {
			s.ended = append(s.ended, i)
		}
		return over
	})
}

// advanceOne takes an instance through what is due by now, in the order in which EC2 does it.
func (s *Server) advanceOne(i *instance, now time.Time) {
	if i.state == pending && !i.due.After(now) {
		s.begin(i)
	}
	if i.state == running && i.notice.IsZero() {
		s.priceOut(i, now)
	}
	s.leaveHeld(i, now)
	s.interrupt(i, now)
	if (i.state == shuttingDown || i.state == stopping) && !i.due.After(now) && i.powerless() {
		i.state += terminated - shuttingDown
		if i.state == terminated {
			i.ended = i.due
			s.release(i)
		}
	}
}

// begin ends the pending state of an instance: it runs, or its launch fails.
func (s *Server) begin(i *instance) {
	if i.broken != "" {
		s.finish(i, i.due, i.broken, i.broken+": "+launchFailures[i.broken], i.broken, false)
		return
	}
	i.state, i.running = running, i.due
	s.boot(i)
}

// priceOut gives notice to a spot instance whose request has a maximum price that the market has passed.
func (s *Server) priceOut(i *instance, now time.Time) {
	if i.request == nil || i.request.max <= 0 {
		return
	}
	if at, over := s.outbid(i, now); over {
		i.notice, i.end, i.interruption = at, at.Add(s.o.Spans.Notice), "instance-terminated-by-price"
	}
}

// interrupt sends a live instance the warnings that are due, and ends it when its notice has run out.
func (s *Server) interrupt(i *instance, now time.Time) {
	if !live(i.state) {
		return
	}
	if !i.notice.IsZero() && !i.notice.After(now) && i.request.code == "fulfilled" {
		i.request.status(i.notice, "marked-for-termination", "Your spot instance is marked for termination.")
	}
	if due(i.rebalance, now) || due(i.notice, now) {
		s.warn(i)
	}
	if !i.end.IsZero() && !i.end.After(now) {
		i.byCloud = true
		s.finish(i, i.end, "Server.SpotInstanceTermination", "Server.SpotInstanceTermination: Spot instance termination",
			"Server.SpotInstanceTermination", true)
	}
}

// neverRan reports whether its launch failed: neither it nor its disks are billed.
func (i *instance) neverRan() bool { return i.broken != "" && i.running.IsZero() }

// launchFailures are documented state reasons of instances that end at once.
var launchFailures = map[string]string{
	"Server.InternalError":                "Internal error on launch",
	"Server.InsufficientInstanceCapacity": "There was insufficient capacity available to satisfy the launch request.",
	"Client.VolumeLimitExceeded":          "Volume limit exceeded",
	"Client.InternalError":                "Client error on launch",
}

func due(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }

// powerless reports whether none of the instance's processes runs.
func (i *instance) powerless() bool { return i.machine == nil || i.machine.Over() }

func live(state int) bool { return state == pending || state == running }

// outbid returns when the spot price rose above the maximum price.
func (s *Server) outbid(i *instance, now time.Time) (time.Time, bool) {
	h := s.spotHistory(i.typ.Name, i.zone.Name)
	if catalog.PriceAt(h, i.running) > i.request.max {
		return i.running, true
	}
	for _, p := range h {
		if p.From.After(i.running) && !p.From.After(now) && p.Pico > i.request.max {
			return p.From, true
		}
	}
	return time.Time{}, false
}

// finish shuts an instance down at a moment, for a reason.
func (s *Server) finish(i *instance, at time.Time, code, text, transition string, notice bool) {
	if i.state >= shuttingDown && i.state != stopping && i.state != stopped {
		return
	}
	if i.billed.IsZero() {
		i.billed = at
	}
	i.state, i.due = shuttingDown, at.Add(s.o.Spans.Ending)
	i.reasonCode, i.reasonText, i.transition = code, text, transition
	if r := i.request; r != nil && r.state == "active" {
		r.state = "closed"
		switch {
		case notice:
			r.status(at, i.interruption, interruptions[i.interruption])
		case code == "Client.UserInitiatedShutdown", code == "Client.InstanceInitiatedShutdown":
			r.status(at, "instance-terminated-by-user", "Spot Instance terminated due to user-initiated termination.")
		default:
			r.status(at, "instance-terminated-by-service",
				"Your Spot instance was terminated because of a service failure.")
		}
	}
	s.powerOff(i, code != "Server.InternalError")
	if s.o.Spans.Ending == 0 && i.powerless() {
		i.state, i.ended = terminated, at
		s.release(i)
	}
}

// interruptions are the status codes of spot requests after an interruption. Source: "Spot Instance request status
// codes", EC2 User Guide.
var interruptions = map[string]string{
	"instance-terminated-no-capacity": "Your Spot Instance was terminated because there was no longer enough Spot " +
		"capacity available.",
	"instance-terminated-by-price": "Your Spot Instance was terminated because the Spot price exceeded your maximum " +
		"price.",
	"instance-terminated-capacity-oversubscribed": "Your Spot Instance was terminated because the number of Spot " +
		"requests " +
		"with maximum prices equal to or higher than yours exceeded the capacity.",
	"instance-terminated-by-service":    "Your Spot Instance was terminated from a stopped state.",
	"instance-terminated-by-experiment": "Your Spot Instance was terminated by an experiment.",
}

// release frees the resources of a terminated instance.
func (s *Server) release(i *instance) {
	s.volumes = slices.DeleteFunc(s.volumes, func(v *volume) bool {
		if v.instance != i {
			return false
		}
		v.instance = nil
		if !v.own {
			return false
		}
		if v.deleted = i.ended; !i.neverRan() {
			s.deleted = append(s.deleted, v)
		}
		return true
	})
	s.cards = slices.DeleteFunc(s.cards, func(c *card) bool {
		if c.instance != i {
			return false
		}
		c.instance = nil
		return c.own
	})
	for _, a := range s.addresses {
		if a.instance == i {
			a.instance = nil
		}
	}
}

// nextAddress returns a free private address of the cloud's net.
func (s *Server) nextAddress() (netip.Addr, bool) {
	net := s.net.Masked().Addr().As4()
	base := binary.BigEndian.Uint32(net[:])
	size := uint32(1) << (32 - s.net.Bits())
	for n := uint32(0); n < size/4; n++ {
		k := (s.nextNet + n) % (size/4 - 1)
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], base+k*4+2) // the host's end of its link is one below
		a := netip.AddrFrom4(b)
		if !slices.ContainsFunc(s.instances, func(i *instance) bool { return i.address == a && i.state != terminated }) {
			s.nextNet = k + 1
			return a, true
		}
	}
	return netip.Addr{}, false
}

// find returns a listed instance that is visible by now.
func (c *call) find(id string) *instance {
	for _, i := range c.s.instances {
		if i.id == id && i.region == c.region && !i.visible.After(c.now) {
			return i
		}
	}
	return nil
}
