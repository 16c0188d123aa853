package mailer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/smtp"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/wait"
	"scrimp/internal/server/tries"
)

// rule has ten tries over 51 minutes. Servers that greylist accept the second or third.
var rule = tries.Rule{Most: 10, First: 10 * time.Second, Longest: 15 * time.Minute}

// tryTimeout bounds a try.
const tryTimeout = 30 * time.Second

// atOnce bounds the connections to the mail server.
const atOnce = 8

// ErrRefused means that the mail server will never accept the message.
var ErrRefused = errors.New("the mail server refuses")

// ErrNone means that the server sends no e-mail.
var ErrNone = errors.New("this server does not send e-mail: start scrimp serve with --smtp")

// Sender sends messages, each at least once. The nil Sender sends none.
type Sender struct {
	relay relay
	log   *slog.Logger
	pause func(context.Context, time.Duration) error
	slots chan struct{}
	// Names returns a text with names of users in place of their IDs; nil: no message has any.
	Names func(text []byte) []byte
}

// New returns a Sender with the settings, or nil if they name no mail server.
func New(s Settings, log *slog.Logger) (*Sender, error) {
	if s == (Settings{}) {
		return nil, nil
	}
	if s.URL == "" {
		return nil, errors.New("--smtp-from and --smtp-password need --smtp: name the mail server")
	}
	r, err := relayOf(s)
	if err != nil {
		return nil, err
	}
	return &Sender{relay: r, log: log, pause: wait.For, slots: make(chan struct{}, atOnce)}, nil
}

// Deliver sends a message about a job to one recipient, until the mail server accepts or refuses it. It returns the
// number of tries, those of earlier servers included. The error of a message that is not sent is the mail server's last
// answer.
func (s *Sender) Deliver(ctx context.Context, job, to string, m Message, p tries.Progress) (n int, err error) {
	if s == nil {
		return p.Tries, ErrNone
	}
	return tries.Delivery{Rule: rule, Progress: p, Pause: s.pause,
		Once:    func(ctx context.Context) (time.Duration, error) { return 0, s.inTurn(ctx, to, m) },
		Refused: func(err error) bool { return errors.Is(err, ErrRefused) },
		Waits: func(try int, wait time.Duration, err error) {
			s.log.Info("cannot send an e-mail yet", "job", job, "host", s.relay.host, "try", try, "again_in", wait, "error", err)
		}}.Do(ctx)
}

// Try sends a message to one recipient once.
func (s *Sender) Try(ctx context.Context, to string, m Message) error {
	if s == nil {
		return ErrNone
	}
	return s.inTurn(ctx, to, m)
}

// inTurn is post with one of the slots.
func (s *Sender) inTurn(ctx context.Context, to string, m Message) error {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-s.slots }()
	if s.Names != nil {
		m.Subject, m.Text = string(s.Names([]byte(m.Subject))), string(s.Names([]byte(m.Text)))
	}
	return s.post(ctx, to, m)
}

// post sends a message once.
func (s *Sender) post(ctx context.Context, to string, m Message) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	c, err := smtp.NewClient(conn, s.relay.host)
	if err != nil {
		return verdict("connect", err)
	}
	if err := s.secure(c); err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"sender", func() error { return c.Mail(s.relay.from) }},
		{"recipient", func() error { return c.Rcpt(to) }},
		{"message", func() error { return data(c, m.body(s.relay.from, to)) }},
	} {
		if err := step.do(); err != nil {
			return verdict(step.what, err)
		}
	}
	_ = c.Quit() // the message is accepted
	return nil
}

// dial connects to the mail server, with TLS if it expects that from the first byte.
func (s *Sender) dial(ctx context.Context) (net.Conn, error) {
	d := net.Dialer{}
	conn, err := d.DialContext(ctx, "tcp", s.relay.address())
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline)
	}
	if !s.relay.implicit {
		return conn, nil
	}
	secure := tls.Client(conn, s.relay.tls())
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}

func (r *relay) tls() *tls.Config {
	return &tls.Config{ServerName: r.host, RootCAs: r.roots, MinVersion: tls.VersionTLS12}
}

// secure starts TLS where the server offers it, and logs in. A password crosses no connection without TLS.
func (s *Sender) secure(c *smtp.Client) error {
	if err := c.Hello(helloName(s.relay.from)); err != nil {
		return verdict("greeting", err)
	}
	if offers, _ := c.Extension("STARTTLS"); offers && !s.relay.implicit {
		if err := c.StartTLS(s.relay.tls()); err != nil {
			return verdict("STARTTLS", err)
		}
	}
	if s.relay.user == "" {
		return nil
	}
	if _, secure := c.TLSConnectionState(); !secure {
		return fmt.Errorf("%w: it offers no STARTTLS, and the password must not be sent in plain text", ErrRefused)
	}
	password, err := s.relay.secret()
	if err != nil {
		return err
	}
	_, methods := c.Extension("AUTH")
	var auth smtp.Auth = &login{user: s.relay.user, password: password}
	if m := strings.Fields(strings.ToUpper(methods)); len(m) == 0 {
		return fmt.Errorf("%w: it takes no password", ErrRefused)
	} else if slices.Contains(m, "PLAIN") {
		auth = smtp.PlainAuth("", s.relay.user, password, s.relay.host)
	}
	return loginVerdict(c.Auth(auth))
}

// helloName returns the name that the sender gives itself: the domain of its address.
func helloName(from string) string { return from[strings.LastIndexByte(from, '@')+1:] }

// data sends the content of a message.
func data(c *smtp.Client, content []byte) error {
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(content); err != nil {
		return err
	}
	return w.Close()
}

// login is the authentication LOGIN, which servers without PLAIN take. secure has checked that the connection uses TLS.
type login struct{ user, password string }

func (l *login) Start(*smtp.ServerInfo) (string, []byte, error) { return "LOGIN", nil, nil }

func (l *login) Next(question []byte, more bool) ([]byte, error) {
	switch q := strings.ToLower(strings.TrimSuffix(strings.TrimSpace(string(question)), ":")); {
	case !more:
		return nil, nil
	case strings.Contains(q, "user"):
		return []byte(l.user), nil
	case strings.Contains(q, "pass"):
		return []byte(l.password), nil
	}
	return nil, errors.New("the server asks neither for a user nor for a password")
}

// loginVerdict is verdict for a login. It leaves out the server's text, which could repeat the password.
func loginVerdict(err error) error {
	var answer *textproto.Error
	switch {
	case err == nil || !errors.As(err, &answer):
		return err
	case answer.Code >= 500:
		return fmt.Errorf("%w the login: %d", ErrRefused, answer.Code)
	}
	return fmt.Errorf("login: %d", answer.Code)
}

// longestAnswer bounds what an error repeats of a mail server's answer, in bytes.
const longestAnswer = 200

// verdict names the step at which a try failed. An answer of 500 or more refuses the message for good.
func verdict(what string, err error) error {
	var answer *textproto.Error
	if err == nil || !errors.As(err, &answer) {
		return err
	}
	text := oneLine.Replace(answer.Msg)
	if len(text) > longestAnswer {
		text = strings.ToValidUTF8(text[:longestAnswer], "") + "…"
	}
	if answer.Code >= 500 {
		return fmt.Errorf("%w the %s: %d %s", ErrRefused, what, answer.Code, text)
	}
	return fmt.Errorf("%s: %d %s", what, answer.Code, text)
}
