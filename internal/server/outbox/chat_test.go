package outbox

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"scrimp/internal/server/webhook"
)

// A chat gets one line of text, as its incoming webhooks take it; every other webhook gets the fields.
func TestMessage_IsALineForChats(t *testing.T) {
	over := word{ID: "k", Job: "train", State: "failed", Why: "out_of_budget"}
	asks := word{ID: "k", Job: "train", State: "awaits_approval",
		Approval: &asked{Detail: "it may cost $90 of team vision", Fix: "scrimp approve train"}}
	late := word{ID: "k", Job: "train", Event: "late", State: "running", Forecast: &expected{Detail: "it ends at noon",
		Fix: "scrimp update train"}}
	poor := word{ID: "k", Job: "train", Event: "over_budget", Forecast: &expected{Detail: "$5 are too little", Fix: "f"}}
	for _, c := range []struct {
		target, want string
		w            word
	}{
		{"https://hooks.slack.com/services/T/B/x", `{"text":"scrimp: job train failed (out of budget)"}`, over},
		{"https://discord.com/api/webhooks/1/x/slack", `{"text":"scrimp: job train failed (out of budget)"}`, over},
		{"https://chat.googleapis.com/v1/spaces/A/messages?key=k",
			`{"text":"scrimp: job train awaits approval: it may cost $90 of team vision. scrimp approve train"}`, asks},
		{"https://hooks.slack.com/services/T/B/x",
			`{"text":"scrimp: job train will be late: it ends at noon. scrimp update train"}`, late},
		{"https://hooks.slack.com/services/T/B/x",
			`{"text":"scrimp: job train will exceed its budget: $5 are too little. f"}`, poor},
		{"https://example.org/hooks.slack.com", `{"id":"k","job":"train","state":"failed","why":"out_of_budget"}`, over},
		{"https://hooks.slack.com.example.org/x", `{"id":"k","job":"train","state":"failed","why":"out_of_budget"}`, over},
	} {
		got, err := json.Marshal(message(c.target, c.w))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s %v, want %s", c.target, got, err, c.want)
		}
	}
}

// Whatever the texts, a chat gets what Slack's documentation of incoming webhooks accepts: a JSON object with a text of 1
// to 3,000 characters in which &, < and > are escapes, and no line that begins a command.
func TestMessage_OfAnyTextIsInSlacksForm(t *testing.T) {
	var got []string
	slack := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var v map[string]string
		if err := json.Unmarshal(body, &v); err != nil || len(v) != 1 || r.Header.Get("Content-Type") != "application/json" ||
			wrongOfSlack(v["text"]) != "" {
			t.Errorf("slack would refuse %.200s: %v, %s", body, err, wrongOfSlack(v["text"]))
			w.WriteHeader(http.StatusBadRequest)
		}
		got = append(got, v["text"])
	}))
	defer slack.Close()
	send := webhook.NewSender("0", true, nil, slog.New(slog.DiscardHandler))
	for _, text := range []string{"", "plain", "<!channel> <@U1> & co", "a\r\n/remind me\t\x00b", "<&amp;>", "€ 🙂 \xff",
		strings.Repeat("<", 5000), strings.Repeat("🙂", 5000), strings.Repeat("a & ", 2000)} {
		to := "https://hooks.slack.com/services/T/B/x"
		receiver := Receiver{By: bySlack}
		report := AnomalyReport{Text: "scrimp: " + text}
		for _, what := range []any{
			message(to, word{Job: "train", State: "failed", Why: text}),
			message(to, word{Job: "train", Event: "late", Forecast: &expected{Detail: text, Fix: text}}),
			message(to, word{Job: "train", Approval: &asked{Detail: text, Fix: text}}), report.body(&receiver, ""),
		} {
			if err := send.Try(t.Context(), slack.URL, "ann", "k", what); err != nil {
				t.Errorf("%.40q: %v", text, err)
			}
		}
	}
	if want := "scrimp: job train failed (&lt;!channel&gt; &lt;@U1&gt; &amp; co)"; !slices.Contains(got, want) {
		t.Errorf("none of %.300q is %q", got, want)
	}
}

// wrongOfSlack says why Slack would refuse a text, or read a part of it as a command.
func wrongOfSlack(text string) string {
	plain := strings.NewReplacer("&amp;", "", "&lt;", "", "&gt;", "").Replace(text)
	switch n := utf8.RuneCountInString(text); {
	case n == 0 || n > 3000:
		return fmt.Sprint(n, " characters")
	case strings.ContainsAny(plain, "&<>\n\r"):
		return "it has what needs an escape"
	}
	return ""
}
