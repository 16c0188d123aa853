// Package outbox reports the ends of jobs, expected trouble and requests for approval, to webhooks and by e-mail, each
// at least once. The next server makes the reports that a stopped server has not made.
package outbox

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/lib/isolate"
	"scrimp/internal/server/keymutex"
	"scrimp/internal/server/mailer"
	"scrimp/internal/server/notices"
	"scrimp/internal/server/secret"
	"scrimp/internal/server/webhook"
)

// Outbox calls webhooks, sends e-mails, and records both in the data folder.
type Outbox struct {
	Control *control.Control
	Turns   *keymutex.Turns
	Vault   secret.Vault
	Hooks   webhook.Sender
	Mails   *mailer.Sender // nil: the server sends no e-mail
	Odds    Forecasts
	Known   func(id string) string // the ID of a user, or erased-1 and so on; nil: as it is
	Weeks   func() []Weekly        // the weeks that webhooks of schedules should have by now
	Past    *notices.Past          // what became of each report
	Dir     string                 // the data folder
	Address string                 // of the server, for users; "": none
	Log     *slog.Logger
}

// toldFolder records the jobs whose end was reported to their webhooks.
const toldFolder = "told"

// word is the body of a call.
type word struct {
	ID       string `json:"id"` // the same at each try, so that receivers can drop repeats
	Job      string `json:"job"`
	Event    string `json:"event,omitempty"` // done, failed, late or over_budget; "": the job waits for approval
	State    string `json:"state"`
	Why      string `json:"why"`
	Approval *asked `json:"asks,omitempty"` // for users who may approve the job
	// Forecast is set if the job has not ended.
	Forecast *expected `json:"forecast,omitempty"`

	alert, anomaly string // of a report about an anomaly, which has no job
	week           string // the Monday of a weekly report
}

// of returns what logs name: the job, or the alert.
func (w *word) of() string {
	if w.alert != "" {
		return "alert " + w.alert
	}
	return w.Job
}

// chat is the message of chat services: Slack, and those that take Slack's form.
type chat struct {
	Text string `json:"text"`
}

// longestChat bounds the text of a message, in characters with their escapes. A text object of Slack has at most
// 3,000; the names of users, which replace their IDs later, may be longer than those.
const longestChat = 2900

// chatOf returns a text as the message of a chat: one line, in which no part of it is a command.
func chatOf(text string) chat {
	var b strings.Builder
	n := 0
	for _, c := range oneLine(text) {
		escaped := chatEscapes.Replace(string(c))
		if n += utf8.RuneCountInString(escaped); n >= longestChat {
			b.WriteString("…")
			break
		}
		b.WriteString(escaped)
	}
	return chat{b.String()}
}

// message returns the body of a call: a word, or a line of text for a chat.
func message(target string, w word) any {
	if !webhook.IsChat(target) {
		return w
	}
	text := w.line()
	if a := w.Approval; a != nil {
		text += ": " + a.Detail + ". " + a.Fix
	}
	if f := w.Forecast; f != nil {
		text += ": " + f.Detail + ". " + f.Fix
	}
	return chatOf(text)
}

// line returns the event in a few words.
func (w *word) line() string {
	text := "scrimp: job " + w.Job + " "
	switch {
	case w.Forecast != nil && w.Forecast.Passed:
		return text + "missed its deadline"
	case w.Forecast != nil && w.Event == spec.Late:
		return text + "will be late"
	case w.Forecast != nil:
		return text + "will exceed its budget"
	}
	text += strings.ReplaceAll(w.State, "_", " ")
	if w.Why != "" {
		text += " (" + strings.ReplaceAll(w.Why, "_", " ") + ")"
	}
	return text
}

// asked describes a job that waits for approval, in the call to a limit's webhook.
type asked struct {
	Budget string    `json:"budget"`
	Detail string    `json:"detail"`
	By     string    `json:"by"` // who submitted it
	Team   string    `json:"team,omitempty"`
	Until  time.Time `json:"until"` // when the server gives the job up
	Fix    string    `json:"fix"`
}

// Notify reports the job's end, records the report and forgets the job's secrets. If the server stops before, the
// next one calls at its start.
func (o *Outbox) Notify(ctx context.Context, n core.Notify) {
	if n.State == core.Held {
		o.askApproval(ctx, n)
		return
	}
	raw, _, err := o.Control.Spec(ctx, n.Job)
	if err != nil {
		o.Log.Warn("cannot call the webhook; the next start retries", "job", n.Job, "error", err)
		return
	}
	j, err := spec.Decode(raw)
	if err == nil && !j.Notify.IsZero() {
		switch o.reportEnd(ctx, j.Notify, n) {
		case interrupted:
			return
		case open:
		case made:
			if err := os.WriteFile(filepath.Join(o.Dir, toldFolder, n.Told()), nil, 0o600); err != nil {
				o.Log.Warn("cannot record the call of the webhook; it will be repeated", "job", n.Job, "error", err)
			}
		}
	}
	defer o.Turns.Alone("secrets " + n.Job)() // serialize with a resumption, which brings the secrets anew
	over := false
	o.Control.ReadUncommitted(func(m *core.Machine) {
		j, ok := m.Job(n.Job)
		over = !ok || j.State().Over() && j.Reopened() == n.Life
	})
	if over {
		o.Forget(n.Job)
	}
}

// reportEnd reports a job's end, and that it ended after its deadline, to those whom its file names.
func (o *Outbox) reportEnd(ctx context.Context, to spec.Notify, n core.Notify) result {
	end, late := made, true
	var all sync.WaitGroup
	if to.Wants(spec.Late) {
		all.Go(func() {
			isolate.Retry(ctx, o.Log, "report of job "+n.Job, func() { late = o.lateAtEnd(ctx, to, n) })
		})
	}
	if event, wanted := wantedEnd(to, n); wanted {
		end = o.send(ctx, to, word{ID: n.Key(), Job: n.Job, Event: event, State: string(n.State), Why: n.Why})
	}
	all.Wait()
	if !late {
		return interrupted
	}
	return end
}

// secrets returns the secrets of the job with that entry of the vault; nil if there are none.
func (o *Outbox) secrets(job, entry string) map[string]string {
	m, err := o.Vault.Current(job, entry)
	if err != nil {
		o.Log.Error("cannot read the secrets", "job", job, "error", err)
	}
	return m.Secrets
}

// Forget deletes the secrets of a job that has ended.
func (o *Outbox) Forget(job string) {
	if err := o.Vault.Forget(job); err != nil {
		o.Log.Warn("cannot forget the secrets", "job", job, "error", err)
	}
}
