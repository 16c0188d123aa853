package outbox

import (
	"encoding/json"
	"testing"
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
