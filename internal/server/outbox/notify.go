// Package outbox calls webhooks, at least once, when jobs end or wait for approval. The next server makes the calls
// that a stopped server has not made.
package outbox

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/secret"
	"scrimp/internal/server/turn"
	"scrimp/internal/server/webhook"
)

// Outbox calls webhooks and records the calls in the data folder.
type Outbox struct {
	Control *control.Control
	Turns   *turn.Turns
	Vault   secret.Vault
	Hooks   webhook.Sender
	Dir     string // the data folder
	Log     *slog.Logger
}

// toldFolder records the jobs whose end was reported to their webhooks.
const toldFolder = "told"

// word is the body of a call.
type word struct {
	ID       string `json:"id"` // the same at each try, so that receivers can drop repeats
	Job      string `json:"job"`
	State    string `json:"state"`
	Why      string `json:"why"`
	Approval *asked `json:"asks,omitempty"` // for users who may approve the job
}

// chat is the message of chat services: Slack, and those that take Slack's form.
type chat struct {
	Text string `json:"text"`
}

// message returns the body of a call: a word, or a line of text for a chat.
func message(target string, w word) any {
	if !webhook.IsChat(target) {
		return w
	}
	text := "scrimp: job " + w.Job + " " + strings.ReplaceAll(w.State, "_", " ")
	if w.Why != "" {
		text += " (" + strings.ReplaceAll(w.Why, "_", " ") + ")"
	}
	if a := w.Approval; a != nil {
		text += ": " + a.Detail + ". " + a.Fix
	}
	return chat{text}
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

// Notify calls the job's webhook, records the call and forgets the job's secrets. If the server stops before, the
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
	if err == nil && j.Notify != "" {
		user, inputs := "", n.Job
		o.Control.Job(n.Job, func(_ *core.Machine, j *core.Job) { user, inputs = j.User(), j.Inputs() })
		target := webhook.Address(j.Notify, o.secrets(inputs))
		err := o.Hooks.Deliver(ctx, target, user, n.Job, n.Key(),
			message(target, word{ID: n.Key(), Job: n.Job, State: string(n.State), Why: n.Why}))
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			o.Log.Warn("cannot call the webhook", "job", n.Job, "error", err)
		}
		if err := os.WriteFile(filepath.Join(o.Dir, toldFolder, n.Told()), nil, 0o600); err != nil {
			o.Log.Warn("cannot record the call of the webhook; it will be repeated", "job", n.Job, "error", err)
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

// secrets returns the secrets of the job; nil if there are none.
func (o *Outbox) secrets(job string) map[string]string {
	m, err := o.Vault.Open(job)
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
