package cli

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	api "scrimp/client"
	"scrimp/internal/server"
	"scrimp/internal/wait"
)

// client talks to the server of a data folder, or to the one that was logged in to.
type client struct {
	*api.Client
	base string // address of the server; http://scrimp stands for the folder's socket
	dir  string
	far  bool // logged in: the server may be another machine
}

// errNoServer says that none answers.
var errNoServer = errors.New("no server answers")

// open returns a client of the folder's server, or errNoServer.
func (a *app) open(ctx context.Context) (*client, error) {
	dir, err := filepath.Abs(a.data)
	if err != nil {
		return nil, fmt.Errorf("data folder %s: %w", a.data, err)
	}
	if c, err := far(dir); c != nil || err != nil {
		return c, err
	}
	token, err := os.ReadFile(filepath.Join(dir, server.TokenName))
	if err != nil {
		return nil, fmt.Errorf("%w in %s", errNoServer, dir)
	}
	socket := filepath.Join(dir, server.SocketName)
	const base = "http://scrimp"
	c := &client{base: base, dir: dir, Client: api.New(base, strings.TrimSpace(string(token)),
		&http.Client{Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "unix", socket)
			},
		}})}
	if _, err := c.server(ctx); err != nil {
		return nil, fmt.Errorf("%w in %s: %v", errNoServer, dir, err) //nolint:errorlint // the cause is for people
	}
	return c, nil
}

// ensure returns a client of the folder's server and starts one if none answers.
// A server of another build is asked to hand over: its jobs run on.
func (a *app) ensure(ctx context.Context, market string) (*client, error) {
	c, err := a.open(ctx)
	if err == nil {
		v, err := c.server(ctx)
		if c.far || err == nil && (v.Build == build() || v.Shared) {
			return c, err
		}
		a.notef("The server in %s is of another build: it hands over.\n", a.data)
		if err := c.do(ctx, http.MethodPost, "/v1/server/stop", api.StopServer{}, nil); err != nil {
			return nil, err
		}
		if err := gone(ctx, v.PID); err != nil {
			return nil, err
		}
	} else if !errors.Is(err, errNoServer) {
		return nil, err
	}
	log := filepath.Join(a.data, server.LogName)
	why, before := "the server did not start within 20 s: see "+log, sizeOf(log)
	// another takes over, or somebody has to start one
	if _, err := os.Stat(filepath.Join(a.data, server.ElsewhereName)); err == nil {
		why = "no server of this folder answered within 20 s, and its log lies in PostgreSQL: start scrimp serve --db"
	} else if err := a.spawn(market); err != nil {
		return nil, err
	}
	said := time.Time{}
	for begun := a.now(); ; {
		c, err := a.open(ctx)
		if err == nil {
			return c, nil
		}
		complains := complaint(log, before)
		if complains != "" && said.IsZero() {
			said = a.now()
		}
		switch { // of two that are started at once one complains, and the other answers
		case !said.IsZero() && a.now().Sub(said) > 2*time.Second:
			return nil, errors.New("the server did not start: " + complains)
		case a.now().Sub(begun) > 20*time.Second:
			return nil, errors.New(why)
		}
		if err := wait.For(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// sizeOf is a file's size in bytes, 0 where there is none.
func sizeOf(file string) int64 {
	if info, err := os.Stat(file); err == nil {
		return info.Size()
	}
	return 0
}

// complaint is the newest error that a server which ended wrote into its log, after
// the byte from. Empty: none.
func complaint(log string, from int64) (said string) {
	b, err := os.ReadFile(log)
	if err != nil || int64(len(b)) < from {
		return ""
	}
	for line := range strings.Lines(string(b[from:])) {
		if rest, is := strings.CutPrefix(strings.TrimSpace(line), "scrimp: "); is {
			said = rest
		}
	}
	return said
}

// spawn starts a server in a session of its own.
func (a *app) spawn(market string) error {
	dir, err := filepath.Abs(a.data)
	if err != nil {
		return fmt.Errorf("data folder %s: %w", a.data, err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make data folder: %w: give another with --data", err)
	}
	log, err := os.OpenFile(filepath.Join(dir, server.LogName), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the server's log: %w", err)
	}
	defer func() { _ = log.Close() }()
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	args := []string{"server", "run", "--data", dir}
	if market != "" {
		args = append(args, "--market", market)
	}
	cmd := exec.Command(exe, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	go func() { _ = cmd.Wait() }() // ends with one of the two; a server that ends first is no zombie
	return nil
}

// gone waits until the process has ended.
func gone(ctx context.Context, pid int) error {
	for range 200 {
		if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
			return nil
		}
		if err := wait.For(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("the old server (process %d) has not left after 10 s", pid)
}

// build is the hash of this program.
func build() string {
	exe, err := os.Executable()
	if err != nil {
		return "unknown"
	}
	f, err := os.Open(exe)
	if err != nil {
		return "unknown"
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "unknown"
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

func (c *client) server(ctx context.Context) (api.Server, error) {
	var v api.Server
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	err := c.do(ctx, http.MethodGet, "/v1/server", nil, &v)
	return v, err
}

func (c *client) job(ctx context.Context, id string) (api.Job, error) {
	var j api.Job
	err := c.do(ctx, http.MethodGet, ofJob(id, ""), nil, &j)
	return j, err
}

// do sends in as JSON and reads the answer into out; either may be nil.
func (c *client) do(ctx context.Context, method, path string, in, out any) error {
	return c.said(ctx, c.Do(ctx, method, path, in, out))
}

// request asks without a body and returns the answer, whose body the caller closes.
func (c *client) request(ctx context.Context, method, path string) (*http.Response, error) {
	r, err := c.Open(ctx, method, path, "", nil)
	return r, c.said(ctx, err)
}

// said is an error of the server or of the way to it, as people are told it.
func (c *client) said(ctx context.Context, err error) error {
	var problem *api.Problem
	var status *api.StatusError
	var at *url.Error
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.As(err, &status):
		if status.Status == http.StatusBadRequest && c.far && strings.HasPrefix(c.base, "http://") {
			return fmt.Errorf("%s answers as no scrimp server does: write https://%s where it speaks TLS", c.base,
				strings.TrimPrefix(c.base, "http://"))
		}
	case c.far && ctx.Err() == nil && errors.As(err, &at):
		return c.unanswered(at)
	}
	return err
}

// unanswered says why a server elsewhere gave no answer.
func (c *client) unanswered(at *url.Error) error {
	var untrusted *tls.CertificateVerificationError
	if errors.As(at, &untrusted) {
		return fmt.Errorf("%s shows a certificate that is not trusted: %w: scrimp login %s --ca FILE trusts one of your own",
			c.base, untrusted.Err, c.base)
	}
	return fmt.Errorf("no answer from %s: %w: ask whoever runs it, or scrimp login to another", c.base, at.Err)
}

// ofJob is the path of something of a job.
func ofJob(id, rest string) string { return "/v1/jobs/" + url.PathEscape(id) + rest }
