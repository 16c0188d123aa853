package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/spec"
)

// How a webhook is told: at least once. A second telling has the same id.
const (
	toldTries   = 10               // over 17 minutes
	toldFirst   = time.Second      // before the second try; each further wait is twice as long
	toldMost    = 5 * time.Minute  // the longest wait, also of those that a webhook asks for
	toldTimeout = 10 * time.Second // of one try
	toldFolder  = "told"
)

// word is what a webhook gets.
type word struct {
	ID       string `json:"id"` // the same at each try: who has seen it can drop it
	Job      string `json:"job"`
	State    string `json:"state"`
	Why      string `json:"why"`
	Approval *asked `json:"asks,omitempty"` // of who may approve the job
}

// asked is what a webhook of a limit gets besides, of a job that waits for approval.
type asked struct {
	Budget string    `json:"budget"`
	Detail string    `json:"detail"`
	By     string    `json:"by"` // who submitted it
	Team   string    `json:"team,omitempty"`
	Until  time.Time `json:"until"` // it is given up then
	Fix    string    `json:"fix"`
}

// outbox tells webhooks.
type outbox struct {
	client *http.Client
	agent  string // its name, for the header
	log    *slog.Logger
	pause  func(context.Context, time.Duration) error
}

func newOutbox(version string, log *slog.Logger) outbox {
	return outbox{
		// a POST that is redirected becomes a GET
		client: &http.Client{Timeout: toldTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
		agent: "scrimp/" + version, log: log, pause: pause,
	}
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// errHook is a webhook that will never take it.
var errHook = errors.New("webhook refuses")

// tell posts w to target until it is taken or refused. The address may hold a
// secret: neither the log nor an error has more of it than its host.
func (t outbox) tell(ctx context.Context, target string, w word) error {
	wait := toldFirst
	for n := 1; ; n++ {
		asked, err := t.once(ctx, target, w)
		if err == nil || errors.Is(err, errHook) || ctx.Err() != nil || n == toldTries {
			return err
		}
		d := max(wait, min(asked, toldMost))
		wait = min(2*wait, toldMost)
		t.log.Info("webhook not told yet", "job", w.Job, "host", host(target), "try", n, "again_in", d, "error", err)
		if err := t.pause(ctx, d); err != nil {
			return err
		}
	}
}

// once posts once. asked is how long the webhook wants to be left alone.
func (t outbox) once(ctx context.Context, target string, w word) (asked time.Duration, err error) {
	body, err := json.Marshal(w)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", errHook, err)
	}
	return t.post(ctx, target, w.ID, body)
}

// post posts JSON once; key is the same whenever the same is told.
func (t outbox) post(ctx context.Context, target, key string, body []byte) (asked time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("%w: its address is no URL", errHook)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	req.Header.Set("User-Agent", t.agent)
	r, err := t.client.Do(req)
	if errors.Is(err, errInside) {
		return 0, fmt.Errorf("%w: %w; an admin allows it with scrimp serve --hook-hosts", errHook, errInside)
	}
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) { // its text has the whole address
			err = at.Err
		}
		return 0, err
	}
	_ = r.Body.Close()
	switch {
	case r.StatusCode < 300:
		return 0, nil
	case r.StatusCode >= 500, r.StatusCode == http.StatusTooManyRequests, r.StatusCode == http.StatusRequestTimeout,
		r.StatusCode == http.StatusTooEarly:
		seconds, _ := strconv.ParseInt(r.Header.Get("Retry-After"), 10, 32)
		return time.Duration(max(0, seconds)) * time.Second, fmt.Errorf("status %d", r.StatusCode)
	}
	return 0, fmt.Errorf("%w: status %d", errHook, r.StatusCode)
}

// host is the part of an address that a log may have.
func host(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return ""
	}
	return u.Host
}

var variable = regexp.MustCompile(`\$(?:\{(\w+)\}|(\w+))`)

// address fills the job's secrets into the address of its webhook.
func address(notify string, secrets map[string]string) string {
	return variable.ReplaceAllStringFunc(notify, func(s string) string {
		if v, ok := secrets[strings.Trim(s, "${}")]; ok {
			return v
		}
		return s
	})
}

// notify tells the job's webhook, notes that it was told, and forgets the job's
// secrets. A server that ends before tells it at its next start.
func (s *Server) notify(ctx context.Context, n core.Notify) {
	if n.State == core.Held {
		s.askApproval(ctx, n)
		return
	}
	raw, _, err := s.control.Spec(ctx, n.Job)
	if err != nil {
		s.opts.Log.Warn("webhook not told; the next start does it", "job", n.Job, "error", err)
		return
	}
	j, err := spec.Decode(raw)
	if err == nil && j.Notify != "" {
		err := s.outbox.tell(ctx, address(j.Notify, s.secrets(n.Job)),
			word{ID: n.Key(), Job: n.Job, State: string(n.State), Why: n.Why})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.opts.Log.Warn("webhook not told", "job", n.Job, "error", err)
		}
		if err := os.WriteFile(filepath.Join(s.opts.Dir, toldFolder, n.Told()), nil, 0o600); err != nil {
			s.opts.Log.Warn("not noted that the webhook was told; it is told again", "job", n.Job, "error", err)
		}
	}
	defer s.alone("secrets " + n.Job)() // whoever takes the job up again brings them anew
	over := false
	s.control.ReadUncommitted(func(m *core.Machine) {
		j, ok := m.Job(n.Job)
		over = !ok || j.State().Over() && j.Reopened() == n.Life
	})
	if over {
		s.forget(n.Job)
	}
}

// forget removes the secrets of a job that is over.
func (s *Server) forget(job string) {
	for _, file := range []string{s.secretFile(job), s.openFile(job)} {
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			s.opts.Log.Warn("secrets not forgotten", "job", job, "error", err)
		}
	}
}
