package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/forecast"
	"scrimp/internal/server/mailer"
	"scrimp/internal/test/must"
)

// postbox is an SMTP server on loopback that refuses the recipient nobody@example.org.
type postbox struct {
	at   string
	mu   sync.Mutex
	got  []string // recipient and message
	busy bool     // bob@example.org is to be tried later
}

func newPostbox(t *testing.T) *postbox {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.Do(t, err)
	p := &postbox{at: l.Addr().String()}
	var all sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { defer func() { _ = conn.Close() }(); p.serve(conn) })
		}
	})
	return p
}

func (p *postbox) serve(conn net.Conn) {
	r := bufio.NewScanner(conn)
	say := func(s string) { _, _ = fmt.Fprint(conn, s+"\r\n") }
	say("220 hello")
	to, message, inside := "", "", false
	for r.Scan() {
		line := r.Text()
		switch {
		case inside && line == ".":
			p.mu.Lock()
			p.got = append(p.got, to+"\n"+message)
			p.mu.Unlock()
			inside, message = false, ""
			say("250 queued")
		case inside:
			message += line + "\n"
		case line == "RCPT TO:<nobody@example.org>":
			say("550 no such user")
		case line == "RCPT TO:<bob@example.org>" && p.isBusy():
			say("450 greylisted")
		case strings.HasPrefix(line, "RCPT"):
			to = line
			say("250 ok")
		case line == "DATA":
			inside = true
			say("354 go on")
		default:
			say("250 ok")
		}
	}
}

func (p *postbox) isBusy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.busy
}

func (p *postbox) messages() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.got...)
}

func (p *postbox) options(o *Options) {
	hooked(o)
	o.Mail = mailer.Settings{URL: "smtp://" + p.at, From: "scrimp@example.org"}
}

// end reports the end of a job as the core does.
func (w *world) end(id string, state state.Status, why string) {
	w.outbox.Notify(w.t.Context(), core.Notify{Job: id, State: state, Why: why})
}

// A job's end is reported to everybody whom it names, once each, and only if the job asks for the event. The status of
// the job names the address that the mail server refuses.
func TestNotify_MailsTheEndsThatAJobAsksFor(t *testing.T) {
	t.Parallel()
	p := newPostbox(t)
	w := newWorld(t, p.options)
	submit := func(name, notify string) {
		w.must("POST", "/v1/jobs", fmt.Sprintf(`{"spec":{"name":%q,"command":"true","notify":%s}}`, name, notify), nil)
	}
	submit("all", `{"email":["ann@example.org","nobody@example.org","bob@example.org"]}`)
	submit("bad", `{"email":["ann@example.org"],"on":["failed"]}`)
	submit("money", `{"email":["ann@example.org"],"on":["over_budget"]}`)
	submit("limit", `{"email":["ann@example.org"],"on":["over_budget"]}`)
	for _, c := range []struct {
		job   string
		state state.Status
		why   string
		sent  int    // messages
		says  string // in the subject
	}{
		{"all", core.Succeeded, "completed", 2, "job all succeeded (completed)"},
		{"bad", core.Succeeded, "completed", 0, ""},
		{"bad", core.Failed, "program_failed", 1, "job bad failed (program failed)"},
		{"money", core.Failed, "program_failed", 0, ""},
		{"money", core.Stopped, "budget_spent", 1, "job money stopped (budget spent)"},
		{"limit", core.Stopped, core.LimitSpent, 1, "job limit stopped (limit spent)"},
	} {
		before := len(p.messages())
		w.end(c.job, c.state, c.why)
		list := p.messages()[before:]
		if len(list) != c.sent {
			t.Errorf("%s %s: %d messages, want %d", c.job, c.why, len(list), c.sent)
		}
		for _, m := range list {
			if !strings.Contains(m, "Subject: scrimp: "+c.says) || !strings.Contains(m, "scrimp status "+c.job) {
				t.Errorf("%s: %s", c.job, m)
			}
		}
	}
	var j client.Job
	w.must("GET", "/v1/jobs/all", nil, &j)
	if len(j.Undelivered) != 1 || j.Undelivered[0].To != "nobody@example.org" || j.Undelivered[0].Event != "done" ||
		!strings.Contains(j.Undelivered[0].Error, "550 no such user") {
		t.Errorf("%+v", j.Undelivered)
	}
	var bad client.Job
	if w.must("GET", "/v1/jobs/bad", nil, &bad); len(bad.Undelivered) != 0 {
		t.Errorf("%+v", bad.Undelivered)
	}
}

