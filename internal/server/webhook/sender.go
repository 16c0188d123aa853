// Package webhook reports the outcome of jobs to addresses that users choose. It calls no address inside the
// server's network unless an admin allows its host.
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
	"scrimp/internal/server/tries"
)

// Rule has ten tries over 17 minutes.
var Rule = tries.Rule{Most: 10, First: time.Second, Longest: 5 * time.Minute}

// tryTimeout bounds a try.
const tryTimeout = 10 * time.Second

// Sender calls webhooks, each at least once. A repeated call has the same key.
type Sender struct {
	client *http.Client
	agent  string // for the User-Agent header
	all    bool   // may call every address
	hosts  []string
	log    *slog.Logger
	pause  func(context.Context, time.Duration) error
	slots  *slots
	// Names returns a text with names of users in place of their IDs; nil: no message has any.
	Names func(text []byte) []byte
}

// NewSender returns a Sender for a version of the program, which its requests name. hosts lists the hosts inside the
// server's network that it may call; all allows every address except metadata of clouds.
func NewSender(version string, all bool, hosts []string, log *slog.Logger) Sender {
	s := Sender{
		// a redirect would turn the POST into a GET
		client: &http.Client{Timeout: tryTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
		agent: "scrimp/" + version, all: all, hosts: hosts, log: log, pause: wait.For, slots: newSlots(),
	}
	s.client.Transport = newOutward(hosts, all)
	return s
}

// InsideFix is the advice for a webhook with an address inside.
const InsideFix = "give a public address; an admin allows others with scrimp serve --hook-hosts"

// Refuses reports whether the sender would refuse the address as it stands; names are checked later.
func (s Sender) Refuses(address string) bool {
	return !s.all && address != "" && inside(address, s.hosts)
}

// ErrRefused means that a webhook will never accept the call.
var ErrRefused = errors.New("webhook refuses")

// Deliver posts a message about a user's job to target as JSON, until the webhook accepts or refuses it; key is the
// same at each try. It returns the number of tries, those of earlier servers included. The address can contain a
// secret: logs and errors have only its host.
func (s Sender) Deliver(
	ctx context.Context, target, user, job, key string, what any, p tries.Progress,
) (n int, err error) {
	body, err := json.Marshal(what)
	if err != nil {
		return p.Tries, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return tries.Delivery{Rule: Rule, Progress: p, Pause: s.pause,
		Once:    func(ctx context.Context) (time.Duration, error) { return s.inTurn(ctx, user, target, key, body) },
		Refused: func(err error) bool { return errors.Is(err, ErrRefused) },
		Waits: func(try int, wait time.Duration, err error) {
			s.log.Info("cannot call the webhook yet", "job", job, "host", Host(target), "try", try, "again_in", wait, "error",
				err)
		}}.Do(ctx)
}

// Try posts a message of a user as JSON once.
func (s Sender) Try(ctx context.Context, target, user, key string, what any) error {
	body, err := json.Marshal(what)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	_, err = s.inTurn(ctx, user, target, key, body)
	return err
}

// inTurn is Post with one of the user's slots.
func (s Sender) inTurn(ctx context.Context, user, target, key string, body []byte) (asked time.Duration, err error) {
	done, err := s.slots.take(ctx, user)
	if err != nil {
		return 0, err
	}
	defer done()
	if s.Names != nil {
		body = s.Names(body)
	}
	return s.Post(ctx, target, key, body)
}

// Post posts JSON once; key is the same whenever the message is the same. asked is how long the webhook wants the
// sender to wait.
func (s Sender) Post(ctx context.Context, target, key string, body []byte) (asked time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return 0, fmt.Errorf("%w: its address is not a URL", ErrRefused)
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
		return retryAfter(r.Header), fmt.Errorf("status %d", r.StatusCode)
	}
	return 0, fmt.Errorf("%w: status %d", ErrRefused, r.StatusCode)
}

// retryAfter returns the wait that an answer asks for: seconds, or a date by the clock of the answer.
func retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 32); err == nil {
		return time.Duration(max(0, seconds)) * time.Second
	}
	until, err := http.ParseTime(text)
	now, err2 := http.ParseTime(h.Get("Date"))
	if err != nil || err2 != nil {
		return 0
	}
	return max(0, until.Sub(now))
}

// IsChat reports whether the address takes messages in Slack's form: Slack itself, Discord's address for that form, and
// Microsoft Teams and Google Chat, which read the same field.
func IsChat(target string) bool {
	u, err := url.Parse(target)
	if err != nil {
		return false
	}
	switch host := u.Hostname(); {
	case host == "hooks.slack.com", host == "chat.googleapis.com", strings.HasSuffix(host, ".webhook.office.com"):
		return true
	case host == "discord.com":
		return strings.HasSuffix(u.Path, "/slack")
	}
	return false
}

// Host returns the part of an address that may appear in logs.
func Host(target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return ""
	}
	return u.Host
}

var variable = regexp.MustCompile(`\$(?:\{(\w+)\}|(\w+))`)

// Address inserts the job's secrets into the address of its webhook.
func Address(notify string, secrets map[string]string) string {
	return variable.ReplaceAllStringFunc(notify, func(s string) string {
		if v, ok := secrets[strings.Trim(s, "${}")]; ok {
			return v
		}
		return s
	})
}
