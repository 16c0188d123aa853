package mailer

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"mime"
	"mime/quotedprintable"
	"net/http/httptest"
	"net/mail"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scrimp/internal/server/tries"
	"scrimp/internal/test/must"
)

// password is the secret that must appear nowhere.
const password = "T0P-SECRET"

// senderTo returns a sender to m that trusts its certificate and does not wait between tries.
func senderTo(t testing.TB, m *mailServer, web *httptest.Server) *Sender {
	t.Helper()
	scheme, user, file := "smtp", "", ""
	if m.implicit {
		scheme = "smtps"
	}
	if m.user != "" {
		user, file = "ann@", filepath.Join(t.TempDir(), "password")
		must.Do(t, os.WriteFile(file, []byte(password+"\n"), 0o600))
	}
	log := &bytes.Buffer{}
	s, err := New(Settings{URL: scheme + "://" + user + m.l.Addr().String(), PasswordFile: file, From: "scrimp@example.org"},
		slog.New(slog.NewTextHandler(log, nil)))
	must.Do(t, err)
	s.relay.roots = x509.NewCertPool()
	s.relay.roots.AddCert(web.Certificate())
	s.pause = func(context.Context, time.Duration) error { return nil }
	t.Cleanup(func() {
		if strings.Contains(log.String(), password) {
			t.Error("the log has the password")
		}
	})
	return s
}

func someMessage() Message {
	return Message{Key: "notify/train/failed", Date: time.Unix(1e9, 0), Subject: "scrimp: job train failed",
		Text: "Größe = 3.\n.\nend\n"}
}

// A message arrives as it was written, over STARTTLS and over TLS, with each way to log in and without one.
func TestDeliver_SendsOverEachConnection(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*mailServer){
		"plain, no login":    func(m *mailServer) { m.starttls, m.auth = false, "" },
		"STARTTLS, no login": func(m *mailServer) { m.auth = "" },
		"STARTTLS and PLAIN": func(m *mailServer) { m.user = "ann:" + password },
		"STARTTLS and LOGIN": func(m *mailServer) { m.user, m.auth = "ann:"+password, "LOGIN" },
		"TLS":                func(m *mailServer) { m.implicit, m.user = true, "ann:"+password },
	} {
		m, s := newMailServer(t, change)
		if _, err := s.Deliver(t.Context(), "train", "ann@example.org", someMessage(), tries.Progress{}); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		list := m.messages()
		if len(list) != 1 {
			t.Errorf("%s: %d messages", name, len(list))
			continue
		}
		envelope, text, _ := strings.Cut(list[0], "\n\n")
		if !strings.HasPrefix(envelope, "MAIL FROM:<scrimp@example.org>") ||
			!strings.HasSuffix(envelope, "\nRCPT TO:<ann@example.org>") {
			t.Errorf("%s: envelope %q", name, envelope)
		}
		got, err := mail.ReadMessage(strings.NewReader(text))
		if err != nil {
			t.Fatal(name, err)
		}
		subject, _ := new(mime.WordDecoder).DecodeHeader(got.Header.Get("Subject"))
		body, _ := io.ReadAll(quotedprintable.NewReader(got.Body))
		date, _ := got.Header.Date()
		if subject != "scrimp: job train failed" || strings.ReplaceAll(string(body), "\r", "") != someMessage().Text ||
			!date.Equal(time.Unix(1e9, 0)) || got.Header.Get("To") != "<ann@example.org>" {
			t.Errorf("%s: %s %q %v", name, subject, body, date)
		}
	}
}

// A server that answers 4xx, and then accepts, gets the message once, with one Message-ID at all tries; another event
// and another recipient have another.
func TestDeliver_RetriesTemporaryRefusals(t *testing.T) {
	t.Parallel()
	m, s := newMailServer(t, func(m *mailServer) {
		m.answers = map[string][]string{"MAIL": {"421 later"}, "RCPT": {"450 greylisted", "451 again"}, ".": {"452 full"}}
	})
	if _, err := s.Deliver(t.Context(), "train", "ann@example.org", someMessage(), tries.Progress{}); err != nil {
		t.Fatal(err)
	}
	if m.sessions != 5 || len(m.messages()) != 1 {
		t.Errorf("%d tries, %d messages, want 5 and 1", m.sessions, len(m.messages()))
	}
	if _, err := s.Deliver(t.Context(), "train", "ann@example.org", someMessage(), tries.Progress{}); err != nil { // a repeat
		t.Fatal(err)
	}
	other := someMessage()
	other.Key = "notify/train/late"
	for _, one := range []struct {
		to string
		m  Message
	}{{"ann@example.org", other}, {"bob@example.org", someMessage()}} {
		if _, err := s.Deliver(t.Context(), "train", one.to, one.m, tries.Progress{}); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for _, text := range m.messages() {
		_, after, _ := strings.Cut(text, "Message-ID: ")
		id, _, _ := strings.Cut(after, "\n")
		ids = append(ids, id)
	}
	if len(ids) != 4 || ids[0] != ids[1] || ids[2] == ids[0] || ids[3] == ids[0] || ids[2] == ids[3] ||
		!strings.HasSuffix(ids[0], "@example.org>") {
		t.Errorf("ids %q", ids)
	}
}

// A server that answers 5xx is not asked again, and the error has its answer, but of a login, which may repeat the
// password, only the number.
func TestDeliver_DoesNotRetryRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*mailServer)
		says   string
	}{
		"recipient": {func(m *mailServer) { m.answers["RCPT"] = []string{"550 no such user\r"} }, "recipient: 550 no such user"},
		"message":   {func(m *mailServer) { m.answers["."] = []string{"554 spam"} }, "message: 554 spam"},
		"login":     {func(m *mailServer) { m.user = "ann:another" }, "login: 535"},
		"no STARTTLS with a password": {func(m *mailServer) { m.starttls, m.user = false, "ann:"+password },
			"offers no STARTTLS"},
		"no login": {func(m *mailServer) { m.auth, m.user = "", "ann:"+password }, "takes no password"},
	} {
		m, s := newMailServer(t, c.change)
		_, err := s.Deliver(t.Context(), "train", "ann@example.org", someMessage(), tries.Progress{})
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), password) {
			t.Errorf("%s: %v", name, err)
		}
		if m.sessions != 1 || len(m.messages()) != 0 {
			t.Errorf("%s: %d tries, %d messages", name, m.sessions, len(m.messages()))
		}
		m.mu.Lock()
		if plain := strings.Join(m.plain, ""); strings.Contains(plain, "AUTH") {
			t.Errorf("%s: the login crossed the network in plain text: %q", name, plain)
		}
		m.mu.Unlock()
	}
}