// A server that sends no e-mail refuses a job that asks for it.
func TestNotify_EmailWithoutAMailServerIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName,
		`{"spec":{"name":"j","command":"true","notify":{"email":["ann@example.org"]}}}`)
	if rec.Code != http.StatusUnprocessableEntity || p.Field != "notify.email" || !strings.Contains(p.Fix, "--smtp") {
		t.Errorf("%d %+v", rec.Code, p)
	}
}

// foretold has a forecast of each job, which a test sets.
type foretold map[string]forecast.Median

func (f foretold) Median(job string) (forecast.Median, bool) { m, ok := f[job]; return m, ok }

// heard is a webhook that keeps the events it gets.
type heard struct {
	mu  sync.Mutex
	got []string
}

func (h *heard) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var v struct {
		Job, Event string
		Forecast   *struct{ Detail string }
	}
	_ = json.NewDecoder(r.Body).Decode(&v)
	h.mu.Lock()
	defer h.mu.Unlock()
	if v.Forecast != nil {
		v.Event += "!"
	}
	h.got = append(h.got, v.Job+" "+v.Event)
}

func (h *heard) all() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.got, ", ")
}

// terms returns the job's terms.
func (w *world) terms(id string) (t core.Terms) {
	w.control.Job(id, func(_ *core.Machine, j *core.Job) { t = *j.Terms() })
	return t
}

// A job is late once two forecasts in a row have their median beyond its deadline, and over its budget once a budget
// ends most runs of two forecasts in a row. Each is reported once for a deadline and a budget, to those who ask for it,
// also by a server that starts between the decision and the report.
func TestForesee_ReportsAfterTwoForecastsAndOncePerTerms(t *testing.T) {
	t.Parallel()
	p, h := newPostbox(t), &heard{}
	hook := httptest.NewServer(h)
	defer hook.Close()
	w := newWorld(t, p.options)
	for name, on := range map[string]string{"late": `"late","over_budget"`, "quiet": `"done"`} {
		w.must("POST", "/v1/jobs", fmt.Sprintf(`{"spec":{"name":%q,"command":"true","deadline":"in 10h",`+
			`"budget":{"dollars":"5"},"notify":{"webhook":%q,"email":["ann@example.org"],"on":[%s]}}}`, name, hook.URL, on), nil)
	}
	odds := foretold{}
	w.outbox.Odds = odds
	look, err := w.outbox.Watcher(t.Context())
	must.Do(t, err)
	look.WholeEvery = 0 // the jobs of this server wait
	begin := w.control.Now()
	n := 0
	see := func(fresh bool, finish time.Duration, over bool, want string) {
		t.Helper()
		if fresh {
			n++
		}
		for _, id := range []string{"late", "quiet"} {
			odds[id] = forecast.Median{At: begin.Add(time.Duration(n) * time.Second), Finish: begin.Add(finish), OverBudget: over,
				Terms: w.terms(id)}
		}
		look.Pass(t.Context())
		look.Wait()
		if got := h.all(); got != want {
			t.Errorf("forecast %d: heard %q, want %q", n, got, want)
		}
	}
	see(true, 9*time.Hour, false, "")
	see(true, 11*time.Hour, false, "")
	see(false, 11*time.Hour, false, "") // the same forecast
	see(true, 9*time.Hour, false, "")   // it was noise
	see(true, 11*time.Hour, false, "")
	see(true, 12*time.Hour, false, "late late!")
	see(true, 12*time.Hour, true, "late late!")
	see(true, 12*time.Hour, true, "late late!, late over_budget!")
	see(true, 13*time.Hour, true, "late late!, late over_budget!")
	w.must("PATCH", "/v1/jobs/late", `{"deadline":"in 11h","accept_late":true}`, nil)
	see(true, 13*time.Hour, true, "late late!, late over_budget!")
	see(true, 13*time.Hour, true, "late late!, late over_budget!, late late!")
	mails := p.messages()
	if len(mails) != 3 || !strings.Contains(mails[0], "Subject: scrimp: job late will be late") ||
		!strings.Contains(mails[1], "Subject: scrimp: job late will exceed its budget") {
		t.Errorf("%q", mails)
	}
	// the next server repeats only what is not marked as made
	files, err := filepath.Glob(filepath.Join(w.opts.Dir, "foreseen", "over_budget.*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	must.Do(t, os.WriteFile(files[0], []byte(`{"id":"x","job":"late","event":"over_budget","forecast":{"detail":"d"}}`),
		0o600))
	next, err := w.outbox.Watcher(t.Context())
	must.Do(t, err)
	next.Wait()
	if got := h.all(); got != "late late!, late over_budget!, late late!, late over_budget!" {
		t.Errorf("the next server: %q", got)
	}
}
