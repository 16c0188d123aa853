package server

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"scrimp/internal/server/auth"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
	"scrimp/internal/wire/httpsig"
)

// register registers a machine.
func (w *world) register(token, instance string, key ed25519.PrivateKey) (int, api.Problem) {
	public, _ := key.Public().(ed25519.PublicKey)
	rec, p := w.ask("POST", "/v1/agent/register", token, api.Registration{Instance: instance, Key: httpsig.Encode(public)})
	return rec.Code, p
}

// signed returns a signed request of a machine.
func (w *world) signed(method, path, instance string, key ed25519.PrivateKey, in any) *http.Request {
	w.t.Helper()
	body, err := json.Marshal(in)
	must.Do(w.t, err)
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, bytes.NewReader(body))
	httpsig.Sign(r, key, instance, time.Now(), body)
	r.Header.Set(api.WireHeader, strconv.Itoa(api.Wire))
	return r
}

func (w *world) send(r *http.Request) (*httptest.ResponseRecorder, api.Problem) {
	rec := httptest.NewRecorder()
	w.h.ServeHTTP(rec, r)
	var p api.Problem
	if rec.Code >= 300 {
		_ = json.Unmarshal(rec.Body.Bytes(), &p) // ignore what is not a problem
	}
	return rec, p
}

// pull returns what a machine gets within a moment.
func (w *world) pull(instance string, key ed25519.PrivateKey) (out api.Pulled) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), eventually.Limit)
	defer cancel()
	rec, _ := w.send(w.signed("POST", "/v1/agent/pull", instance, key, api.Pull{}).WithContext(ctx))
	if rec.Code == http.StatusGone {
		return api.Pulled{Off: true}
	}
	if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil || rec.Code != http.StatusOK {
		w.t.Fatalf("%d %s, %v", rec.Code, rec.Body, err)
	}
	return out
}

// take does what the agent of an attempt's machine does first: it registers and pulls. A newly granted machine is
// unknown for a moment.
func (w *world) take(attempt string) api.Assignment {
	w.t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	must.Do(w.t, err)
	var p api.Problem
	eventually.True(w.t, "the machine is registered", func() (ok bool) {
		var code int
		code, p = w.register(w.gate.Tickets.For(auth.BootstrapTicket, attempt), w.instance(attempt), key)
		return code == http.StatusOK
	}, func() string { return fmt.Sprintf("%+v", p) })
	out := w.pull(w.instance(attempt), key)
	if len(out.Tasks) != 1 || out.Tasks[0].Attempt != attempt {
		w.t.Fatalf("pulled is %+v, want %s", out, attempt)
	}
	return out.Tasks[0]
}

// The server sends its executable to machines only, and only for its own system.
func TestBinary_IsSentToMachinesOnly(t *testing.T) {
	t.Parallel()
	exe := filepath.Join(t.TempDir(), "scrimp")
	if err := os.WriteFile(exe, []byte("the program"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, attempt := rentedWorld(t, func(o *Options) { o.Exe, o.Build = exe, "0123456789abcdef" })
	_, key, err := ed25519.GenerateKey(nil)
	must.Do(t, err)
	instance := w.instance(attempt)
	if code, p := w.register(w.gate.Tickets.For(auth.BootstrapTicket, attempt), instance, key); code != http.StatusOK {
		t.Fatalf("%+v", p)
	}
	if out := w.pull(instance, key); out.Build != w.opts.Build || len(out.Tasks) != 1 {
		t.Fatalf("pulled is %+v", out)
	}
	path := "/v1/agent/binary?os=" + runtime.GOOS + "&arch=" + runtime.GOARCH
	if rec, p := w.send(w.signed("GET", path, instance, key, nil)); rec.Code != 200 || rec.Body.String() != "the program" {
		t.Errorf("%d %+v %q", rec.Code, p, rec.Body)
	}
	if rec, p := w.send(w.signed("GET", "/v1/agent/binary?os=plan9&arch=mips", instance, key, nil)); rec.Code != 404 || p.Fix == "" {
		t.Errorf("for another system: %d %+v", rec.Code, p)
	}
	for name, token := range map[string]string{"a task": w.gate.Tickets.For(auth.AttemptTicket, attempt), "a bootstrap": w.gate.Tickets.For(auth.BootstrapTicket, attempt)} {
		if rec, _ := w.ask("GET", path, token, nil); rec.Code != http.StatusUnauthorized {
			t.Errorf("%s token is sent it: %d", name, rec.Code)
		}
	}
}
