// Package local rents machines on one computer: its driver asks the process of a market (marketd), which rents out
// processes as machines.
package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"scrimp/internal/lib/child"

	"scrimp/internal/engine"
	"scrimp/internal/market"
)

// refused is a refusal as the caller receives it: the daemon's text and its kind of error.
type refused struct {
	kind error
	text string
}

func (r refused) Error() string { return r.text }
func (r refused) Unwrap() error { return r.kind }

// Driver rents machines from the daemon of a folder.
type Driver struct {
	http  *http.Client
	dir   string
	at    string                      // folder of the machines; empty: below dir
	spawn func(context.Context) error // starts the daemon if none answers; nil: something else starts it
}

var _ engine.Driver = (*Driver)(nil)

// Dial returns a driver for the folder's market. It does not connect yet.
func Dial(dir string) (*Driver, error) {
	socket, err := filepath.Abs(filepath.Join(dir, SocketName))
	if err != nil {
		return nil, fmt.Errorf("market in %s: %w", dir, err)
	}
	return &Driver{dir: dir, http: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}}, nil
}

func (d *Driver) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://market"+path, body)
	if err != nil {
		return err
	}
	r, err := d.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask the market in %s: %w", d.dir, err)
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode != http.StatusOK {
		var no Refusal
		if err := json.NewDecoder(r.Body).Decode(&no); err != nil {
			return fmt.Errorf("ask the market in %s: status %d", d.dir, r.StatusCode)
		}
		if kind := Kinds[no.Kind]; kind != nil {
			return refused{kind, no.Text}
		}
		return errors.New(no.Text)
	}
	return json.NewDecoder(r.Body).Decode(out)
}

// Launch implements engine.Driver.
func (d *Driver) Launch(ctx context.Context, r engine.Request) ([]engine.Instance, error) {
	var list granted
	if err := r.NoImage(); err != nil {
		return nil, err
	}
	err := d.do(ctx, http.MethodPost, "/launch", r, &list)
	return list, err
}

// granted decodes the machines of a launch. A market started by an older program returns a single machine.
type granted []engine.Instance

// UnmarshalJSON decodes both forms.
func (g *granted) UnmarshalJSON(text []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		return json.Unmarshal(text, (*[]engine.Instance)(g))
	}
	*g = make(granted, 1)
	return json.Unmarshal(text, &(*g)[0])
}

// Terminate implements engine.Driver.
func (d *Driver) Terminate(ctx context.Context, id string) error {
	var none struct{}
	return d.do(ctx, http.MethodPost, "/terminate?id="+url.QueryEscape(id), nil, &none)
}

// List implements engine.Driver.
func (d *Driver) List(ctx context.Context) ([]engine.Instance, error) {
	var list []engine.Instance
	err := d.do(ctx, http.MethodGet, "/instances", nil, &list)
	return list, err
}

// Offers implements engine.Driver.
func (d *Driver) Offers(ctx context.Context) ([]market.Offer, []market.Quote, error) {
	var v Sale
	err := d.do(ctx, http.MethodGet, "/offers", nil, &v)
	return v.Offers, v.Quotes, err
}

// Clock returns the market's clock.
func (d *Driver) Clock(ctx context.Context) (engine.Clock, error) {
	var c engine.Clock
	err := d.do(ctx, http.MethodGet, "/clock", nil, &c)
	return c, err
}

// Stop ends the daemon. Its machines keep running.
func (d *Driver) Stop(ctx context.Context) error {
	var none struct{}
	return d.do(ctx, http.MethodPost, "/stop", nil, &none)
}

// Spawn starts a daemon in its own session, unless one already serves the folder, and returns once
// it answers. If two start at once, one of them serves.
func Spawn(ctx context.Context, dir, exe string, args []string) error {
	d, err := Dial(dir)
	if err != nil {
		return err
	}
	if _, err := d.Clock(ctx); err == nil {
		return nil
	}
	logPath := filepath.Join(dir, "market.log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start the market: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(exe, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = child.Environ(child.OfAgent) // its machines inherit it
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the market: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // the goroutine ends with the daemon or this process, whichever ends first
	for range 400 {
		if _, err := d.Clock(ctx); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case err := <-ended:
			if _, ok := d.Clock(ctx); ok == nil {
				return nil // another daemon was faster
			}
			text, _ := os.ReadFile(logPath)
			return fmt.Errorf("start the market: %w: %s", err, lastLine(text))
		case <-time.After(25 * time.Millisecond):
		}
	}
	return fmt.Errorf("start the market: no answer within 10 s: see %s", logPath)
}

func lastLine(text []byte) []byte {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return lines[len(lines)-1]
}
