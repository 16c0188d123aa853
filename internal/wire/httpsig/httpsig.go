// Package httpsig authenticates machines: each request carries a signature with the machine's own key over method,
// path, instance, time, a nonce and the body, so that no one can change it, send it to another route or replay it.
package httpsig

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Headers of a signed request.
const (
	Instance  = "Scrimp-Instance"
	at        = "Scrimp-Time" // milliseconds since 1970, by the clock of the sender
	nonce     = "Scrimp-Nonce"
	signature = "Scrimp-Signature"
)

// Allowance is the largest accepted difference between the clocks of machine and server. A machine learns the
// server's time from each response.
const Allowance = time.Minute

// Why a request is refused.
var (
	ErrNone   = errors.New("it is not signed by the machine's key")
	ErrClock  = fmt.Errorf("it was signed more than %v from now", Allowance)
	ErrBefore = errors.New("it was signed before the server began")
	ErrReplay = errors.New("the request is a replay")
)

// Date sends the server's time to a machine in milliseconds. The header Date has whole seconds; with it, a request
// could seem to be signed before a newly started server.
func Date(h http.Header, now time.Time) { h.Set(at, strconv.FormatInt(now.UnixMilli(), 10)) }

// DateOf returns the server's time from the header of its response.
func DateOf(h http.Header) (time.Time, bool) {
	ms, err := strconv.ParseInt(h.Get(at), 10, 64)
	return time.UnixMilli(ms), err == nil
}

// Encode returns a public key in the form for registration.
func Encode(k ed25519.PublicKey) string { return base64.StdEncoding.EncodeToString(k) }

// Parse parses a public key.
func Parse(text string) (ed25519.PublicKey, error) {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(b) != ed25519.PublicKeySize {
		return nil, errors.New("the key is not a public Ed25519 key in base64")
	}
	return b, nil
}

// text returns the signed text.
func text(h http.Header, method, uri string, body []byte) []byte {
	sum := sha256.Sum256(body)
	return []byte(strings.Join([]string{"scrimp-machine-1", method, uri, h.Get(Instance), h.Get(at), h.Get(nonce),
		hex.EncodeToString(sum[:])}, "\n"))
}

// Sign signs a machine's request.
func Sign(r *http.Request, key ed25519.PrivateKey, instance string, now time.Time, body []byte) {
	h := r.Header
	h.Set(Instance, instance)
	h.Set(at, strconv.FormatInt(now.UnixMilli(), 10))
	h.Set(nonce, rand.Text())
	h.Set(signature, base64.StdEncoding.EncodeToString(ed25519.Sign(key, text(h, r.Method, r.URL.RequestURI(), body))))
}

// Seen remembers recent signatures, so that no request is accepted twice. The zero value is ready. It refuses
// requests signed before Since: a newly started server does not know what an earlier one accepted.
type Seen struct {
	Since time.Time

	mu     sync.Mutex
	nonces map[string]time.Time
	swept  time.Time
}

// Check returns why it refuses a request of the machine with the given key; nil: it accepts it.
func (s *Seen) Check(r *http.Request, key ed25519.PublicKey, now time.Time, body []byte) error {
	h := r.Header
	sig, err := base64.StdEncoding.DecodeString(h.Get(signature))
	if err != nil || len(h.Get(nonce)) < 16 || len(h.Get(nonce)) > 64 ||
		!ed25519.Verify(key, text(h, r.Method, r.URL.RequestURI(), body), sig) {
		return ErrNone
	}
	ms, err := strconv.ParseInt(h.Get(at), 10, 64)
	if err != nil {
		return ErrNone
	}
	when := time.UnixMilli(ms)
	if d := now.Sub(when); d > Allowance || d < -Allowance {
		return ErrClock
	}
	if when.Before(s.Since.Truncate(time.Millisecond)) {
		return ErrBefore
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now)
	name := h.Get(Instance) + "\n" + h.Get(nonce)
	if _, again := s.nonces[name]; again {
		return ErrReplay
	}
	s.nonces[name] = when
	return nil
}

// sweep forgets signatures that are too old to be accepted again. The caller holds mu.
func (s *Seen) sweep(now time.Time) {
	if s.nonces == nil {
		s.nonces = map[string]time.Time{}
	}
	if now.Sub(s.swept) < Allowance {
		return
	}
	s.swept = now
	for name, when := range s.nonces {
		if now.Sub(when) > Allowance {
			delete(s.nonces, name)
		}
	}
}
