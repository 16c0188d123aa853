package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/mailer"
	"scrimp/internal/server/notices"
)

// The events of reports about anomalies.
const (
	AnomalyFound = "anomaly"
	AnomalyEnded = "anomaly_end"
	AlertTested  = "test"
)

// AnomalyReport is a report about an anomaly for the receiver of an alert, and the body of a call.
type AnomalyReport struct {
	ID      string         `json:"id"`    // the same at each try, so that receivers can drop repeats
	Event   string         `json:"event"` // anomaly, anomaly_end or test
	Alert   string         `json:"alert"` // its name
	Text    string         `json:"text"`  // what happened, in a sentence
	Anomaly client.Anomaly `json:"anomaly"`
	Link    string         `json:"link,omitempty"` // the page Anomalies
}

// NewAnomalyReport returns the report of an event of an anomaly for an alert.
func (o *Outbox) NewAnomalyReport(event, alert string, a *client.Anomaly) AnomalyReport {
	r := AnomalyReport{ID: event + "/" + alert + "/" + a.Name, Event: event, Alert: alert, Anomaly: *a}
	r.Text = r.line() + ": " + oneLine(a.Why) + "."
	if o.Address != "" {
		r.Link = strings.TrimSuffix(o.Address, "/") + "/anomalies"
	}
	return r
}

// line returns the event in a few words.
func (r *AnomalyReport) line() string {
	a := &r.Anomaly
	what := a.Kind + ", " + oneLine(a.About)
	if a.Team != "" && a.Team != a.About {
		what += " of team " + oneLine(a.Team)
	}
	what += ", " + money.Short(a.AtStake, a.Currency) + " beyond the usual"
	switch r.Event {
	case AlertTested:
		return "scrimp: TEST, no anomaly: " + what
	case AnomalyEnded:
		return "scrimp: anomaly ended: " + what
	}
	return "scrimp: anomaly: " + what
}

// oneLine returns text without line ends and control characters.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// chatEscapes escapes what chat services read as commands, such as a mention of everybody.
var chatEscapes = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// longestSummary bounds the summary of a page, in bytes. PagerDuty accepts 1024 characters.
const longestSummary = 1000

// page is an event of PagerDuty's Events API v2.
type page struct {
	RoutingKey string       `json:"routing_key"`
	Action     string       `json:"event_action"` // trigger or resolve
	Dedup      string       `json:"dedup_key"`
	Client     string       `json:"client"`
	Payload    *pagePayload `json:"payload,omitempty"`
	Links      []pageLink   `json:"links,omitempty"`
}

type pagePayload struct {
	Summary   string         `json:"summary"`
	Source    string         `json:"source"`
	Severity  string         `json:"severity"`
	Timestamp time.Time      `json:"timestamp"`
	Component string         `json:"component"`
	Group     string         `json:"group,omitempty"`
	Class     string         `json:"class"`
	Details   client.Anomaly `json:"custom_details"`
}

type pageLink struct {
	Href string `json:"href"`
	Text string `json:"text"`
}

// body returns the body of a call to a receiver.
func (r *AnomalyReport) body(to *Receiver, source string) any {
	switch to.By {
	case bySlack:
		c := chatOf(r.Text)
		if r.Link != "" {
			c.Text += " " + r.Link
		}
		return c
	case byPager:
		return r.page(to.key, source)
	}
	return r
}

// page returns the report in PagerDuty's form. The dedup key is the same for the begin and the end of an anomaly.
func (r *AnomalyReport) page(key, source string) page {
	a := &r.Anomaly
	p := page{RoutingKey: key, Action: "trigger", Dedup: "scrimp/" + r.Alert + "/" + a.Name, Client: "scrimp"}
	if r.Event == AnomalyEnded {
		p.Action = "resolve"
		return p
	}
	summary := r.Text
	if len(summary) > longestSummary {
		summary = strings.ToValidUTF8(summary[:longestSummary], "") + "…"
	}
	p.Payload = &pagePayload{Summary: summary, Source: source, Severity: "warning", Timestamp: a.Found.UTC(),
		Component: cmp.Or(a.About, "scrimp"), Group: a.Team, Class: a.Kind, Details: *a}
	if r.Event == AlertTested {
		p.Payload.Severity = "info"
	}
	if r.Link != "" {
		p.Links = []pageLink{{r.Link, "scrimp anomalies"}}
	}
	return p
}

