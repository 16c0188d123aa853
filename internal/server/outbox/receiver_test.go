package outbox

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/money"
)

// A receiver shows its host or its e-mail address only, and an error repeats nothing of the text.
func TestParseReceiver_ShowsTheHostOnly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"https://example.org/S3CRET":                          {byWebhook, "example.org"},
		"http://example.org:8080/S3CRET?a=S3CRET":             {byWebhook, "example.org:8080"},
		"https://hooks.slack.com/services/S3CRET":             {bySlack, "hooks.slack.com"},
		"slack:https://chat.example.org/S3CRET":               {bySlack, "chat.example.org"},
		" mailto:ann@example.org\n":                           {byEmail, "ann@example.org"},
		"pagerduty:S3CRET12":                                  {byPager, "events.pagerduty.com"},
		"pagerduty:S3CRET12@https://events.eu.pagerduty.com/": {byPager, "events.eu.pagerduty.com"},
	} {
		r, err := ParseReceiver(text)
		if err != nil || r.By != want[0] || r.To != want[1] || r.IsPager() != (r.By == byPager) || strings.Contains(r.To, "S3CRET") {
			t.Errorf("%s: %+v, %v", text, r, err)
		}
	}
	for _, text := range []string{"", "S3CRET", "https:", "https://", "https:///S3CRET", "ftp://S3CRET", "slack:", "slack:S3CRET", "slack:ftp://S3CRET",
		"mailto:S3CRET", "mailto:", "pagerduty:", "pagerduty:S3C", "pagerduty:S3CRET 12", "pagerduty:S3CRET12@", "pagerduty:S3CRET12@ftp://x",
		"https://$S3CRET/x", "https://example.org:0/S3CRET", "https://example.org/S3CRET\x00", "https://user:S3CRET@", "slack:slack:https://S3CRET"} {
		if r, err := ParseReceiver(text); err == nil {
			t.Errorf("%q is %+v", text, r)
		} else if strings.Contains(err.Error(), "S3CRET") {
			t.Errorf("%q: the error repeats it: %v", text, err)
		}
	}
	if r, err := ParseReceiver("https://user:S3CRET@example.org/x"); err == nil && strings.Contains(r.To, "S3CRET") {
		t.Errorf("the password of a user is shown: %+v", r)
	}
}

// Names in a report cannot give a chat a command, add a line to a subject, or exceed what PagerDuty accepts.
func TestAnomalyReport_KeepsNamesHarmless(t *testing.T) {
	t.Parallel()
	o := &Outbox{Address: "https://scrimp.example.org/"}
	a := &client.Anomaly{Name: "a-1", Kind: "spend", Team: "<!channel>\r\nBcc: x", About: "a&b", AtStake: money.Picos(1_230_000_000_000),
		Currency: "USD", Why: strings.Repeat("é", 2000), Found: time.Unix(0, 0)}
	r := o.NewAnomalyReport(AnomalyFound, "al-1", a)
	slack, err := json.Marshal(r.body(&Receiver{By: bySlack}, ""))
	if err != nil || strings.Contains(string(slack), "<!channel>") {
		t.Errorf("%s, %v", slack, err)
	}
	if c := r.body(&Receiver{By: bySlack}, "").(chat); !strings.Contains(c.Text, "&lt;!channel&gt;") || !strings.Contains(c.Text, "a&amp;b") ||
		!strings.HasSuffix(c.Text, " https://scrimp.example.org/anomalies") {
		t.Errorf("%q", c.Text)
	}
	if m := r.mail(); strings.ContainsAny(m.Subject, "\r\n") || !strings.Contains(m.Subject, "$1.23") || !strings.Contains(m.Text, "dismiss a-1") {
		t.Errorf("%+v", m)
	}
	p := r.page("key", "here")
	if len([]rune(p.Payload.Summary)) > 1024 || p.Dedup != "scrimp/al-1/a-1" || p.Payload.Source != "here" || len(p.Links) != 1 {
		t.Errorf("%+v", p)
	}
}
