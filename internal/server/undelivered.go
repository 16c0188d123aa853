package server

import "scrimp/client"

// undelivered returns the reports about a job that reached nobody. A file that cannot be read is logged.
func (s *Server) undelivered(job string) (list []client.Undelivered) {
	failures, err := s.outbox.Failures(job)
	if err != nil {
		s.opts.Log.Warn("cannot read the failed reports of a job", "job", job, "error", err)
	}
	for _, f := range failures {
		list = append(list, client.Undelivered(f))
	}
	return list
}
