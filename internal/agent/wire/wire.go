// Package wire is the agent's side of its protocol with the server: small calls over a socket or the network. Every
// request is idempotent.
package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/content/blob/httpblob"
	"scrimp/internal/lib/wait"
	"scrimp/internal/wire/api"
)

// Server is the agent's view of its server. Every call is idempotent.
type Server interface {
	// Report sends messages and returns orders. It returns ErrFenced if another attempt has the task.
	Report(context.Context, api.Report) (api.Orders, error)
	// LogEnd returns how many bytes of the log the server has.
	LogEnd(ctx context.Context, attempt string) (int64, error)
	// Logs appends chunk at offset and returns how many bytes the server has now: more than that if
	// it had them already, less than offset if it lacks some.
	Logs(ctx context.Context, attempt string, offset int64, chunk []byte) (int64, error)
	// Exec reports the result of a command.
	Exec(ctx context.Context, id string, result api.ExecResult) error
	// SessionInput waits briefly for a session's input from offset on. ErrBad means that the session has ended.
	SessionInput(ctx context.Context, id string, offset int64) (api.SessionInput, error)
	// SessionOutput sends output of a session. ErrBad means that the session has ended.
	SessionOutput(ctx context.Context, id string, offset int64, chunk []byte) error
}

// Callers test for these with errors.Is, never by text.
var (
	ErrFenced = errors.New("the token is no longer valid: another attempt has the task") // stop and publish nothing
	ErrBad    = errors.New("the server refuses the request")                             // retrying is useless
)

// LaterError is a response that says when to retry: the agent sent too much, or the server has no room now.
type LaterError struct {
	After time.Duration
	Full  bool // the server has no room
	err   error
}

func (e *LaterError) Error() string { return e.err.Error() }
func (e *LaterError) Unwrap() error { return e.err }

// answerTime limits one request. Reports are small and frequent.
const answerTime = 10 * time.Second

// idleTime is how long a connection may be idle: longer than the pause between two reports, and
// less than the 10 s after which a server closes a connection without a request, such as one that
// was opened for a call that another connection then served. A call on a connection that is being
// closed fails.
const idleTime = 8 * time.Second

// pingAfter is how long a shared HTTP/2 connection may be silent before it is pinged, and how long
// it has to answer. A call that times out does not close the connection, so after a network failure
// the next calls would stall just as long.
const pingAfter = 4 * time.Second

// maxAnswer bounds a server's response.
const maxAnswer = 16 << 20

// HTTP implements Server for an address.
type HTTP struct {
	Node int // rank of this machine in a gang; each rank has its own log

	base     string
	client   *http.Client
	patience time.Duration               // limit for one response
	show     func(*http.Request, []byte) // authenticates a request, given its body
	heard    func(*http.Response)        // called with each response; may be nil
	store    *httpblob.Bucket            // nil for a Machine, which transfers no blobs
	ways     []*http.Transport
}

// Trust sets the root certificates for the server's certificate, before the first call; nil means the system's.
func (s *HTTP) Trust(roots *x509.CertPool) {
	if roots == nil {
		return
	}
	for _, t := range s.ways {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
		t.ForceAttemptHTTP2 = true // a custom TLS configuration disables it
	}
}

// Dial returns the Server at address: unix:///path/to.sock, http://host:port or https://host:port.
// Before each request it calls token, which returns the instance's token until the claim, and the
// attempt's afterwards.
func Dial(address string, token func() string) (*HTTP, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("server address %q: %w", address, err)
	}
	transport, base, err := over(u)
	if err != nil {
		return nil, err
	}
	transport.MaxIdleConnsPerHost = 2
	moves, _, _ := over(u) // it succeeded just before
	moves.MaxIdleConnsPerHost = 16
	store := httpblob.NewBucket(base+"/v1/agent", client(moves), token)
	store.Socket = u.Scheme == "unix"
	show := func(r *http.Request, _ []byte) { r.Header.Set("Authorization", "Bearer "+token()) }
	return &HTTP{base: base, client: client(transport), patience: answerTime, show: show,
		store: store, ways: []*http.Transport{transport, moves}}, nil
}

// client returns a client that follows no redirect, because another address would receive the token
// and be trusted like the server.
func client(t *http.Transport) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		return fmt.Errorf("%w: it redirects to %s: give the machines that address", ErrBad,
			(&url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host}).String())
	}}
}

// over returns the transport to a server and the base of its URLs.
func over(u *url.URL) (t *http.Transport, base string, err error) {
	t = &http.Transport{IdleConnTimeout: idleTime,
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter}}
	switch u.Scheme {
	case "unix":
		var d net.Dialer
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", u.Path)
		}
		return t, "http://scrimp", nil
	case "http", "https":
		t.Proxy = http.ProxyFromEnvironment
		return t, strings.TrimRight(u.String(), "/"), nil
	}
	return nil, "", fmt.Errorf("server address %q: want unix:///path, http://host:port or https://host:port", u)
}

// Store returns the server's own store, with the same token.
func (s *HTTP) Store() *httpblob.Bucket { return s.store }

// Close closes idle connections.
func (s *HTTP) Close() {
	s.client.CloseIdleConnections()
	if s.store != nil {
		_ = s.store.Close() // it does only the same
	}
}

