package awstest

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// faults are what is injected now. Each rule names an action, "" is all.
type faults struct {
	rules  []*Fault
	late   time.Duration
	skew   time.Duration
	broken []string // codes that the next launches fail with
	pools  []*refusal
}

// A Fault is met by requests.
type Fault struct {
	Action  string        `json:"action"`  // "" is every one
	Kind    string        `json:"kind"`    // one of kinds
	Count   int           `json:"count"`   // how many requests meet it; 0 is all until Clear
	Every   int           `json:"every"`   // one of so many requests meets it; 0 and 1 are each
	Code    string        `json:"code"`    // of kind error; "" is InternalError
	Status  int           `json:"status"`  // of kind error; 0 is 500
	Wait    time.Duration `json:"wait"`    // of kind slow
	Message string        `json:"message"` // of kind error
	met     int
}

// kinds of faults. A request that is cut is done, and its answer lost; one that finds the cloud down is not done.
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

// Clear ends all faults.
func (s *Server) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = faults{}
}

// Late makes what is launched from now on appear only after that time, as EC2's answers are eventually consistent.
func (s *Server) Late(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.late = d
}

// Skew moves the clock by which signatures are checked.
func (s *Server) Skew(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.skew = d
}

// BreakLaunch makes the next launched instances end before they run, with that state reason code, like
// Server.InternalError or Client.VolumeLimitExceeded.
func (s *Server) BreakLaunch(codes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.broken = append(s.faults.broken, codes...)
}

// A refusal is a pool that gives nothing, for a reason.
type refusal struct {
	pool  Pool
	code  string
	count int
}

// refusals are what a pool can answer for a while, with their documented texts: "Error codes for the Amazon EC2 API".
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

// Refuse makes a pool answer the next launches there with a code, whatever room it has; Zone "" is every zone, and a
// count
// of 0 is until Clear.
func (s *Server) Refuse(p Pool, code string, count int) error {
	if refusals[code] == nil {
		return fmt.Errorf("%q is no code that a pool answers with", code)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults.pools = append(s.faults.pools, &refusal{p, code, count})
	return nil
}

// refused is what a pool answers now instead of giving anything. A trial only asks.
func (f *faults) refused(p Pool, trial bool) error {
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

// Calls is how many requests of an action came, faults included.
func (s *Server) Calls(action string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[action]
}

// A mishap is what befalls one request.
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

// unauthorized is how EC2 refuses what a policy does not allow. The message is encoded for
// sts:DecodeAuthorizationMessage;
// an explicit deny is what the action of a budget does.
func unauthorized(action string, explicit bool) error {
	return refuse(http.StatusForbidden, "UnauthorizedOperation", "You are not authorized to perform this operation. "+
		"User: arn:aws:iam::123456789012:user/test is not authorized to perform: ec2:%s on resource: * %s. "+
		"Encoded authorization failure message: %s", action, map[bool]string{
		true:  "with an explicit deny in an identity-based policy",
		false: "because no identity-based policy allows the ec2:" + action + " action"}[explicit], hash([]byte(action)))
}

func requestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
