package hostd

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"scrimp/internal/lib/wait"
)

// A computer joins a server by a request to JoinPath with its token. From then on the connection carries what
// standard input and output carry otherwise.
const (
	JoinPath      = "/v1/agent/join"
	JoinProtocol  = "scrimp-hostd-1"
	SessionHeader = "Scrimp-Session" // random id chosen by the computer, by which a server recognises it
)

// Time limits of a joining connection, wall time.
const (
	reachTime  = 2 * time.Second        // to reach the server; short, to notice a repaired network soon
	greetTime  = 5 * time.Second        // for its TLS handshake
	joinWait   = 20 * time.Second       // for the server's answer
	quietMost  = 12 * time.Second       // longest silence of the server before the connection is dropped
	soonPause  = 500 * time.Millisecond // between attempts in the first minute
	againPause = 15 * time.Second       // between later attempts
	soonFor    = time.Minute
)

// ErrRefused says that the server does not accept the token.
var ErrRefused = errors.New("the server rejects the token")

// JoinOptions say which server a computer joins. The embedded Options are those of Serve.
type JoinOptions struct {
	Options
	URL   string // http:// or https://
	Token string
	// Joined is called for each established connection; nil: no call.
	Joined func()
}

// Roots returns the trusted certificates: the system's and those of a PEM file; nil means the system's alone.
func Roots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the certificates: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", file)
	}
	return pool, nil
}

// Join serves as Serve does, over connections to a server that it reopens whenever they end. Machines continue
// meanwhile. It returns when ctx ends, or if the server has never accepted the token.
func Join(ctx context.Context, o JoinOptions) error {
	roots, err := Roots(o.CA)
	if err != nil {
		return err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Server = strings.TrimRight(o.URL, "/")
	j := &joiner{JoinOptions: o, roots: roots, session: random() + random()}
	var said time.Time
	for lost := time.Now(); ; {
		began := time.Now()
		stood, err := j.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if stood {
			j.stood, said, lost = true, time.Time{}, time.Now()
		}
		if errors.Is(err, ErrRefused) && !j.stood {
			return err
		}
		if time.Since(said) > soonFor { // rather than with each attempt
			said = time.Now()
			o.Log.Warn("not joined; trying again", "server", o.Server, "error", err)
		}
		pause := soonPause
		if time.Since(lost) > soonFor {
			pause = againPause
		}
		_ = wait.For(ctx, pause-min(pause, time.Since(began)))
	}
}

// joiner is a computer that joins a server.
type joiner struct {
	JoinOptions
	roots   *x509.CertPool
	session string
	stood   bool // it has joined once
}

// once connects and serves until the connection ends; stood reports whether a connection was established.
func (j *joiner) once(ctx context.Context) (stood bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var local net.Addr
	transport := j.transport(&local)
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, j.Server+JoinPath, nil)
	if err != nil {
		return false, err
	}
	r.Header.Set("Authorization", "Bearer "+j.Token)
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", JoinProtocol)
	r.Header.Set(SessionHeader, j.session)
	answer, err := (&http.Client{Transport: transport,
		// The token must go nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(r)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) {
			err = at.Err
		}
		return false, fmt.Errorf("cannot reach %s: %w", j.Server, err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusSwitchingProtocols {
		return false, refusal(answer)
	}
	stream, ok := answer.Body.(io.ReadWriter)
	if !ok {
		return false, errors.New("something between here and the server blocks connection upgrades: let the proxy pass " +
			"it on")
	}
	if j.Joined != nil {
		j.Joined()
	}
	o := j.Options
	if a, ok := local.(*net.TCPAddr); ok && o.Address == "" && !a.IP.IsLoopback() {
		o.Address = a.IP.String()
	}
	return true, serveStream(ctx, stream, answer.Body.Close, o)
}

// serveStream serves over an established connection until it ends, or until the server has sent nothing for
// quietMost: a broken network gives no other sign.
func serveStream(ctx context.Context, stream io.ReadWriter, hangUp func() error, o Options) error {
	var quiet atomic.Bool
	in := &watched{Reader: stream, late: time.AfterFunc(quietMost, func() {
		quiet.Store(true)
		_ = hangUp()
	})}
	defer in.late.Stop()
	defer context.AfterFunc(ctx, func() { _ = hangUp() })()
	err := Serve(ctx, in, stream, o)
	switch {
	case quiet.Load():
		return fmt.Errorf("the server has been silent for %v", quietMost)
	case err == nil:
		return errors.New("the connection has ended")
	}
	return err
}

// transport returns the agent's own transport without HTTP/2, which has no upgrade.
func (j *joiner) transport(local *net.Addr) *http.Transport {
	d := net.Dialer{Timeout: reachTime, KeepAlive: quietMost}
	var mu sync.Mutex
	return &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: greetTime,
		ResponseHeaderTimeout: joinWait, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: j.roots},
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := d.DialContext(ctx, network, address)
			if err == nil {
				mu.Lock()
				*local = conn.LocalAddr()
				mu.Unlock()
			}
			return conn, err
		}}
}

// refusal returns why the server does not accept the computer.
func refusal(answer *http.Response) error {
	var p struct{ Title, Detail, Fix string }
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10)) // as much as there is
	said := answer.Status
	if json.Unmarshal(text, &p) == nil && p.Title != "" {
		said = p.Title
		if p.Detail != "" {
			said += ": " + p.Detail
		}
		if p.Fix != "" {
			said += ": " + p.Fix
		}
	}
	if answer.StatusCode == http.StatusUnauthorized {
		return fmt.Errorf("%w: %s", ErrRefused, said)
	}
	return fmt.Errorf("the server rejects this machine: %s", said)
}

// watched notes the time of the last read.
type watched struct {
	io.Reader
	late *time.Timer
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	if n > 0 {
		w.late.Reset(quietMost)
	}
	return n, err
}
