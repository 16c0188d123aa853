package server

import (
	"net/http"

	"scrimp/client"
	"scrimp/internal/server/outbox"
	"scrimp/internal/server/reply"
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
