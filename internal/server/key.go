package server

import (
	"scrimp/internal/server/auth"
)

// agentEnv is what the agent of an attempt finds in its environment: where its engine's
// machines reach the server, and what it is let in by.
func (s *Server) agentEnv(url, attempt string) map[string]string {
	return map[string]string{
		"SCRIMP_SERVER": url,
		"SCRIMP_TOKEN":  s.gate.Tickets.For(auth.BootstrapTicket, attempt),
	}
}
