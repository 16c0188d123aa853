package server

import (
	"net/http"

	"scrimp/client"
	"scrimp/internal/server/mailer"
	"scrimp/internal/server/notices"
	"scrimp/internal/server/outbox"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/webhook"
)

// notices returns the reports about a job, and those that a receiver did not get. A file that cannot be read is logged.
func (s *Server) notices(job string) (all []client.Notice, failed []client.Undelivered) {
	all, err := s.outbox.Past.Of(job)
	if err != nil {
		s.opts.Log.Warn("cannot read the reports of a job", "job", job, "error", err)
	}
	for _, n := range all {
		if n.State == client.Refused {
			failed = append(failed, client.Undelivered{Event: n.Event, To: n.To, Error: n.Error, At: n.At})
		}
	}
	return all, failed
}

// getNotices lists the reports of all jobs that are being retried, or wait for a server that sends e-mail.
func (s *Server) getNotices(w http.ResponseWriter, _ *http.Request) {
	reply.JSON(w, s.outbox.Past.Open())
}

// weeks returns the weeks that webhooks of schedules should have by now.
func (s *Server) weeks() (list []outbox.Weekly) {
	for _, w := range s.groups.EndedWeeks() {
		list = append(list, outbox.Weekly{User: w.User, Webhook: w.Webhook,
			Report: outbox.NewWeek(w.Schedule, w.Name, w.Currency, w.Week, w.Text)})
	}
	return list
}

// openOutbox makes the senders of webhooks and e-mails. They write names of users in place of IDs.
func (s *Server) openOutbox(address string) {
	o := &s.opts
	s.hooks = webhook.NewSender(o.Version, !s.wide, o.HookHosts, o.Log)
	s.hooks.Names = s.gate.Names
	s.outbox = &outbox.Outbox{Turns: &s.turns, Vault: s.vault(), Hooks: s.hooks, Odds: &s.odds, Dir: o.Dir, Log: o.Log}
	s.outbox.Known = s.gate.Known
	s.outbox.Past, s.outbox.Address = &notices.Past{Dir: o.Dir}, address
	if s.outbox.Mails, _ = mailer.New(o.Mail, o.Log); s.outbox.Mails != nil { // Serve has reported the errors
		s.outbox.Mails.Names = s.gate.Names
	}
}
