package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/anomalies"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/notices"
	"scrimp/internal/server/outbox"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
)

// receiver is a server that anomalies are reported to. It answers with a code, and keeps what it accepted.
type receiver struct {
	*httptest.Server
	mu   sync.Mutex
	code int
	got  []string // the path, the idempotency key and the body
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{code: http.StatusOK}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		b, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		if w.WriteHeader(r.code); r.code < 300 {
			r.got = append(r.got, q.URL.Path+" "+q.Header.Get("Idempotency-Key")+" "+string(b))
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) answers(code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.code = code
}

func (r *receiver) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// alerts adds an alert, with the owner's rights.
func (w *world) alert(body string) (v client.AnomalyAlert) {
	w.t.Helper()
	w.must("POST", "/v1/anomalies/alerts", body, &v)
	return v
}

// look looks for anomalies as the server does, and begins the reports.
func (w *world) look() {
	w.t.Helper()
	must.Do(w.t, w.Server.anomalies.Poll(w.t.Context()))
}

// noneDue reports whether no report of the alerts is due.
func (w *world) noneDue() bool {
	w.t.Helper()
	var all []client.AnomalyAlert
	w.must("GET", "/v1/anomalies/alerts", nil, &all)
	for _, a := range all {
		var h struct{ Due []outbox.AnomalyReport }
		text, _, err := w.store.Meta(w.t.Context(), "anomaly_alert/"+a.Name)
		if err = errors.Join(err, json.Unmarshal([]byte(text), &h)); err != nil {
			w.t.Fatal(err)
		}
		if len(h.Due) > 0 {
			return false
		}
	}
	return true
}

func (w *world) reportsOf(name string) (list []client.Notice) {
	w.t.Helper()
	var all []client.AnomalyAlert
	w.must("GET", "/v1/anomalies/alerts", nil, &all)
	for _, a := range all {
		if a.Name == name {
			return a.Notices
		}
	}
	return nil
}

// nextService is the service of the server that starts next in the folder.
func (w *world) nextService() {
	old := w.Server.anomalies
	w.outbox = &outbox.Outbox{Control: old.Control, Hooks: w.hooks, Mails: w.outbox.Mails, Dir: w.opts.Dir,
		Past: &notices.Past{Dir: w.opts.Dir}, Log: w.opts.Log}
	w.Server.anomalies = &anomalies.Service{Gate: old.Gate, Control: old.Control, Books: old.Books, View: old.View,
		HasTeam: old.HasTeam, HasTeams: old.HasTeams, Meta: old.Meta, Vault: old.Vault, Outbox: w.outbox, Log: old.Log}
}

// An anomaly reaches each receiver once when it is found and once when it ends, in the receiver's form, whatever the
// number of looks and of restarts.
func TestAlert_ReportsAnAnomalyOnceAndItsEnd(t *testing.T) {
	t.Parallel()
	r, p := newReceiver(t), newPostbox(t)
	w := newWorldOf(t, &firm{}, p.options)
	w.alert(`{"to":"` + r.URL + `/hook"}`)
	w.alert(`{"to":"slack:` + r.URL + `/slack","team":"","kinds":["idle-machine"]}`)
	pager := w.alert(`{"to":"pagerduty:R0UTINGKEY@` + r.URL + `/pager","above":"0.01"}`)
	w.alert(`{"to":"mailto:ann@example.org"}`)
	w.alert(`{"to":"` + r.URL + `/other","kinds":["price jump"]}`)
	w.alert(`{"to":"` + r.URL + `/rich","above":"1000000"}`)
	instance := w.idles(2 * time.Hour)
	name := w.anomalies("", auth.OwnerName).Anomalies[0].Name
	for range 3 {
		w.look()
	}
	eventually.True(t, "each receiver has the report", func() bool { return len(r.all()) == 3 && len(p.messages()) == 1 && w.noneDue() })
	w.nextService()
	w.look()
	w.event(core.InstanceEnded{Instance: instance, Until: w.control.Now().Add(29 * time.Hour), Cause: "idle"}, 29*time.Hour)
	var cfg core.Config
	w.control.Read(func(m *core.Machine) { cfg = *m.State().Config() })
	w.event(core.Configured{Config: cfg}, 30*time.Hour) // time goes on
	eventually.True(t, "each receiver has the end", func() bool {
		w.look()
		return len(r.all()) == 6 && len(p.messages()) == 2 && w.noneDue()
	})
	w.nextService()
	for range 2 {
		w.look()
	}
	got := r.all()
	slices.Sort(got)
	for i, want := range [][]string{
		{"/hook anomaly/", `"event":"anomaly"`, `"about":"` + instance, `"name":"` + name},
		{"/hook anomaly_end/", `"event":"anomaly_end"`, `"until":"20`},
		{"/pager anomaly/", `"event_action":"trigger"`, `"dedup_key":"scrimp/` + pager.Name + "/" + name, `"routing_key":"R0UTINGKEY"`,
			`"severity":"warning"`, `"class":"idle machine"`},
		{"/pager anomaly_end/", `"event_action":"resolve"`, `"dedup_key":"scrimp/` + pager.Name + "/" + name},
		{"/slack anomaly/", `{"text":"scrimp: anomaly: idle machine, ` + instance + ` of team team-0, $`},
		{"/slack anomaly_end/", `{"text":"scrimp: anomaly ended: idle machine`},
	} {
		for _, one := range want {
			if i >= len(got) || !strings.Contains(got[i], one) {
				t.Errorf("report %d of %d lacks %s: %s", i, len(got), one, got[min(i, len(got)-1)])
			}
		}
	}
	mails := p.messages()
	if len(got) != 6 || len(mails) != 2 || !strings.Contains(mails[0], "ann@example.org") || !strings.Contains(mails[0], name) ||
		!strings.Contains(mails[1], "anomaly ended") {
		t.Errorf("%d calls, mails %q", len(got), mails)
	}
	if strings.Contains(w.log.String(), "R0UTINGKEY") || strings.Contains(w.log.String(), "/hook") {
		t.Error("the log has a secret")
	}
}

// A report that fails is tried again by the next server, which does not repeat one that was accepted.
func TestAlert_NextServerGoesOnWithAFailedReport(t *testing.T) {
	t.Parallel()
	good, bad := newReceiver(t), newReceiver(t)
	bad.answers(http.StatusServiceUnavailable)
	w := newWorldOf(t, &firm{}, hooked)
	taken, failing := w.alert(`{"to":"`+good.URL+`/T0PSECRET"}`), w.alert(`{"to":"`+bad.URL+`/T0PSECRET"}`)
	w.idles(2 * time.Hour)
	w.look()
	eventually.True(t, "one is delivered, the other fails", func() bool {
		a, b := w.reportsOf(taken.Name), w.reportsOf(failing.Name)
		return len(a) == 1 && a[0].State == client.Delivered && len(b) == 1 && b[0].State == client.Retrying
	})
	n := w.reportsOf(failing.Name)[0]
	if n.Error != "status 503" || n.Next == nil || n.Alert != failing.Name || n.Job != "" || n.Event != "anomaly" {
		t.Errorf("%+v", n)
	}
	var open []client.Notice
	if w.must("GET", "/v1/notices", nil, &open); len(open) != 1 || open[0].Alert != failing.Name {
		t.Errorf("%+v", open)
	}
	bad.answers(http.StatusOK)
	w.nextService()
	w.look()
	eventually.True(t, "the next server delivers it", func() bool {
		b := w.reportsOf(failing.Name)
		return len(b) == 1 && b[0].State == client.Delivered && b[0].Tries > 1
	})
	if len(good.all()) != 1 {
		t.Errorf("the receiver that accepts got %q", good.all())
	}
	if strings.Contains(w.log.String(), "T0PSECRET") {
		t.Error("the log has a secret")
	}
}

// Snoozed, dismissed and planned anomalies, and those that are older than the alert, are not reported. One that goes on
// when its snooze ends is reported.
func TestAlert_IsSilentAboutWhatPeopleHaveHidden(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what, path, body string
		later            bool
	}{{"snoozed", "/v1/anomalies/%s/snooze", `{"until":"31h"}`, true}, {"dismissed", "/v1/anomalies/%s/dismiss", `{"why":"warm"}`, false},
		{"planned", "/v1/anomalies/planned", `{"since":"SINCE","until":"5d","why":"test"}`, false}, {"old", "", "", false}} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			r := newReceiver(t)
			w := newWorldOf(t, &firm{}, hooked)
			if c.path == "" {
				w.idles(2 * time.Hour)
			}
			a := w.alert(`{"to":"` + r.URL + `"}`)
			if c.path != "" {
				w.idles(2 * time.Hour)
				path := c.path
				if strings.Contains(path, "%s") {
					path = fmt.Sprintf(path, w.anomalies("", auth.OwnerName).Anomalies[0].Name)
				}
				w.must("POST", path, strings.ReplaceAll(c.body, "SINCE", w.control.Now().UTC().Format(time.DateOnly)), nil)
			}
			w.look()
			w.event(core.Tick{}, 61*time.Hour)
			w.look()
			if c.later {
				eventually.True(t, "it is reported after the snooze", func() bool { return len(w.reportsOf(a.Name)) == 1 })
				return
			}
			if list := w.reportsOf(a.Name); len(list) != 0 || len(r.all()) != 0 {
				t.Errorf("%+v", list)
			}
		})
	}
}