// A server that is down is tried ten times, over 51 minutes; one that says nothing holds no sender whose
// context ends.
func TestDeliver_GivesUpOnAServerThatIsDown(t *testing.T) {
	t.Parallel()
	m, s := newMailServer(t, func(m *mailServer) {})
	_ = m.l.Close()
	var sum time.Duration
	n := 1
	s.pause = func(_ context.Context, d time.Duration) error { sum += d; n++; return nil }
	_, err := s.Deliver(t.Context(), "train", "ann@example.org", someMessage(), tries.Progress{})
	// 10 s doubled seven times up to 640 s, and twice the longest wait
	if want := (10+20+40+80+160+320+640)*time.Second + 2*rule.Longest; err == nil || n != rule.Most || sum != want {
		t.Errorf("%v after %d tries over %v, want %v", err, n, sum, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, quiet := newMailServer(t, func(m *mailServer) { m.silent = cancel })
	if _, err := quiet.Deliver(ctx, "train", "ann@example.org", someMessage(), tries.Progress{}); err == nil {
		t.Error("a silent server accepted a message")
	}
	var none *Sender
	if _, err := none.Deliver(t.Context(), "train", "ann@example.org", someMessage(), tries.Progress{}); !errors.Is(err, ErrNone) {
		t.Errorf("without a mail server: %v", err)
	}
}

// Texts with line ends add no header, and an address with one is sent to nobody.
func TestMessage_HasNoInjectedHeaders(t *testing.T) {
	t.Parallel()
	m, s := newMailServer(t, func(m *mailServer) {})
	evil := someMessage()
	evil.Subject, evil.Text = "a\r\nBcc: eve@example.org", "\r\n.\r\nMAIL FROM:<eve@example.org>\r\n"
	if _, err := s.Deliver(t.Context(), "train", "ann@example.org", evil, tries.Progress{}); err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(m.messages()[0], "\n\n")
	got, err := mail.ReadMessage(strings.NewReader(text))
	if err != nil || got.Header.Get("Bcc") != "" || len(got.Header) != 9 || len(m.messages()) != 1 {
		t.Errorf("%v: %v", err, got.Header)
	}
	if _, err := s.Deliver(t.Context(), "train", "ann@example.org>\r\nRCPT TO:<eve@example.org", someMessage(), tries.Progress{}); err == nil {
		t.Error("an address with a line end was accepted")
	}
	if len(m.messages()) != 1 {
		t.Errorf("%d messages", len(m.messages()))
	}
}

// Settings that cannot work are refused with the flag, and the message has no password.
func TestNew_RefusesSettingsThatCannotWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	good, from := file("good", password+"\n"), "scrimp@example.org"
	for _, c := range []struct {
		s    Settings
		says string
	}{
		{Settings{From: from}, "need --smtp"},
		{Settings{URL: "http://x", From: from}, "--smtp is"},
		{Settings{URL: "smtp://x:0", From: from}, "--smtp is"},
		{Settings{URL: "smtp://x/y", From: from}, "--smtp is"},
		{Settings{URL: "smtp://", From: from}, "--smtp is"},
		{Settings{URL: "smtp://ann:" + password + "@x", From: from}, "--smtp-password"},
		{Settings{URL: "smtp://ann@x", From: from}, "--smtp-password"},
		{Settings{URL: "smtp://x", From: from, PasswordFile: good}, "without a user"},
		{Settings{URL: "smtp://ann@x", From: from, PasswordFile: filepath.Join(dir, "none")}, "--smtp-password"},
		{Settings{URL: "smtp://ann@x", From: from, PasswordFile: file("empty", "\n")}, "one line"},
		{Settings{URL: "smtp://ann@x", From: from, PasswordFile: file("long", strings.Repeat("x", 5000))}, "one line"},
		{Settings{URL: "smtp://x"}, "--smtp-from"},
		{Settings{URL: "smtp://x", From: "a@b\r\nBcc: c@d"}, "--smtp-from"},
		{Settings{URL: "smtp://ann@x", From: from, PasswordFile: good}, ""},
		{Settings{URL: "smtps://x", From: "scrimp@localhost"}, ""},
		{Settings{}, ""},
	} {
		_, err := New(c.s, slog.Default())
		if (err == nil) != (c.says == "") || err != nil && (!strings.Contains(err.Error(), c.says) ||
			strings.Contains(err.Error(), password)) {
			t.Errorf("%+v: %v", c.s, err)
		}
	}
}
