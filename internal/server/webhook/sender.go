// Package webhook tells addresses that users name what became of their jobs. It follows no
// address inside the server's network, unless an admin allows its host.
package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/lib/wait"
)

// How a webhook is told.
const (
	mostTries   = 10              // over 17 minutes
	FirstWait   = time.Second     // before the second try; each further wait is twice as long
	LongestWait = 5 * time.Minute // also of those that a webhook asks for
	tryTimeout  = 10 * time.Second
)

// Sender tells webhooks, at least once each. A second telling has the same key.
type Sender struct {
	client *http.Client
	agent  string // its name, for the header
	all    bool   // it follows every address
	hosts  []string
	log    *slog.Logger
	pause  func(context.Context, time.Duration) error
	slots  *slots
}

// NewSender is one of that version of the program, which its requests name. hosts are those inside
// the server's network that it follows; all says that it follows every address but those of a cloud's metadata.
func NewSender(version string, all bool, hosts []string, log *slog.Logger) Sender {
	s := Sender{
		// a POST that is redirected becomes a GET
		client: &http.Client{Timeout: tryTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
		agent: "scrimp/" + version, all: all, hosts: hosts, log: log, pause: wait.For, slots: newSlots(),
	}
	s.client.Transport = newOutward(hosts, all)
	return s
}

// InsideFix is what helps where a webhook leads inside.
const InsideFix = "give an address that everybody reaches; an admin allows others with scrimp serve --hook-hosts"

// Refuses reports whether the address, where there is one, says by itself that it is not followed.
func (s Sender) Refuses(address string) bool {
	return !s.all && address != "" && inside(address, s.hosts)
}

// ErrRefused is a webhook that will never take it.
var ErrRefused = errors.New("webhook refuses")

// Deliver posts what about a job of a user to target, as JSON, until it is taken or refused; key is the same
// at each try. The address may hold a secret: neither the log nor an error has more of it than its host.
func (s Sender) Deliver(ctx context.Context, target, user, job, key string, what any) error {
	body, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	pause := FirstWait
	for n := 1; ; n++ {
		asked, err := s.inTurn(ctx, user, target, key, body)
		if err == nil || errors.Is(err, ErrRefused) || ctx.Err() != nil || n == mostTries {
			return err
		}
		d := max(pause, min(asked, LongestWait))
		pause = min(2*pause, LongestWait)
		s.log.Info("webhook not told yet", "job", job, "host", Host(target), "try", n, "again_in", d, "error", err)
		if err := s.pause(ctx, d); err != nil {
			return err
		}
	}
}

// inTurn is Post once the user has a slot for it.
func (s Sender) inTurn(ctx context.Context, user, target, key string, body []byte) (asked time.Duration, err error) {
	done, err := s.slots.take(ctx, user)
	if err != nil {
		return 0, err
	}
	defer done()
	return s.Post(ctx, target, key, body)
}

// Post posts JSON once; key is the same whenever the same is told. asked is how long the webhook
// wants to be left alone.
func (s Sender) Post(ctx context.Context, target, key string, body []byte) (asked time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("%w: its address is no URL", ErrRefused)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	req.Header.Set("User-Agent", s.agent)
	r, err := s.client.Do(req)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) { // its text has the whole address
			err = at.Err
		}
		if errors.Is(err, ErrInside) {
			err = fmt.Errorf("%w: %w; an admin allows it with scrimp serve --hook-hosts", ErrRefused, err)
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
	return 0, fmt.Errorf("%w: status %d", ErrRefused, r.StatusCode)
}

// Host is the part of an address that a log may have.
func Host(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return ""
	}
	return u.Host
}

var variable = regexp.MustCompile(`\$(?:\{(\w+)\}|(\w+))`)

// Address fills the job's secrets into the address of its webhook.
func Address(notify string, secrets map[string]string) string {
	return variable.ReplaceAllStringFunc(notify, func(s string) string {
		if v, ok := secrets[strings.Trim(s, "${}")]; ok {
			return v
		}
		return s
	})
}
