package httpsig

import (
	"crypto/ed25519"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Whatever the headers, only requests signed with the machine's key are accepted, and each only once.
func FuzzCheck(f *testing.F) {
	now := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)
	_, key, _ := ed25519.GenerateKey(nil)
	pub, _ := key.Public().(ed25519.PublicKey)
	good := httptest.NewRequest(http.MethodPost, "/v1/agent/pull?x=1", nil)
	Sign(good, key, "i-1", now, []byte("body"))
	h := good.Header
	f.Add("i-1", h.Get(at), h.Get(nonce), h.Get(signature), "/v1/agent/pull?x=1", []byte("body"))
	f.Add("i-1\n1", h.Get(at), "0123456789abcdef", "AAAA", "/v1/agent/report", []byte{})
	f.Add("", "9223372036854775807", "", "", "/", []byte("\n"))
	f.Fuzz(func(t *testing.T, instance, when, once, sig, uri string, body []byte) {
		var seen Seen
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.URL.Path, r.URL.RawQuery = uri, ""
		r.Header[Instance], r.Header[at], r.Header[nonce], r.Header[signature] =
			[]string{instance}, []string{when}, []string{once}, []string{sig}
		if seen.Check(r, pub, now, body) == nil {
			t.Errorf("taken is %q %q %q %q %q %q", instance, when, once, sig, uri, body)
		}
		same := good.Clone(t.Context())
		if err := seen.Check(same, pub, now, []byte("body")); err != nil {
			t.Errorf("what the key signed: %v", err)
		}
		if seen.Check(same, pub, now, []byte("body")) == nil {
			t.Error("it is taken twice")
		}
	})
}

// Parse accepts only keys of the right length.
func FuzzParse(f *testing.F) {
	pub, _, _ := ed25519.GenerateKey(nil)
	f.Add(Encode(pub))
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		if k, err := Parse(text); err == nil && len(k) != ed25519.PublicKeySize {
			t.Errorf("%q is a key of %d bytes", text, len(k))
		}
	})
}
