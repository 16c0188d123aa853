package listener

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scrimp/internal/test/must"
)

// certificate writes a certificate for 127.0.0.1 and returns a pool that trusts it.
func certificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must.Do(t, err)
	c := x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, &c, &c, &k.PublicKey, k)
	must.Do(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(k)
	must.Do(t, err)
	cert, key, pool = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem"), x509.NewCertPool()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	pool.AppendCertsFromPEM(text)
	must.Do(t, os.WriteFile(cert, text, 0o600))
	must.Do(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	return cert, key, pool
}

func TestListen_RefusesPlainHTTPWithACertificate(t *testing.T) {
	t.Parallel()
	cert, key, pool := certificate(t)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	var address string
	f := &Front{}
	done, err := f.Listen(t.Context(), Options{Listen: "127.0.0.1:0", Cert: cert, Key: key, Log: quiet,
		Ready: func(a string) { address = a }})
	must.Do(t, err)
	defer done()
	get := func(url string, c *tls.Config) (int, error) {
		h := http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		must.Do(t, err)
		r, err := h.Do(req)
		if err != nil {
			return 0, err
		}
		return r.StatusCode, r.Body.Close()
	}
	if code, err := get(address+"/healthz", &tls.Config{RootCAs: pool}); err != nil || code != 200 {
		t.Errorf("%s: %d, %v", address, code, err)
	}
	if _, err := get(address+"/healthz", &tls.Config{}); err == nil {
		t.Error("who does not know the certificate trusts it")
	}
	if _, err := get(address+"/healthz", &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS10,
		MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	if code, err := get("http"+address[len("https"):]+"/healthz", nil); err == nil && code != http.StatusBadRequest {
		t.Errorf("plain HTTP is answered with %d", code)
	}
}

func TestListen_ChecksTheAddress(t *testing.T) {
	t.Parallel()
	cert, key, _ := certificate(t)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	for _, c := range []struct {
		o  Options
		ok bool
	}{
		{Options{Listen: "127.0.0.1:0"}, true}, {Options{Listen: "localhost:0"}, true}, {Options{}, true},
		{Options{Listen: "0.0.0.0:0", Insecure: true}, true},
		{Options{Listen: "0.0.0.0:0", Cert: cert, Key: key}, true},
		{Options{Listen: "0.0.0.0:0"}, false}, {Options{Listen: ":0"}, false}, {Options{Listen: "[::]:0"}, false},
		{Options{Listen: "127.0.0.1"}, false}, {Options{Listen: "127.0.0.1.evil.example:0"}, false},
		{Options{Listen: "127.0.0.1:0", Cert: cert}, false},
		{Options{Listen: "127.0.0.1:0", Cert: key, Key: key}, false},
		{Options{Listen: "127.0.0.1:0", Cert: cert, Key: key, Insecure: true}, false},
	} {
		c.o.Log = quiet
		ctx, cancel := context.WithCancel(t.Context())
		done, err := (&Front{}).Listen(ctx, c.o)
		if (err == nil) != c.ok {
			t.Errorf("%+v: %v", c.o, err)
		}
		if err == nil {
			done()
		}
		cancel()
	}
}

// A server without TLS warns, and names the address: all addresses if it listens on all.
func TestListen_WarnsWithoutTLS(t *testing.T) {
	t.Parallel()
	cert, key, _ := certificate(t)
	for _, c := range []struct {
		o       Options
		address string
		warns   bool
	}{
		{Options{Listen: "0.0.0.0:0", Insecure: true}, "http://[::]:", true},
		{Options{Listen: "127.0.0.1:0", Insecure: true}, "http://127.0.0.1:", false},
		{Options{Listen: "0.0.0.0:0", Cert: cert, Key: key}, "https://[::]:", false},
	} {
		var log bytes.Buffer
		told := ""
		c.o.Log, c.o.Ready = slog.New(slog.NewTextHandler(&log, nil)), func(address string) { told = address }
		f := &Front{}
		done, err := f.Listen(t.Context(), c.o)
		must.Do(t, err)
		done()
		if !strings.HasPrefix(told, c.address) && !strings.HasPrefix(told, strings.Replace(c.address, "[::]", "0.0.0.0", 1)) {
			t.Errorf("%+v: told that it listens at %s", c.o, told)
		}
		if got := strings.Contains(log.String(), "in the clear"); got != c.warns {
			t.Errorf("%s: warned %t: %s", told, got, &log)
		}
	}
}

// The server shows a renewed certificate, and never an incomplete one.
func TestCertificate_IsReloadedAfterRenewal(t *testing.T) {
	t.Parallel()
	first, key, _ := certificate(t)
	second, otherKey, _ := certificate(t)
	c := &certificateFiles{cert: first, key: key, log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	must.Do(t, c.open())
	shown := func() string {
		got, err := c.get(nil)
		must.Do(t, err)
		return string(got.Certificate[0])
	}
	replace := func(path, by string) {
		text, err := os.ReadFile(by)
		if err == nil {
			err = os.WriteFile(path+".new", text, 0o600)
		}
		if err == nil {
			err = os.Rename(path+".new", path)
		}
		must.Do(t, err)
	}
	before := shown()
	replace(first, second)
	if shown() != before {
		t.Error("a certificate is shown whose key is another one's")
	}
	replace(key, otherKey)
	if shown() == before {
		t.Error("the renewed certificate is not shown")
	}
}