// A wrong alert is refused with its field, and neither the answer nor the log repeats the receiver. Only an operator of
// the team, or an admin of all teams, adds one, and others do not see it.
func TestAlert_RefusesWhatItCannotReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hooked)
	w.must("PUT", "/v1/teams/team-0", `{}`, nil)
	w.must("PUT", "/v1/teams/team-1", `{}`, nil)
	ops := w.user("ops", identity.Grant{Team: "team-0", Role: identity.Operator})
	view := w.user("view", identity.Grant{Team: "team-0", Role: identity.Viewer})
	bob := w.user("bob", identity.Grant{Team: "team-1", Role: identity.Admin})
	for _, c := range []struct {
		who, body, field string
		code             int
	}{{ops, `{"to":"https://example.org/T0PSECRET"}`, "", 403}, {view, `{"to":"https://example.org/T0PSECRET","team":"team-0"}`, "", 403},
		{bob, `{"to":"https://example.org/T0PSECRET","team":"team-0"}`, "team", 404},
		{ops, `{"to":"ftp://example.org/T0PSECRET","team":"team-0"}`, "to", 422}, {ops, `{"to":"","team":"team-0"}`, "to", 422},
		{ops, `{"to":"slack:T0PSECRET","team":"team-0"}`, "to", 422}, {ops, `{"to":"pagerduty:","team":"team-0"}`, "to", 422},
		{ops, `{"to":"pagerduty:T0PSECRET key","team":"team-0"}`, "to", 422}, {ops, `{"to":"mailto:T0PSECRET","team":"team-0"}`, "to", 422},
		{ops, `{"to":"mailto:ann@example.org","team":"team-0"}`, "to", 422},
		{ops, `{"to":"http://10.0.0.1/T0PSECRET","team":"team-0"}`, "to", 422},
		{ops, `{"to":"pagerduty:T0PSECRET@http://169.254.169.254/x","team":"team-0"}`, "to", 422},
		{ops, `{"to":"slack:http://localhost/T0PSECRET","team":"team-0"}`, "to", 422},
		{ops, `{"to":"https://example.org/$T0PSECRET` + strings.Repeat("x", 2048) + `","team":"team-0"}`, "to", 422},
		{ops, `{"to":"https://example.org/T0PSECRET","team":"team-0","kinds":["nothing"]}`, "kinds", 422},
		{ops, `{"to":"https://example.org/T0PSECRET","team":"team-0","above":"-1"}`, "above", 422}} {
		rec, p := w.ask("POST", "/v1/anomalies/alerts", c.who, c.body)
		if rec.Code != c.code || p.Field != c.field || p.Fix == "" || strings.Contains(rec.Body.String(), "T0PSECRET") {
			t.Errorf("%s: %d %+v, want %d %s", c.body, rec.Code, p, c.code, c.field)
		}
	}
	body := `{"to":"https://example.org/T0PSECRET","team":"team-0","kinds":["spend","idle-machine","spend"],"above":"50"}`
	var first, again client.AnomalyAlert
	for _, v := range []*client.AnomalyAlert{&first, &again} {
		rec, p := w.ask("POST", "/v1/anomalies/alerts", ops, body)
		if rec.Code != 200 || json.Unmarshal(rec.Body.Bytes(), v) != nil || strings.Contains(rec.Body.String(), "T0PSECRET") {
			t.Fatalf("%d %+v", rec.Code, p)
		}
	}
	if first.Name != again.Name || first.To != "example.org" || !slices.Equal(first.Kinds, []string{"idle machine", "spend"}) ||
		first.User != "ops" || first.Above.String() != "50" {
		t.Errorf("%+v, again %+v", first, again)
	}
	for who, want := range map[string]int{ops: 1, view: 1, bob: 0, auth.OwnerName: 1} {
		rec, _ := w.ask("GET", "/v1/anomalies/alerts", who, nil)
		if n := strings.Count(rec.Body.String(), `"name"`); n != want || strings.Contains(rec.Body.String(), "T0PSECRET") {
			t.Errorf("%s sees %s", who, rec.Body)
		}
	}
	for who, code := range map[string]int{view: 403, bob: 404} {
		for _, how := range [][2]string{{"DELETE", ""}, {"POST", "/test"}} {
			if rec, _ := w.ask(how[0], "/v1/anomalies/alerts/"+first.Name+how[1], who, nil); rec.Code != code {
				t.Errorf("%s %s: %d", how, who, rec.Code)
			}
		}
	}
	rec, _ := w.ask("GET", "/v1/audit?limit=1000", auth.OwnerName, nil)
	if !strings.Contains(rec.Body.String(), "example.org team-0") || strings.Contains(rec.Body.String(), "T0PSECRET") {
		t.Errorf("the audit trail: %s", rec.Body)
	}
	text, _, err := w.store.Meta(t.Context(), "anomaly_alerts")
	if err != nil || !strings.Contains(text, first.Name) || strings.Contains(text, "T0PSECRET") {
		t.Errorf("the database has %s, %v", text, err)
	}
	if rec, _ := w.ask("DELETE", "/v1/anomalies/alerts/"+first.Name, ops, nil); rec.Code != 204 {
		t.Errorf("%d", rec.Code)
	}
	if rec, p := w.ask("DELETE", "/v1/anomalies/alerts/"+first.Name, ops, nil); rec.Code != 404 || p.Field != "id" {
		t.Errorf("%d %+v", rec.Code, p)
	}
}

