package server

import (
	"scrimp/internal/server/auth"
	"scrimp/internal/server/secret"
)

// agentEnv is what the agent of an attempt finds in its environment: where its engine's
// machines reach the server, and what it is let in by.
func (s *Server) agentEnv(url, attempt string) map[string]string {
	return map[string]string{
		"SCRIMP_SERVER": url,
		"SCRIMP_TOKEN":  s.gate.Tickets.For(auth.BootstrapTicket, attempt),
	}
}

// secrets returns what was kept for the job; nil where nothing was.
func (s *Server) secrets(job string) map[string]string {
	m, err := s.vault().Open(job)
	if err != nil {
		s.opts.Log.Error("secrets not read", "job", job, "error", err)
	}
	return m
}

// forget removes the secrets of a job that is over.
func (s *Server) forget(job string) {
	if err := s.vault().Forget(job); err != nil {
		s.opts.Log.Warn("secrets not forgotten", "job", job, "error", err)
	}
}

func (s *Server) vault() secret.Vault { return secret.Vault{Dir: s.opts.Dir} }
