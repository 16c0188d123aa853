package pages

import (
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/money"
)

// The page of anomalies lists each incident with its amounts and its reason, and the sum of its rows. Its command and
// its twin have the reader's options. The overview leads to it.
func TestAnomalies_SumIsTheSumOfTheRows(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	v := client.Anomalies{Since: now.Add(-7 * 24 * time.Hour), Until: now}
	sum := money.Amount{}
	for i := range int64(5) {
		a := client.Anomaly{Kind: "idle machine", Team: "vision", About: "i-" + string(rune('a'+i)), Since: now.Add(-time.Hour), Found: now,
			AtStake: money.Picos((i + 1) * 1_110_000_000_000), AtFound: money.Picos(5e11), Currency: "USD", Why: "it waits for a job", Jobs: []string{"lm-7"}}
		if i > 2 {
			a.Until = &now
		}
		v.Anomalies, sum = append(v.Anomalies, a), sum.Add(a.AtStake)
	}
	f.answers["/v1/anomalies"], f.answers["/v1/anomalies/planned"] = v, []client.PlannedAnomalies{}
	f.answers["/v1/anomalies/alerts"] = []client.AnomalyAlert{}
	text := asks(s, "GET", "/anomalies?team=vision&since=30d", "").Body.String()
	for _, want := range []string{"5 incidents", "3 of them not over", money.Short(sum, "USD"), "i-e", "it waits for a job", `href="/jobs/lm-7"`,
		"goes on", "scrimp anomalies --team vision --since 30d", "/data/anomalies?since=30d&amp;team=vision"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if !strings.Contains(text, "leaves out jobs that somebody approved") || !strings.Contains(text, "reports rises only") {
		t.Error("the page does not say what it leaves out")
	}
	if !strings.Contains(strings.Join(f.asked, "\n"), "GET /v1/anomalies?since=30d&team=vision") {
		t.Errorf("asked were %v", f.asked)
	}
	if text := asks(s, "GET", "/", "").Body.String(); !strings.Contains(text, `<a href="/anomalies">`) {
		t.Error("the overview does not lead to the page")
	}
	f.answers["/v1/anomalies"] = client.Anomalies{Since: now, Until: now}
	if text := asks(s, "GET", "/anomalies", "").Body.String(); !strings.Contains(text, "No incidents in this span.") {
		t.Error("a span without incidents is not named")
	}
}

// Who may decide gets the buttons, which send what a command sends; the page shows states, thresholds and plans.
func TestAnomalies_ButtonsAreForOperatorsAndSendTheAnswer(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	v := client.Anomalies{Since: now, Until: now, Hidden: map[string]int{"planned": 2, "dismissed": 1}, Anomalies: []client.Anomaly{{Name: "a-1",
		Kind: "idle machine", Team: "vision", Since: now, Found: now, Currency: "USD", Threshold: "no task for 56 min", State: "snoozed",
		SnoozedUntil: &now, Jobs: []string{}}},
		Thresholds: []client.AnomalyThreshold{{Team: "vision", Kind: "idle machine", Threshold: "no task for 56 min", Standard: "no task for 45 min",
			Dismissed: 1, Last: client.AnomalyAnswer{By: "ann", Why: "kept warm"}}}}
	f.answers["/v1/anomalies"] = v
	f.answers["/v1/anomalies/alerts"] = []client.AnomalyAlert{{Name: "al-1", By: "webhook", To: "hooks.example.org", Team: "vision",
		Kinds: []string{"spend"}, User: "ann", Notices: []client.Notice{{Event: "anomaly", Anomaly: "a-1", State: client.Retrying, Tries: 2,
			Error: "status 503", At: now, Next: &now}}}, {Name: "al-2", Error: "this server does not send e-mail"}}
	f.answers["/v1/anomalies/planned"] = []client.PlannedAnomalies{{Name: "p-1", Team: "vision", Why: "a benchmark", By: "ann", Since: now, Until: now}}
	for _, act := range []string{"snooze", "dismiss", "confirm"} {
		f.answers["POST /v1/anomalies/a-1/"+act] = client.Anomaly{}
	}
	text := asks(s, "GET", "/anomalies?all=1", "").Body.String()
	for _, want := range []string{"Left out: 2 planned, 1 dismissed.", "snoozed until", "no task for 45 min", "dismissed by ann: kept warm", "a benchmark",
		"webhook: hooks.example.org", "not delivered yet", "status 503", "tried 2 times", "off: this server does not send e-mail", "scrimp anomalies --all", `value="snooze-anomaly"`, `value="dismiss-anomaly"`, `value="confirm-anomaly"`, `value="/anomalies?all=1"`} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for form, want := range map[string]string{"act=snooze-anomaly&until=7d": `{"until":"7d"}`, "act=dismiss-anomaly&why=warm": `{"why":"warm"}`,
		"act=confirm-anomaly": `{}`} {
		rec := asks(s, "POST", "/do", form+"&job=a-1&back=/anomalies")
		if rec.Code != 303 || rec.Header().Get("Location") != "/anomalies" || strings.TrimSpace(f.body) != want {
			t.Errorf("%s: %d %s, sent %s", form, rec.Code, rec.Header().Get("Location"), f.body)
		}
	}
	f.answers["/v1/me"] = client.Me{User: "sub", Best: client.Submitter, Grants: []client.Grant{{Team: "vision", Role: client.Submitter}}}
	if text := asks(s, "GET", "/anomalies", "").Body.String(); strings.Contains(text, "-anomaly") || !strings.Contains(text, "a-1") {
		t.Error("a submitter gets buttons, or no incident")
	}
}
