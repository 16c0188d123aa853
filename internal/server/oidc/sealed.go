package oidc

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"sync"
	"time"
)

// flow is a sign-in that has begun. The reader's browser keeps it, sealed: the server needs no memory for sign-ins that
// strangers begin and never end.
type flow struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"` // of PKCE
	Back     string    `json:"back"`     // address to which the provider sends the reader back
	To       string    `json:"to"`       // page of this site that the reader wants
	Until    time.Time `json:"until"`
}

// FlowLife is how long a sign-in may take.
const FlowLife = 10 * time.Minute

// seal encrypts flows under a key of this process.
type seal struct{ by cipher.AEAD }

func newSeal() (seal, error) {
	var key [32]byte
	_, _ = rand.Read(key[:]) // rand.Read never fails
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return seal{}, err
	}
	by, err := cipher.NewGCMWithRandomNonce(block)
	return seal{by}, err
}

// close seals a flow.
func (s seal) close(f flow) (string, error) {
	text, err := json.Marshal(f)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(s.by.Seal(nil, nil, text, nil)), nil
}

// open returns a flow that this process has sealed.
func (s seal) open(text string) (f flow, ok bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return f, false
	}
	plain, err := s.by.Open(nil, nil, sealed, nil)
	return f, err == nil && json.Unmarshal(plain, &f) == nil
}

// mostSpent is how many ended flows a server remembers.
const mostSpent = 20_000

// spent remembers the flows that were ended, until they would expire anyway, so that each ends once.
type spent struct {
	mu    sync.Mutex
	until map[string]time.Time // by state
	order []string             // oldest first
}

// spend reports whether a flow is ended for the first time.
func (s *spent) spend(f flow, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.until[f.State]; known {
		return false
	}
	for len(s.order) > 0 && (len(s.order) >= mostSpent || !now.Before(s.until[s.order[0]])) {
		delete(s.until, s.order[0])
		s.order = s.order[1:]
	}
	if s.until == nil {
		s.until = map[string]time.Time{}
	}
	s.until[f.State] = f.Until
	s.order = append(s.order, f.State)
	return true
}
