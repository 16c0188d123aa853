package outbox

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"scrimp/client"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/webhook"
	"scrimp/internal/test/must"
)

// pagerEvent is an event as PagerDuty's documentation of the Events API v2 describes it.
type pagerEvent struct {
	RoutingKey  string `json:"routing_key"`
	EventAction string `json:"event_action"`
	DedupKey    string `json:"dedup_key"`
	Client      string `json:"client"`
	ClientURL   string `json:"client_url"`
	Payload     *struct {
		Summary       string         `json:"summary"`
		Source        string         `json:"source"`
		Severity      string         `json:"severity"`
		Timestamp     string         `json:"timestamp"`
		Component     string         `json:"component"`
		Group         string         `json:"group"`
		Class         string         `json:"class"`
		CustomDetails map[string]any `json:"custom_details"`
	} `json:"payload"`
	Images []struct{} `json:"images"`
	Links  []struct {
		Href string `json:"href"`
		Text string `json:"text"`
	} `json:"links"`
}

// wrong says why PagerDuty would refuse a body.
func (e *pagerEvent) wrong(body []byte) string {
	d := json.NewDecoder(strings.NewReader(string(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(e); err != nil {
		return err.Error()
	}
	p := e.Payload
	switch {
	case len(body) > 512<<10:
		return "more than 512 KB"
	case len(e.RoutingKey) != 32:
		return "routing_key"
	case !slices.Contains([]string{"trigger", "acknowledge", "resolve"}, e.EventAction):
		return "event_action"
	case e.DedupKey == "" || utf8.RuneCountInString(e.DedupKey) > 255:
		return "dedup_key"
	case e.EventAction != "trigger":
		return ""
	case p == nil || p.Summary == "" || utf8.RuneCountInString(p.Summary) > 1024:
		return "summary"
	case p.Source == "" || !slices.Contains([]string{"critical", "error", "warning", "info"}, p.Severity):
		return "source or severity"
	}
	if _, err := time.Parse(time.RFC3339, p.Timestamp); err != nil {
		return "timestamp"
	}
	return ""
}

// Whatever an anomaly is about, PagerDuty gets what it documents, and the end of an anomaly resolves what its begin
// triggered.
func TestAnomalyReport_IsInPagerDutysForm(t *testing.T) {
	t.Parallel()
	var got []pagerEvent
	pager := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e pagerEvent
		body, _ := io.ReadAll(r.Body)
		if why := e.wrong(body); why != "" || r.Header.Get("Content-Type") != "application/json" || r.Method != http.MethodPost {
			t.Errorf("PagerDuty would refuse %.300s: %s", body, why)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		got = append(got, e)
		w.WriteHeader(http.StatusAccepted)
	}))
	defer pager.Close()
	to, err := ParseReceiver("pagerduty:" + strings.Repeat("k", 32) + "@" + pager.URL + "/v2/enqueue")
	must.Do(t, err)
	until := time.Unix(1_800_000_000, 0)
	for _, text := range []string{"", "i-0a71", "a\r\nb\x00", "\xff", strings.Repeat("🙂", 3000)} {
		for _, address := range []string{"", "https://scrimp.example.org"} {
			o := &Outbox{Address: address, Hooks: webhook.NewSender("0", true, nil, slog.New(slog.DiscardHandler))}
			a := &client.Anomaly{Name: "a-1", Kind: "spend", Team: text, Project: text, About: text, Why: text, Currency: "USD",
				AtStake: money.Picos(1), Found: until.Add(-time.Hour), Since: until.Add(-2 * time.Hour), Until: &until}
			for _, event := range []string{AnomalyFound, AnomalyEnded, AlertTested} {
				r := o.NewAnomalyReport(event, "al-0123456789", a)
				if err := o.Hooks.Try(t.Context(), to.target, "ann", r.ID, r.body(&to, o.source())); err != nil {
					t.Errorf("%.20q: %v", text, err)
				}
			}
			if n := len(got); n < 3 || got[n-3].DedupKey != got[n-2].DedupKey || got[n-2].EventAction != "resolve" {
				t.Errorf("%+v", got)
			}
		}
	}
}
