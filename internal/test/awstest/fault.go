package awstest

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"time"

	"scrimp/internal/test/awstest/catalog"
)

// faults holds the injected faults.
type faults struct {
	rules  []*Fault
	late   time.Duration
	skew   time.Duration
	broken []string // codes with which the next launches fail
	pools  []*refusal
}

// A Fault affects requests.
type Fault struct {
	Action  string        `json:"action"`  // "": every action
	Kind    string        `json:"kind"`    // one of kinds
	Count   int           `json:"count"`   // affected requests; 0: all until Clear
	Every   int           `json:"every"`   // affects one request in this many; 0 and 1: each
	Code    string        `json:"code"`    // of kind error; "": InternalError
	Status  int           `json:"status"`  // of kind error; 0: 500
	Wait    time.Duration `json:"wait"`    // of kind slow
	Message string        `json:"message"` // of kind error
	met     int
}

// kinds lists the kinds of faults. "cut" performs the request and loses the response; "down" does not perform it.
var kinds = []string{"throttle", "error", "deny", "cut", "down", "twice", "slow"}

// Inject adds a fault.
func (s *Server) Inject(f Fault) error {
	if !slices.Contains(kinds, f.Kind) {
		return fmt.Errorf("fault kind %q is none of %v", f.Kind, kinds)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.rules = append(s.faults.rules, &f)
	return nil
}

// Clear removes all faults.
func (s *Server) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = faults{}
}

// Late delays the visibility of later launches, because EC2's responses are eventually consistent.
func (s *Server) Late(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.late = d
}

// Skew moves the clock for checks of signatures.
func (s *Server) Skew(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.skew = d
}

// BreakLaunch makes the next launched instances end before they run, with the given state reason code, such as
// Server.InternalError or Client.VolumeLimitExceeded.
func (s *Server) BreakLaunch(codes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.broken = append(s.faults.broken, codes...)
}

// A refusal makes a pool refuse launches.
type refusal struct {
	pool  catalog.Pool
	code  string
	count int
}

// refusals lists the possible refusals of a pool with their documented texts: "Error codes for the Amazon EC2 API".
var refusals = map[string]*apiError{
	"InsufficientInstanceCapacity": refuse(http.StatusInternalServerError, "InsufficientInstanceCapacity",
		"There is not enough capacity to fulfill your request."),
	"UnfulfillableCapacity": refuse(http.StatusInternalServerError, "UnfulfillableCapacity",
		"At this time there isn't enough spare capacity to fulfill your request."),
	"SpotMaxPriceTooLow": bad("SpotMaxPriceTooLow",
		"Your Spot request price is lower than the minimum required Spot request fulfillment price."),
	"MaxSpotInstanceCountExceeded": bad("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded"),
	"VcpuLimitExceeded": bad("VcpuLimitExceeded",
		"You have requested more vCPU capacity than your current vCPU limit."),
	"Unsupported": bad("Unsupported", "The requested configuration is currently not supported."),
}

// Refuse makes a pool refuse the next launches with a code, whatever its room; Zone "" is every zone, and a count of
// 0 is until Clear.
func (s *Server) Refuse(p catalog.Pool, code string, count int) error {
	if refusals[code] == nil {
		return fmt.Errorf("%q is no code that a pool answers with", code)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.pools = append(s.faults.pools, &refusal{p, code, count})
	return nil
}

// refused returns the present refusal of a pool, if any. A trial does not use it up.
func (f *faults) refused(p catalog.Pool, trial bool) error {
	for _, r := range f.pools {
		if r.pool.Type != p.Type || r.pool.Spot != p.Spot || r.pool.Zone != "" && r.pool.Zone != p.Zone {
			continue
		}
		if r.count > 0 && !trial {
			if r.count--; r.count == 0 {
				f.pools = slices.DeleteFunc(f.pools, func(o *refusal) bool { return o == r })
			}
		}
		return refusals[r.code]
	}
	return nil
}

// Calls returns the number of requests of an action, including faulty ones.
func (s *Server) Calls(action string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[action]
}

// A mishap is the effect of faults on one request.
type mishap struct {
	err        error
	cut, twice bool
	down       bool
	throttled  bool
	wait       time.Duration
}

func (s *Server) meet(action string) (m mishap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[action]++
	for _, f := range slices.Clone(s.faults.rules) {
		if f.Action != "" && f.Action != action {
			continue
		}
		f.met++
		if f.Every > 1 && f.met%f.Every != 0 {
			continue
		}
		if f.Count > 0 {
			if f.Count--; f.Count == 0 {
				s.faults.rules = slices.DeleteFunc(s.faults.rules, func(o *Fault) bool { return o == f })
			}
		}
		m.add(f, action)
	}
	return m
}

func (m *mishap) add(f *Fault, action string) {
	switch f.Kind {
	case "throttle":
		m.throttled = true
		m.err = refuse(http.StatusServiceUnavailable, "RequestLimitExceeded", "Request limit exceeded.")
	case "error":
		e := refuse(http.StatusInternalServerError, "InternalError", "An internal error has occurred")
		if f.Code != "" {
			e.code = f.Code
		}
		if f.Status != 0 {
			e.status = f.Status
		}
		if f.Message != "" {
			e.message = f.Message
		}
		m.err = e
	case "deny":
		m.err = unauthorized(action, true)
	case "cut":
		m.cut = true
	case "down":
		m.down = true
	case "twice":
		m.twice = true
	case "slow":
		m.wait += f.Wait
	}
}

// unauthorized is EC2's refusal of what a policy does not allow. The message is encoded for
// sts:DecodeAuthorizationMessage; an explicit deny is what the action of a budget adds.
func unauthorized(action string, explicit bool) error {
	return refuse(http.StatusForbidden, "UnauthorizedOperation", "You are not authorized to perform this operation. "+
		"User: arn:aws:iam::123456789012:user/test is not authorized to perform: ec2:%s on resource: * %s. "+
		"Encoded authorization failure message: %s", action, map[bool]string{
		true:  "with an explicit deny in an identity-based policy",
		false: "because no identity-based policy allows the ec2:" + action + " action"}[explicit], hash([]byte(action)))
}

func requestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // rand.Read never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