// mail returns the report as an e-mail.
func (r *AnomalyReport) mail() mailer.Message {
	a := &r.Anomaly
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\n", strings.TrimPrefix(r.line(), "scrimp: "))
	fact := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-12s %s\n", name, value)
		}
	}
	fact("anomaly", a.Name)
	fact("kind", a.Kind)
	fact("team", cmp.Or(oneLine(a.Team), "(none)"))
	fact("project", oneLine(a.Project))
	fact("about", oneLine(a.About))
	fact("since", stamp(a.Since))
	fact("found", stamp(a.Found))
	if a.Until != nil {
		fact("until", stamp(*a.Until))
	}
	fact("at stake", money.Short(a.AtStake, a.Currency)+", an estimate")
	fact("jobs", strings.Join(a.Jobs, ", "))
	fact("threshold", a.Threshold)
	fact("link", r.Link)
	fact("alert", r.Alert)
	if a.Why != "" {
		fmt.Fprintf(&b, "\n%s.\n", strings.ToUpper(a.Why[:1])+a.Why[1:])
	}
	if r.Event == AnomalyFound {
		fmt.Fprintf(&b, "\nNext: scrimp anomalies snooze %[1]s --until 3d, dismiss %[1]s or confirm %[1]s\n", a.Name)
	}
	return mailer.Message{Key: r.ID + "\n" + r.Alert, Date: time.Now(), Subject: r.line(), Text: b.String()}
}

// source names this server to PagerDuty.
func (o *Outbox) source() string { return cmp.Or(o.Address, "scrimp") }

// ReportAnomaly makes a report to a receiver, on behalf of the user who made the alert, unless one was made. It returns
// false if the report is not settled: ctx ended before, or no mail server is named. An error of the receiver settles it
// after the last try.
func (o *Outbox) ReportAnomaly(ctx context.Context, to Receiver, user string, r AnomalyReport) (settled bool) {
	w := word{ID: r.ID, Event: r.Event, alert: r.Alert, anomaly: r.Anomaly.Name}
	waits := o.once(ctx, &w, to.By, to.To, func(e notices.Entry) (int, error) {
		if to.By == byEmail {
			return o.Mails.Deliver(ctx, w.of(), to.To, r.mail(), o.progress(&w, e))
		}
		return o.Hooks.Deliver(ctx, to.target, user, w.of(), r.ID, r.body(&to, o.source()), o.progress(&w, e))
	})
	return ctx.Err() == nil && !waits
}

// TryAlert sends a marked report to a receiver once, and records and returns what became of it. At PagerDuty it also
// ends the incident that the report begins.
func (o *Outbox) TryAlert(ctx context.Context, to Receiver, user string, r AnomalyReport) client.Notice {
	var err error
	switch to.By {
	case byEmail:
		err = o.Mails.Try(ctx, to.To, r.mail())
	case byPager:
		end := r
		end.Event = AnomalyEnded
		if err = o.Hooks.Try(ctx, to.target, user, r.ID, r.body(&to, o.source())); err == nil {
			err = o.Hooks.Try(ctx, to.target, user, r.ID+"/end", end.body(&to, o.source()))
		}
	default:
		err = o.Hooks.Try(ctx, to.target, user, r.ID, r.body(&to, o.source()))
	}
	w := word{ID: r.ID, Event: r.Event, alert: r.Alert}
	n := client.Notice{Event: r.Event, By: to.By, To: to.To, State: client.Delivered, Tries: 1, Alert: r.Alert,
		At: time.Now().UTC()}
	if err != nil {
		n.State, n.Error = client.Refused, err.Error()
	}
	if !errors.Is(err, context.Canceled) {
		o.record(&w, notices.Entry{Key: r.ID, Notice: n})
	}
	return n
}
