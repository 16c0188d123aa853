package wire

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"scrimp/internal/wire/api"
)

// The agent follows no redirect: the other address receives no token, no signature and no output of
// the program.
func TestHTTP_FollowsNoRedirect(t *testing.T) {
	var asked atomic.Int64
	fetching, enough := context.WithCancel(t.Context())
	defer enough()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		if r.URL.Path == "/v1/agent/work" { // the caller retries until the context ends
			enough()
		}
	}))
	defer server.Close()
	s, err := Dial(server.URL, func() string { return "token" })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, key, _ := ed25519.GenerateKey(nil)
	m, err := DialMachine(server.URL, "i", key, "bootstrap")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ctx := t.Context()
	_, report := s.Report(ctx, api.Report{})
	_, logs := s.Logs(ctx, "j.1", 0, []byte("output"))
	_, register := m.Register(ctx, api.Registration{})
	_, pull := m.Pull(ctx, api.Pull{})
	for what, err := range map[string]error{"report": report, "logs": logs, "register": register, "pull": pull,
		"binary": m.Binary(ctx, io.Discard)} {
		if !errors.Is(err, ErrBad) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := s.Store().Fetch(fetching, "/work"); err == nil {
		t.Error("the work folder came from elsewhere")
	}
	if asked.Load() > 0 {
		t.Errorf("%d requests came there", asked.Load())
	}
}
