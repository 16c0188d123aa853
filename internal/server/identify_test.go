package server

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scrimp/internal/engine"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// shows is a provider that signs the identity of its machines: a document is a machine's ID, signed by the word
// "signed".
type shows struct {
	rents
	program string
	away    bool
	key     string // of every machine; "": its own
}

func (s *shows) Program() string { return s.program }

func (s *shows) Identify(ctx context.Context, e engine.Evidence) (instance, key string, err error) {
	if s.away {
		return "", "", errors.New("the provider does not answer")
	}
	list, _ := s.List(ctx) // List never fails
	for _, i := range list {
		if string(e.Signature) == "signed" && i.ID == string(e.Document) {
			if s.key != "" {
				return i.ID, s.key, nil
			}
			return i.ID, i.Key, nil
		}
	}
	return "", "", engine.ErrImpostor
}

func (w *world) identify(b any) (int, api.Identified) {
	w.t.Helper()
	rec, _ := w.ask("POST", "/v1/agent/identify", "", b)
	var out api.Identified
	if rec.Code == http.StatusOK {
		must.Do(w.t, json.Unmarshal(rec.Body.Bytes(), &out))
	}
	return rec.Code, out
}

// A machine without a secret gets its registration token by proving its identity, and nobody else does; the token
// works once.
func TestIdentify_IssuesATokenForASignedDocument(t *testing.T) {
	t.Parallel()
	s := &shows{}
	w := newWorldOf(t, s, nil)
	attempt := w.rent("a")
	instance := w.instance(attempt)
	good := api.Identification{Engine: "shut", Document: instance, Signature: "signed"}
	for what, c := range map[string]struct {
		change func(*api.Identification)
		want   int
	}{
		"another signature": {func(b *api.Identification) { b.Signature = "forged" }, http.StatusForbidden},
		"another machine":   {func(b *api.Identification) { b.Document = "i-other" }, http.StatusForbidden},
		"another engine":    {func(b *api.Identification) { b.Engine = "local" }, http.StatusForbidden},
		"nothing":           {func(b *api.Identification) { *b = api.Identification{} }, http.StatusForbidden},
		"too much": {func(b *api.Identification) { b.Document = strings.Repeat("x", 9<<10) },
			http.StatusUnprocessableEntity},
		"far too much": {func(b *api.Identification) { b.Document = strings.Repeat("x", 17<<10) },
			http.StatusRequestEntityTooLarge},
	} {
		b := good
		c.change(&b)
		if code, got := w.identify(b); code != c.want || got.Token != "" {
			t.Errorf("%s: %d with %+v, want %d", what, code, got, c.want)
		}
	}
	s.key = "ffffffff-1-a.1"
	if code, got := w.identify(good); code != http.StatusForbidden || got.Token != "" {
		t.Errorf("a machine of another installation: %d with %+v", code, got)
	}
	s.key, s.away = "", true
	if code, got := w.identify(good); code != http.StatusServiceUnavailable || got.Token != "" {
		t.Errorf("while the provider is away: %d with %+v", code, got)
	}
	s.away = false
	code, got := w.identify(good)
	if code != http.StatusOK || got.Instance != instance {
		t.Fatalf("it is answered with %d: %+v", code, got)
	}
	_, mine, _ := ed25519.GenerateKey(nil)
	if code, p := w.register(got.Token, got.Instance, mine); code != http.StatusOK {
		t.Fatalf("it registers: %d %s", code, p.Title)
	}
	_, later := w.identify(good) // a program on the machine reads the same
	_, other, _ := ed25519.GenerateKey(nil)
	if code, p := w.register(later.Token, later.Instance, other); code != http.StatusGone {
		t.Errorf("who comes after it registers: %d %s", code, p.Title)
	}
	if strings.Contains(w.log.String(), got.Token) {
		t.Error("the token stands in the log")
	}
}

// The server sends its executable to clients that know its hash, if its machines fetch it at all.
func TestProgram_IsSentByItsHash(t *testing.T) {
	t.Parallel()
	text := []byte("a program\n")
	sum := sha256.Sum256(text)
	s := &shows{program: hex.EncodeToString(sum[:])}
	path := filepath.Join(t.TempDir(), "scrimp")
	must.Do(t, os.WriteFile(path, text, 0o700))
	w := newWorldOf(t, s, func(o *Options) { o.Exe = path })
	rec, _ := w.ask("GET", "/v1/program/"+s.program, "", nil)
	if rec.Code != http.StatusOK || rec.Body.String() != string(text) {
		t.Errorf("it is answered with %d: %q", rec.Code, rec.Body)
	}
	for _, hash := range []string{strings.Repeat("0", 64), "x", s.program[:16]} {
		if rec, _ := w.ask("GET", "/v1/program/"+hash, "", nil); rec.Code != http.StatusNotFound {
			t.Errorf("%s: %d", hash, rec.Code)
		}
	}
	s.program = ""
	if rec, _ := w.ask("GET", "/v1/program/"+hex.EncodeToString(sum[:]), "", nil); rec.Code != http.StatusNotFound {
		t.Errorf("where no machine fetches it: %d", rec.Code)
	}
}