// Report implements Server.
func (s *HTTP) Report(ctx context.Context, r api.Report) (api.Orders, error) {
	var o api.Orders
	err := s.json(ctx, http.MethodPost, "/v1/agent/report", r, &o)
	return o, err
}

// LogEnd implements Server.
func (s *HTTP) LogEnd(ctx context.Context, attempt string) (int64, error) {
	var end api.LogEnd
	err := s.json(ctx, http.MethodGet, s.logPath(attempt), nil, &end)
	return end.Offset, err
}

// Logs implements Server.
func (s *HTTP) Logs(ctx context.Context, attempt string, offset int64, chunk []byte) (int64, error) {
	var end api.LogEnd
	path := s.logPath(attempt) + "&offset=" + strconv.FormatInt(offset, 10)
	err := s.do(ctx, http.MethodPost, path, "application/octet-stream", chunk, &end)
	return end.Offset, err
}

func (s *HTTP) logPath(attempt string) string {
	path := "/v1/agent/logs?attempt=" + url.QueryEscape(attempt)
	if s.Node > 0 {
		path += "&node=" + strconv.Itoa(s.Node)
	}
	return path
}

// Credentials fetches the credentials that the server lends for the job's store.
func (s *HTTP) Credentials(ctx context.Context) (c api.StoreCredentials, err error) {
	err = s.json(ctx, http.MethodGet, "/v1/agent/credentials", nil, &c)
	return c, err
}

// Search passes a call of the program about a search to the server, and returns the status and the answer. A refusal is
// not an error here: the program handles it.
func (s *HTTP) Search(ctx context.Context, body []byte) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/v1/agent/search", bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	s.show(req, body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(api.WireHeader, strconv.Itoa(api.Wire))
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }() // only read
	answer, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, answer, err
}

// WorkBlob asks for the location of the work folder in the job's bucket. refused is the reason why
// the agent rejected the last answer, or empty.
func (s *HTTP) WorkBlob(ctx context.Context, refused string) (b api.WorkBlob, err error) {
	path := "/v1/agent/work/blob"
	if refused != "" {
		path += "?refused=" + url.QueryEscape(refused)
	}
	err = s.json(ctx, http.MethodGet, path, nil, &b)
	return b, err
}

// Exec implements Server.
func (s *HTTP) Exec(ctx context.Context, id string, result api.ExecResult) error {
	return s.json(ctx, http.MethodPost, "/v1/agent/exec/"+url.PathEscape(id), result, nil)
}

// SessionInput implements Server.
func (s *HTTP) SessionInput(ctx context.Context, id string, offset int64) (in api.SessionInput, err error) {
	err = s.json(ctx, http.MethodGet, sessionPath(id, "input", offset), nil, &in)
	return in, err
}

// SessionOutput implements Server.
func (s *HTTP) SessionOutput(ctx context.Context, id string, offset int64, chunk []byte) error {
	return s.do(ctx, http.MethodPost, sessionPath(id, "output", offset), "application/octet-stream", chunk, nil)
}

func sessionPath(id, what string, offset int64) string {
	return "/v1/agent/exec/" + url.PathEscape(id) + "/" + what + "?offset=" + strconv.FormatInt(offset, 10)
}

func (s *HTTP) json(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		body = b
	}
	return s.do(ctx, method, path, "application/json", body, out)
}

func (s *HTTP) do(ctx context.Context, method, path, kind string, body []byte, out any) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	s.show(req, body)
	req.Header.Set("Content-Type", kind)
	req.Header.Set(api.WireHeader, strconv.Itoa(api.Wire))
	resp, err := s.client.Do(req)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	if s.heard != nil {
		s.heard(resp)
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if err := problem(resp.StatusCode, answer); err != nil {
		if s, bad := strconv.Atoi(resp.Header.Get("Retry-After")); bad == nil && s >= 0 &&
			resp.StatusCode >= http.StatusTooManyRequests {
			err = &LaterError{time.Duration(s) * time.Second, resp.StatusCode == http.StatusInsufficientStorage, err}
		}
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if out == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// problem returns the error for a status, or nil.
func problem(status int, body []byte) error {
	if status >= 200 && status < 300 {
		return nil
	}
	var p api.Problem
	text := http.StatusText(status)
	if json.Unmarshal(body, &p) == nil && p.Title != "" {
		text = strings.Trim(p.Title+": "+p.Detail, ": ")
	}
	err := fmt.Errorf("status %d: %s", status, text)
	switch status {
	case http.StatusUnauthorized, http.StatusGone, http.StatusForbidden:
		return fmt.Errorf("%w (%w)", ErrFenced, err)
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnprocessableEntity,
		http.StatusUpgradeRequired:
		return fmt.Errorf("%w (%w)", ErrBad, err)
	}
	return err
}

// Retry calls do until it succeeds, with growing pauses. It gives up if do's error is permanent or ctx is done.
func Retry(ctx context.Context, do func(context.Context) error) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		err := do(ctx)
		if err == nil || errors.Is(err, ErrFenced) || errors.Is(err, ErrBad) {
			return err
		}
		if wait.For(ctx, pause) != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
}
