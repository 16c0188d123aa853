package wire

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"scrimp/internal/wire/api"
	"scrimp/internal/wire/httpsig"
)

// Machine is a machine's connection to the server: it registers the machine's key, and pulls tasks
// with requests that the key signs. It signs with the server's time, which it learns from each
// response, because the machine's clock may be hours off.
type Machine struct {
	http  *HTTP
	token string // bootstrap token; only Register sends it
	off   atomic.Int64
}

// DialMachine returns a machine's connection to the server at address.
func DialMachine(address, instance string, key ed25519.PrivateKey, token string) (*Machine, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("server address %q: %w", address, err)
	}
	transport, base, err := over(u)
	if err != nil {
		return nil, err
	}
	m := &Machine{token: token}
	m.http = &HTTP{base: base, client: client(transport), patience: api.PullWait + answerTime,
		heard: m.heard, ways: []*http.Transport{transport}}
	m.http.show = func(r *http.Request, body []byte) {
		if r.URL.Path == registerPath {
			r.Header.Set("Authorization", "Bearer "+m.token)
			return
		}
		httpsig.Sign(r, key, instance, time.Now().Add(time.Duration(m.off.Load())), body)
	}
	return m, nil
}

const registerPath = "/v1/agent/register"

// heard records the difference between the server's clock and this machine's.
func (m *Machine) heard(resp *http.Response) {
	if at, ok := httpsig.DateOf(resp.Header); ok {
		m.off.Store(int64(time.Until(at)))
	}
}

// Trust sets the root certificates for the server's certificate, before the first call; nil means the system's.
func (m *Machine) Trust(roots *x509.CertPool) { m.http.Trust(roots) }

// Close closes the connection.
func (m *Machine) Close() { m.http.Close() }

// Register sends the machine's public key. It returns ErrFenced if the token is no longer valid.
func (m *Machine) Register(ctx context.Context, r api.Registration) (api.Registered, error) {
	var out api.Registered
	err := m.http.json(ctx, http.MethodPost, registerPath, r, &out)
	return out, err
}

// Pull waits for tasks. It returns ErrFenced if the server no longer wants the machine.
func (m *Machine) Pull(ctx context.Context, p api.Pull) (api.Pulled, error) {
	var out api.Pulled
	err := m.http.json(ctx, http.MethodPost, "/v1/agent/pull", p, &out)
	return out, err
}

// Binary fetches the server's own program for this platform.
func (m *Machine) Binary(ctx context.Context, to io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	path := "/v1/agent/binary?os=" + runtime.GOOS + "&arch=" + runtime.GOARCH
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, m.http.base+path, nil)
	if err != nil {
		return err
	}
	m.http.show(req, nil)
	req.Header.Set(api.WireHeader, strconv.Itoa(api.Wire))
	resp, err := m.http.client.Do(req)
	if err != nil {
		return fmt.Errorf("GET %s: %w", path, err)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // as much as arrives
		return fmt.Errorf("GET %s: %w", path, problem(resp.StatusCode, text))
	}
	_, err = io.Copy(to, resp.Body)
	return err
}
