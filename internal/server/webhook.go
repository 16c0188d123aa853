package server

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/server/webhook"
	"scrimp/internal/spec"
)

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

// notify tells the job's webhook, notes that it was told, and forgets the job's
// secrets. A server that ends before tells it at its next start.
func (s *Server) notify(ctx context.Context, n core.Notify) {
	if n.State == core.Held {
		s.askApproval(ctx, n)
		return
	}
	raw, _, err := s.control.Spec(ctx, n.Job)
	if err != nil {
		s.opts.Log.Warn("webhook not told; the next start does it", "job", n.Job, "error", err)
		return
	}
	j, err := spec.Decode(raw)
	if err == nil && j.Notify != "" {
		err := s.hooks.Deliver(ctx, webhook.Address(j.Notify, s.secrets(n.Job)), n.Job, n.Key(),
			word{ID: n.Key(), Job: n.Job, State: string(n.State), Why: n.Why})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.opts.Log.Warn("webhook not told", "job", n.Job, "error", err)
		}
		if err := os.WriteFile(filepath.Join(s.opts.Dir, toldFolder, n.Told()), nil, 0o600); err != nil {
			s.opts.Log.Warn("not noted that the webhook was told; it is told again", "job", n.Job, "error", err)
		}
	}
	defer s.turns.Alone("secrets " + n.Job)() // whoever takes the job up again brings them anew
	over := false
	s.control.ReadUncommitted(func(m *core.Machine) {
		j, ok := m.Job(n.Job)
		over = !ok || j.State().Over() && j.Reopened() == n.Life
	})
	if over {
		s.forget(n.Job)
	}
}
