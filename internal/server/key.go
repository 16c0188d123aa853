package server

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"scrimp/internal/engine"
	"scrimp/internal/server/secret"
)

// ticket makes the token that lets an agent do one thing: register a machine or serve an attempt.
func (s *Server) ticket(what, attempt string) string {
	h := hmac.New(sha256.New, s.secret)
	_, _ = io.WriteString(h, what+"\x00"+attempt)
	return what + "." + attempt + "." + hex.EncodeToString(h.Sum(nil))
}

// agentEnv is what the agent of an attempt finds in its environment: where its engine's
// machines reach the server, what it is let in by, and whose the programs are.
func (s *Server) agentEnv(e *engine.Engine, attempt string) map[string]string {
	return map[string]string{
		"SCRIMP_SERVER":    e.AgentURL,
		"SCRIMP_TOKEN":     s.ticket("bootstrap", attempt),
		"SCRIMP_TASK_USER": cmp.Or(e.Users, engine.UsersAuto),
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
