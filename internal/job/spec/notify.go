package spec

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
)

// Notify names who hears of a job, and of which events.
type Notify struct {
	Webhook string   `json:"webhook,omitempty" eg:"https://example.org/hook"`
	Email   []string `json:"email,omitempty" eg:"[ann@example.org]"`
	On      []string `json:"on,omitempty" enum:"done,failed,late,over_budget" eg:"[failed, late]"`
}

// Events of Notify.On.
const (
	Done       = "done"        // it succeeded, or was stopped or cancelled
	Failed     = "failed"      // it failed
	Late       = "late"        // the forecast misses the deadline
	OverBudget = "over_budget" // a budget ends the job, or will
)

// IsZero reports whether nobody hears of the job.
func (n Notify) IsZero() bool { return n.Webhook == "" && len(n.Email) == 0 && len(n.On) == 0 }

// Wants reports whether n includes an event. Without a list, n includes the ends of the job.
func (n Notify) Wants(event string) bool {
	if len(n.On) == 0 {
		return event == Done || event == Failed
	}
	return slices.Contains(n.On, event)
}

// plainNotify has the fields of Notify and the standard encoding.
type plainNotify Notify

// MarshalJSON encodes a webhook alone as a text, as servers did before Notify had other fields.
func (n Notify) MarshalJSON() ([]byte, error) {
	if len(n.Email) == 0 && len(n.On) == 0 {
		return json.Marshal(n.Webhook)
	}
	return json.Marshal(plainNotify(n))
}

// UnmarshalJSON reads both forms of MarshalJSON.
func (n *Notify) UnmarshalJSON(b []byte) error {
	*n = Notify{}
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &n.Webhook)
	}
	return json.Unmarshal(b, (*plainNotify)(n))
}

// longestMailbox bounds an e-mail address (RFC 5321).
const longestMailbox = 254

// mailboxForm accepts addresses that need no quotes. It accepts neither spaces nor line ends, so an address cannot add
// a header to a message.
var mailboxForm = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_{|}~-]+)*` +
	`@[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*$`)

// IsMailbox reports whether text is an e-mail address that scrimp writes to.
func IsMailbox(text string) bool { return len(text) <= longestMailbox && mailboxForm.MatchString(text) }

// IsHook reports whether a text has the form of a webhook's address.
func IsHook(address string) bool {
	m := hookPort.FindStringSubmatch(address)
	if m == nil { // no port, or a secret that stands for it
		return hookForm.MatchString(address)
	}
	port, err := strconv.Atoi(m[1])
	return hookForm.MatchString(address) && err == nil && port > 0 && port <= math.MaxUint16
}

// hookPort finds the port of a URL.
var hookPort = regexp.MustCompile(`^https?://[^/?#]*:(\d+)(?:[/?#]|$)`)

// notify checks who hears of the job.
func (c *checker) notify() {
	n := c.j.Notify
	c.wrong(n.Webhook != "" && !IsHook(n.Webhook), "notify.webhook", fmt.Sprintf("is %q", n.Webhook),
		"give an http or https URL; e-mail addresses belong under notify.email")
	for i, a := range n.Email {
		field := fmt.Sprintf("notify.email[%d]", i)
		c.wrong(!IsMailbox(a), field, fmt.Sprintf("is %q", cut(a)), "give an address such as ann@example.org")
		c.wrong(slices.Contains(n.Email[:i], a), field, "stands twice", "keep one")
	}
	for i, event := range n.On {
		c.wrong(slices.Contains(n.On[:i], event), fmt.Sprintf("notify.on[%d]", i), "stands twice", "keep one")
	}
	c.wrong(len(n.On) > 0 && n.Webhook == "" && len(n.Email) == 0, "notify.on", "names events, and nobody hears of them",
		"add webhook or email")
	c.wrong(slices.Contains(n.On, Late) && c.j.Deadline.IsZero(), "notify.on", "has late, and the job has no deadline",
		"add deadline, or leave late out")
}
