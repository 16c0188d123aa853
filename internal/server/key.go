package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// keyFile reads a random key, made at first use and readable by the user alone.
func keyFile(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err == nil && len(b) >= 32 {
		return strings.TrimSpace(string(b)), nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read key: %w", err)
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	text := hex.EncodeToString(key)
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("write key: %w", err)
	}
	return text, nil
}

// ticket makes the token that lets an agent do one thing: register a machine or serve an attempt.
func (s *Server) ticket(what, attempt string) string {
	h := hmac.New(sha256.New, s.secret)
	_, _ = io.WriteString(h, what+"\x00"+attempt)
	return what + "." + attempt + "." + hex.EncodeToString(h.Sum(nil))
}

// agentEnv is what the agent of an attempt finds in its environment: where its engine's
// machines reach the server, and what it is let in by.
func (s *Server) agentEnv(url, attempt string) map[string]string {
	return map[string]string{
		"SCRIMP_SERVER": url,
		"SCRIMP_TOKEN":  s.ticket("bootstrap", attempt),
	}
}
