package outbox

import (
	"errors"
	"regexp"
	"strings"

	"scrimp/internal/job/spec"
	"scrimp/internal/server/webhook"
)

// The other ways to a receiver of anomalies, as client.Notice names them.
const (
	bySlack = "slack"
	byPager = "pagerduty"
)

// pagerAddress is the address of PagerDuty's Events API v2.
const pagerAddress = "https://events.pagerduty.com/v2/enqueue"

// Receiver is where the reports of an alert about anomalies go.
type Receiver struct {
	By     string // webhook, slack, pagerduty or email
	To     string // what lists and logs show: an e-mail address, or the host of an address
	target string // the address, which may contain a secret; "" of e-mail
	key    string // PagerDuty's integration key, a secret
}

// pagerKey is the form of an integration key. PagerDuty makes 32 characters; services with the same API make others.
var pagerKey = regexp.MustCompile(`^[A-Za-z0-9_-]{8,200}$`)

// errReceiver and errPager do not repeat the text, which may contain a secret.
var (
	errReceiver = errors.New("write https://…, slack:https://…, mailto:ann@example.org or pagerduty:KEY")
	errPager    = errors.New("write pagerduty:KEY with the integration key of the Events API v2, or pagerduty:KEY@URL " +
		"for another address, such as https://events.eu.pagerduty.com/v2/enqueue")
)

// ParseReceiver returns the receiver that a text names. Its errors do not repeat the text.
func ParseReceiver(text string) (Receiver, error) {
	text = strings.TrimSpace(text)
	kind, rest, _ := strings.Cut(text, ":")
	switch kind {
	case "mailto":
		if !spec.IsMailbox(rest) {
			return Receiver{}, errors.New("write an address such as mailto:ann@example.org")
		}
		return Receiver{By: byEmail, To: rest}, nil
	case "pagerduty":
		key, target, other := strings.Cut(rest, "@")
		if !other {
			target = pagerAddress
		}
		if !pagerKey.MatchString(key) || !spec.IsHook(target) || strings.Contains(target, "$") {
			return Receiver{}, errPager
		}
		return Receiver{By: byPager, To: webhook.Host(target), target: target, key: key}, nil
	case bySlack:
		text, kind = rest, bySlack
	case "http", "https":
		kind = byWebhook
		if webhook.IsChat(text) {
			kind = bySlack
		}
	default:
		return Receiver{}, errReceiver
	}
	host := webhook.Host(text)
	if !spec.IsHook(text) || host == "" || strings.Contains(host, "$") {
		return Receiver{}, errReceiver
	}
	return Receiver{By: kind, To: host, target: text}, nil
}

// IsPager reports whether the receiver keeps incidents open until it is told that they ended.
func (r *Receiver) IsPager() bool { return r.By == byPager }

// Refusal returns why this server cannot report to the receiver, and the fix; "" if it can.
func (o *Outbox) Refusal(r Receiver) (why, fix string) {
	switch {
	case r.By == byEmail && o.Mails == nil:
		return "this server does not send e-mail", "an admin starts scrimp serve with --smtp, or give another receiver"
	case o.Hooks.Refuses(r.target):
		return "the address leads inside the server's network", webhook.InsideFix
	}
	return "", ""
}
