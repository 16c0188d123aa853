package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
)

// The purposes of agents' tokens.
const (
	BootstrapTicket = "bootstrap" // to register a machine
	AttemptTicket   = "attempt"   // to serve a rank of an attempt, named by api.Rank
)

// Tickets is the key of agents' tokens. Each token is valid for one purpose.
type Tickets []byte

// For returns the token with which an agent may register a machine or serve an attempt.
func (k Tickets) For(what, attempt string) string {
	h := hmac.New(sha256.New, k)
	_, _ = io.WriteString(h, what+"\x00"+attempt)
	return what + "." + attempt + "." + hex.EncodeToString(h.Sum(nil))
}

// Shown returns the attempt that the request's token belongs to.
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

// purposeOf returns the purpose of the token that a scope requires.
func purposeOf(k Scope) string {
	if k == Bootstraps {
		return BootstrapTicket
	}
	return AttemptTicket
}

// TokenShown returns the bearer token of the request.
func TokenShown(r *http.Request) string { return bearerToken(r) }

// bearerToken returns the bearer token of the request.
func bearerToken(r *http.Request) string {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return token
}
