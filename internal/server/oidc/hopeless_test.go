package oidc

import (
	"log/slog"
	"net"
	"net/url"
	"strings"
	"testing"
)

// A host that does not exist cannot sign anybody in; a resolver that does not answer may do so later.
func TestHopeless_TellsMissingHostFromMissingAnswer(t *testing.T) {
	p := &Provider{settings: Settings{Issuer: "https://accounts.example"}, log: slog.New(slog.DiscardHandler)}
	for _, missing := range []bool{true, false} {
		err := p.hopeless(&url.Error{Op: "Get", URL: "https://accounts.example",
			Err: &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no answer", IsNotFound: missing, IsTemporary: !missing}}})
		if (err != nil) != missing || missing && !strings.Contains(err.Error(), "no host has this name") {
			t.Errorf("missing %v: %v", missing, err)
		}
	}
}
