package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/mailer"
	"scrimp/internal/server/notices"
	"scrimp/internal/server/outbox"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
)

// nextOutbox is the outbox of the server that starts next in the folder, with the mail server or without any.
func (w *world) nextOutbox(mails *mailer.Sender) *outbox.Outbox {
	old := w.outbox
	w.outbox = &outbox.Outbox{Control: old.Control, Turns: old.Turns, Vault: old.Vault, Hooks: old.Hooks, Mails: mails,
		Odds: old.Odds, Past: &notices.Past{Dir: w.opts.Dir}, Dir: w.opts.Dir, Log: old.Log}
	return w.outbox
}

func (w *world) noticesOf(id string) map[string]client.Notice {
	w.t.Helper()
	var j client.Job
	w.must("GET", "/v1/jobs/"+id, nil, &j)
	all := map[string]client.Notice{}
	for _, n := range j.Notices {
		all[n.To] = n
	}
	return all
}

// A server that starts sends nothing again to those who have it, goes on with the tries of the others, and says what
// became of each report, whatever mail server it has.
func TestNotify_NextServerRepeatsNothingThatWasDelivered(t *testing.T) {
	t.Parallel()
	p := newPostbox(t)
	p.busy = true
	w := newWorld(t, p.options)
	w.must("POST", "/v1/jobs", `{"spec":{"name":"j","command":"true","notify":`+
		`{"email":["ann@example.org","bob@example.org","nobody@example.org"]}}}`, nil)
	end := core.Notify{Job: "j", State: core.Succeeded, Why: "completed"}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.outbox.Notify(ctx, end) }()
	eventually.True(t, "each address was tried", func() bool {
		all := w.noticesOf("j")
		return len(all) == 3 && all["bob@example.org"].Tries == 1
	})
	var open []client.Notice
	w.must("GET", "/v1/notices", nil, &open)
	if n := open[0]; len(open) != 1 || n.To != "bob@example.org" || n.Job != "j" || n.State != client.Retrying ||
		n.Next == nil || !n.Next.After(n.At) || !strings.Contains(n.Error, "450 greylisted") {
		t.Errorf("%+v", open)
	}
	admin := w.signedIn(w.user("root", identity.Grant{Team: identity.Everywhere, Role: identity.Admin}))
	admin.shows("/access", 200, "not delivered yet", "e-mail to bob@example.org", "450 greylisted")
	admin.shows("/jobs/j", 200, "Reports", "not delivered yet", "e-mail to bob@example.org of done", "450 greylisted", "tried 1 time",
		"next try", "delivered</span> e-mail to ann@example.org", "not delivered</span> e-mail to nobody@example.org")
	stop()
	<-ended
	if _, err := os.Stat(filepath.Join(w.opts.Dir, "told", "j")); err == nil {
		t.Fatal("the report counts as made")
	}
	w.nextOutbox(nil).Notify(t.Context(), end)
	all := w.noticesOf("j")
	for to, want := range map[string]string{"ann@example.org": client.Delivered, "bob@example.org": client.Waiting,
		"nobody@example.org": client.Refused} {
		if all[to].State != want {
			t.Errorf("without a mail server: %+v, want %s", all[to], want)
		}
	}
	if n := all["bob@example.org"]; n.Tries != 1 || !strings.Contains(n.Error, "450") {
		t.Errorf("the tries of the first server are lost: %+v", n)
	}
	p.mu.Lock()
	p.busy = false
	p.mu.Unlock()
	mails, err := mailer.New(mailer.Settings{URL: "smtp://" + p.at, From: "scrimp@example.org"}, w.opts.Log)
	must.Do(t, err)
	for range 2 { // the second start has nothing to do
		w.nextOutbox(mails).Notify(t.Context(), end)
	}
	if n := w.noticesOf("j")["bob@example.org"]; n.State != client.Delivered || n.Tries != 2 {
		t.Errorf("%+v", n)
	}
	count := map[string]int{}
	for _, m := range p.messages() {
		to, _, _ := strings.Cut(m, "\n")
		count[to]++
	}
	if len(count) != 2 || count["RCPT TO:<ann@example.org>"] != 1 || count["RCPT TO:<bob@example.org>"] != 1 {
		t.Errorf("messages: %v", count)
	}
	if open := w.outbox.Past.Open(); len(open) != 0 {
		t.Errorf("still open: %+v", open)
	}
}

