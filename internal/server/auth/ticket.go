package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
)

// What an agent's token is for.
const (
	BootstrapTicket = "bootstrap" // to register a machine
	AttemptTicket   = "attempt"   // to serve a rank of an attempt, by api.Rank
)

// Tickets makes the tokens of agents, each good for one thing, with a key.
type Tickets []byte

// For makes the token that lets an agent do one thing: register a machine or serve an attempt.
func (k Tickets) For(what, attempt string) string {
	h := hmac.New(sha256.New, k)
	_, _ = io.WriteString(h, what+"\x00"+attempt)
	return what + "." + attempt + "." + hex.EncodeToString(h.Sum(nil))
}

// Shown returns the attempt that the request's token is for.
func (k Tickets) Shown(r *http.Request, what string) (attempt string, ok bool) {
	token := bearerToken(r)
	rest, ok := strings.CutPrefix(token, what+".")
	if !ok {
		return "", false
	}
	dot := strings.LastIndexByte(rest, '.')
	if dot < 0 {
		return "", false
	}
	attempt = rest[:dot]
	return attempt, hmac.Equal([]byte(token), []byte(k.For(what, attempt)))
}

// ticketFor is what an agent's token is for.
func ticketFor(k Scope) string {
	if k == Bootstraps {
		return BootstrapTicket
	}
	return AttemptTicket
}

// TokenShown is the token that the request shows.
func TokenShown(r *http.Request) string { return bearerToken(r) }

// bearerToken is what the request shows.
func bearerToken(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}
