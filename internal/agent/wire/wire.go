// Package wire is the agent's side of its protocol with the server: small calls
// that may all be repeated, over a socket or the network.
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

// Server is what the agent asks of its server. Every call may be repeated.
type Server interface {
	// Report sends messages and fetches orders. It returns ErrFenced where another attempt has the task.
	Report(context.Context, api.Report) (api.Orders, error)
	// LogEnd returns how many bytes of the log the server has.
	LogEnd(ctx context.Context, attempt string) (int64, error)
	// Logs appends chunk at offset and returns how many bytes the server has then: more
	// than was sent where it had them already, less than offset where something is missing.
	Logs(ctx context.Context, attempt string, offset int64, chunk []byte) (int64, error)
	// Exec hands in the result of a command.
	Exec(ctx context.Context, id string, result api.ExecResult) error
	// SessionInput waits a little for what was typed into a session from an offset on; ErrBad says that it is over.
	SessionInput(ctx context.Context, id string, offset int64) (api.SessionInput, error)
	// SessionOutput hands in output of a session; ErrBad says that it is over.
	SessionOutput(ctx context.Context, id string, offset int64, chunk []byte) error
}

// A caller acts on these with errors.Is, never on the text.
var (
	ErrFenced = errors.New("the token is no longer good: another attempt has the task") // stop, publish nothing
	ErrBad    = errors.New("the server refuses the request")                            // trying again is useless
)

// LaterError is an answer that says when to ask again: too much was sent, or the
// server has no room now.
type LaterError struct {
	After time.Duration
	Full  bool // the server has no room for it
	err   error
}

func (e *LaterError) Error() string { return e.err.Error() }
func (e *LaterError) Unwrap() error { return e.err }

// answerTime is how long one request may take. Reports are small and often.
const answerTime = 10 * time.Second

// idleTime is how long a connection rests here: longer than the pause between two
// reports, and less than the 10 s after which a server closes one on which nothing was
// sent yet, such as one that was opened for a call that another then served. A
// call on a connection that is just being closed fails.
const idleTime = 8 * time.Second

// pingAfter is after how long without a word a connection that all calls share is asked whether it lives, and how
// long it has to answer. A call that is given up leaves it as it is, and after a cable was out for a while it would
// stall for as long again.
const pingAfter = 4 * time.Second

// maxAnswer bounds what a server may answer.
const maxAnswer = 16 << 20

// HTTP is the Server behind an address.
type HTTP struct {
	Node int // rank of this machine in a gang: each has a log of its own

	base     string
	client   *http.Client
	patience time.Duration               // for one answer
	show     func(*http.Request, []byte) // who asks, given the body
	heard    func(*http.Response)        // nil: nobody listens
	store    *httpblob.Bucket            // nil: a machine's own connection moves nothing
	ways     []*http.Transport
}

// Trust sets the certificates that the server's is held against, before the first call; nil: the system's.
func (s *HTTP) Trust(roots *x509.CertPool) {
	if roots == nil {
		return
	}
	for _, t := range s.ways {
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
		t.ForceAttemptHTTP2 = true // as without a configuration of one's own
	}
}

// Dial returns the Server at address: unix:///path/to.sock, http://host:port
// or https://host:port. token is asked for before each request: it is the
// instance's until the claim, and the attempt's afterwards.
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
	moves, _, _ := over(u) // it was right a moment ago
	moves.MaxIdleConnsPerHost = 16
	store := httpblob.NewBucket(base+"/v1/agent", client(moves), token)
	store.Socket = u.Scheme == "unix"
	show := func(r *http.Request, _ []byte) { r.Header.Set("Authorization", "Bearer "+token()) }
	return &HTTP{base: base, client: client(transport), patience: answerTime, show: show,
		store: store, ways: []*http.Transport{transport, moves}}, nil
}

// client follows no redirect: another address would be shown the token, and believed as the server is.
func client(t *http.Transport) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		return fmt.Errorf("%w: it leads elsewhere, to %s: give the machines the address that it has there", ErrBad,
			(&url.URL{Scheme: r.URL.Scheme, Host: r.URL.Host}).String())
	}}
}

// over returns the way to a server, and what addresses begin with on it.
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

// Store is the server's own store, with the same token.
func (s *HTTP) Store() *httpblob.Bucket { return s.store }

// Close drops idle connections.
func (s *HTTP) Close() {
	s.client.CloseIdleConnections()
	if s.store != nil {
		_ = s.store.Close() // it only does the same
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

// Credentials fetches those that the server lends for the job's store.
func (s *HTTP) Credentials(ctx context.Context) (c api.StoreCredentials, err error) {
	err = s.json(ctx, http.MethodGet, "/v1/agent/credentials", nil, &c)
	return c, err
}

// WorkBlob asks where in the job's bucket its work folder lies. Refused is why what was told before was not taken; "":
// nothing was told.
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
	defer func() { _ = resp.Body.Close() }() // it was read
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

// problem turns a status into the error that a caller can act on.
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

// Retry calls do until it succeeds, with growing pauses. It ends early where
// do's error says that repeating is useless, or where ctx is done.
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