// Nobody gets the news of last week from a server that is the first to have a mail server again.
func TestNotify_ReportEndsAfterThreeDays(t *testing.T) {
	t.Parallel()
	p := newPostbox(t)
	w := newWorld(t, p.options)
	w.must("POST", "/v1/jobs", `{"spec":{"name":"j","command":"true","notify":{"email":["ann@example.org"]}}}`, nil)
	end := core.Notify{Job: "j", State: core.Succeeded, Why: "completed"}
	must.Do(t, w.outbox.Past.Add(notices.Entry{Key: end.Key(), First: time.Now().Add(-73 * time.Hour),
		Notice: client.Notice{Job: "j", Event: "done", By: "email", To: "ann@example.org", State: client.Waiting}}))
	w.outbox.Notify(t.Context(), end)
	if n := w.noticesOf("j")["ann@example.org"]; n.State != client.Refused || !strings.Contains(n.Error, "three days") ||
		len(p.messages()) > 0 {
		t.Errorf("%+v, %d messages", n, len(p.messages()))
	}
}

// A job that ends after its deadline is reported as late even if no look fell between the deadline and the end, once.
func TestNotify_JobThatEndsAfterItsDeadlineIsLate(t *testing.T) {
	t.Parallel()
	p := newPostbox(t)
	w := newWorld(t, p.options)
	for _, name := range []string{"met", "missed"} {
		w.must("POST", "/v1/jobs", fmt.Sprintf(`{"spec":{"name":%q,"command":"true","deadline":"in 51h","notify":`+
			`{"email":["ann@example.org"],"on":["late","done"]}}}`, name), nil)
	}
	w.event(core.JobEnded{Job: "met"}, 50*time.Hour)
	w.event(core.JobEnded{Job: "missed"}, 52*time.Hour)
	for range 2 {
		for _, name := range []string{"missed", "met"} {
			w.outbox.Notify(t.Context(), core.Notify{Job: name, State: core.Cancelled, Why: "asked"})
		}
	}
	eventually.True(t, "all is sent", func() bool { return len(p.messages()) >= 3 })
	late := 0
	for _, m := range p.messages() {
		if strings.Contains(m, "missed its deadline") {
			late++
			if !strings.Contains(m, "job missed") {
				t.Errorf("%s", m)
			}
		}
	}
	if list := p.messages(); late != 1 || len(list) != 3 {
		t.Errorf("%d reports of being late among %d, want 1 among 3: %q", late, len(list), list)
	}
}

// A report that a webhook cannot take yet shows its tries, and the next server goes on with them, under the same key.
func TestNotify_NextServerGoesOnWithTheTriesOfAWebhook(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var keys []string
	down := true
	hook := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if keys = append(keys, r.Header.Get("Idempotency-Key")); down {
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer hook.Close()
	host := strings.TrimPrefix(hook.URL, "http://")
	w := newWorld(t, func(o *Options) { o.HookHosts = []string{host} })
	w.must("POST", "/v1/jobs", `{"spec":{"name":"j","command":"true","notify":"`+hook.URL+`/x"}}`, nil)
	end := core.Notify{Job: "j", State: core.Succeeded, Why: "completed"}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); w.outbox.Notify(ctx, end) }()
	eventually.True(t, "a try is recorded", func() bool { return w.noticesOf("j")[host].Tries > 0 })
	if n := w.noticesOf("j")[host]; n.State != client.Retrying || n.By != "webhook" || n.Next == nil || n.Error != "status 503" {
		t.Errorf("%+v", n)
	}
	stop()
	<-ended
	before := w.noticesOf("j")[host].Tries
	mu.Lock()
	down = false
	mu.Unlock()
	w.nextOutbox(nil).Notify(t.Context(), end)
	if n := w.noticesOf("j")[host]; n.State != client.Delivered || n.Tries != before+1 || n.Error != "" {
		t.Errorf("%d tries before the restart: %+v", before, n)
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) != 1 || keys[0] == "" {
		t.Errorf("keys %q", keys)
	}
}
