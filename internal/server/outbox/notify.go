// Package outbox tells webhooks, at least once, how jobs ended and which of them wait for approval. What a
// server has not told before it ends, the next one tells.
package outbox

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/job/spec"
	"scrimp/internal/server/secret"
	"scrimp/internal/server/turn"
	"scrimp/internal/server/webhook"
)

// Outbox tells webhooks, and notes in the data folder what was told.
type Outbox struct {
	Control *control.Control
	Turns   *turn.Turns
	Vault   secret.Vault
	Hooks   webhook.Sender
	Dir     string // the data folder
	Log     *slog.Logger
}

// toldFolder notes which ends of jobs their webhooks were told.
const toldFolder = "told"

// word is what a webhook gets.
type word struct {
	ID       string `json:"id"` // the same at each try: who has seen it can drop it
	Job      string `json:"job"`
	State    string `json:"state"`
	Why      string `json:"why"`
	Approval *asked `json:"asks,omitempty"` // of who may approve the job
}

// asked is what a webhook of a limit gets besides, of a job that waits for approval.
type asked struct {
	Budget string    `json:"budget"`
	Detail string    `json:"detail"`
	By     string    `json:"by"` // who submitted it
	Team   string    `json:"team,omitempty"`
	Until  time.Time `json:"until"` // it is given up then
	Fix    string    `json:"fix"`
}

// Notify tells the job's webhook, notes that it was told, and forgets the job's
// secrets. A server that ends before tells it at its next start.
func (o *Outbox) Notify(ctx context.Context, n core.Notify) {
	if n.State == core.Held {
		o.askApproval(ctx, n)
		return
	}
	raw, _, err := o.Control.Spec(ctx, n.Job)
	if err != nil {
		o.Log.Warn("webhook not told; the next start does it", "job", n.Job, "error", err)
		return
	}
	j, err := spec.Decode(raw)
	if err == nil && j.Notify != "" {
		user, inputs := "", n.Job
		o.Control.Job(n.Job, func(_ *core.Machine, j *core.Job) { user, inputs = j.User(), j.Inputs() })
		err := o.Hooks.Deliver(ctx, webhook.Address(j.Notify, o.secrets(inputs)), user, n.Job, n.Key(),
			word{ID: n.Key(), Job: n.Job, State: string(n.State), Why: n.Why})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			o.Log.Warn("webhook not told", "job", n.Job, "error", err)
		}
		if err := os.WriteFile(filepath.Join(o.Dir, toldFolder, n.Told()), nil, 0o600); err != nil {
			o.Log.Warn("not noted that the webhook was told; it is told again", "job", n.Job, "error", err)
		}
	}
	defer o.Turns.Alone("secrets " + n.Job)() // whoever takes the job up again brings them anew
	over := false
	o.Control.ReadUncommitted(func(m *core.Machine) {
		j, ok := m.Job(n.Job)
		over = !ok || j.State().Over() && j.Reopened() == n.Life
	})
	if over {
		o.Forget(n.Job)
	}
}

// secrets returns what was kept for the job; nil where nothing was.
func (o *Outbox) secrets(job string) map[string]string {
	m, err := o.Vault.Open(job)
	if err != nil {
		o.Log.Error("secrets not read", "job", job, "error", err)
	}
	return m.Secrets
}

// Forget removes the secrets of a job that is over.
func (o *Outbox) Forget(job string) {
	if err := o.Vault.Forget(job); err != nil {
		o.Log.Warn("secrets not forgotten", "job", job, "error", err)
	}
}