// A test reaches the receiver once, marked, and its outcome is answered and listed. At PagerDuty it leaves nothing open.
func TestAlert_TestSaysWhatBecameOfIt(t *testing.T) {
	t.Parallel()
	r, p := newReceiver(t), newPostbox(t)
	w := newWorldOf(t, &firm{}, p.options)
	test := func(a client.AnomalyAlert) (n client.Notice) {
		w.must("POST", "/v1/anomalies/alerts/"+a.Name+"/test", nil, &n)
		if list := w.reportsOf(a.Name); len(list) == 0 || list[len(list)-1].State != n.State || list[len(list)-1].Error != n.Error {
			t.Errorf("%+v, the list has %+v", n, list)
		}
		return n
	}
	hook := w.alert(`{"to":"` + r.URL + `/hook"}`)
	if n := test(hook); n.State != client.Delivered || !strings.Contains(r.all()[0], "TEST, no anomaly") {
		t.Errorf("%+v %q", n, r.all())
	}
	if test(w.alert(`{"to":"pagerduty:R0UTINGKEY@` + r.URL + `/pager"}`)); !strings.Contains(r.all()[1], `"trigger"`) ||
		!strings.Contains(r.all()[2], `"resolve"`) {
		t.Errorf("%q", r.all())
	}
	if n := test(w.alert(`{"to":"mailto:ann@example.org"}`)); n.State != client.Delivered || !strings.Contains(p.messages()[0], "TEST") {
		t.Errorf("%+v %q", n, p.messages())
	}
	if n := test(w.alert(`{"to":"mailto:nobody@example.org"}`)); n.State != client.Refused || !strings.Contains(n.Error, "550 no such user") {
		t.Errorf("%+v", n)
	}
	for _, code := range []int{404, 500} {
		r.answers(code)
		if n := test(hook); n.State != client.Refused || !strings.HasSuffix(n.Error, fmt.Sprintf("status %d", code)) {
			t.Errorf("%+v", n)
		}
	}
}

// The metrics count the anomalies that go on, after the look that the first scrape asks for.
func TestAlert_MetricsCountWhatGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	w.idles(2 * time.Hour)
	scrape := func() string {
		rec, _ := w.ask("GET", "/metrics", auth.OwnerName, nil)
		return rec.Body.String()
	}
	if w.look(); strings.Contains(scrape(), "scrimp_anomalies{") {
		t.Error("there is a count before a look")
	}
	w.look()
	for _, want := range []string{`scrimp_anomalies{kind="idle machine",team="team-0"} 1`,
		`scrimp_anomalies_at_stake{currency="USD",kind="idle machine",team="team-0"} `} {
		if text := scrape(); !strings.Contains(text, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	w.must("POST", "/v1/anomalies/"+w.anomalies("", auth.OwnerName).Anomalies[0].Name+"/dismiss", `{"why":"warm"}`, nil)
	if w.look(); strings.Contains(scrape(), "scrimp_anomalies{") {
		t.Error("a dismissed anomaly counts")
	}
}
