package mailer

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// mailServer is a small SMTP server on loopback.
type mailServer struct {
	t        testing.TB
	l        net.Listener
	cert     *tls.Config
	starttls bool
	implicit bool
	auth     string              // methods that it offers; "": none
	user     string              // with the password, in plain text
	answers  map[string][]string // answers to the next commands, by the first word; afterwards it accepts
	silent   func()              // if set, it accepts connections, calls this and says nothing

	mu       sync.Mutex
	got      []string // messages, each after its envelope
	plain    []string // lines that came without TLS
	sessions int
	all      sync.WaitGroup
}

// newMailServer starts the server; change sets it up before.
func newMailServer(t testing.TB, change func(*mailServer)) (*mailServer, *Sender) {
	t.Helper()
	web := httptest.NewUnstartedServer(nil)
	web.StartTLS()
	t.Cleanup(web.Close)
	m := &mailServer{t: t, cert: &tls.Config{Certificates: web.TLS.Certificates}, starttls: true, auth: "PLAIN LOGIN",
		answers: map[string][]string{}}
	change(m)
	var err error
	if m.l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	m.all.Go(func() {
		for {
			conn, err := m.l.Accept()
			if err != nil {
				return
			}
			m.all.Go(func() { m.serve(conn) })
		}
	})
	t.Cleanup(func() { _ = m.l.Close(); m.all.Wait() })
	return m, senderTo(t, m, web)
}

func (m *mailServer) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	m.mu.Lock()
	m.sessions++
	m.mu.Unlock()
	secure := m.implicit
	if secure {
		conn = tls.Server(conn, m.cert)
	}
	r := bufio.NewReader(conn)
	say := func(lines ...string) { _, _ = conn.Write([]byte(strings.Join(lines, "\r\n") + "\r\n")) }
	line := func() (string, bool) {
		text, err := r.ReadString('\n')
		if !secure {
			m.mu.Lock()
			m.plain = append(m.plain, text)
			m.mu.Unlock()
		}
		return strings.TrimRight(text, "\r\n"), err == nil
	}
	if m.silent != nil {
		m.silent()
		_, _ = line()
		return
	}
	say("220 test ESMTP")
	var envelope []string
	for {
		text, ok := line()
		if !ok {
			return
		}
		word := strings.ToUpper(strings.Fields(text + " x")[0])
		if answer, planned := m.next(word); planned {
			say(answer)
			continue
		}
		switch word {
		case "EHLO":
			list := []string{"250-test"}
			if m.starttls && !secure {
				list = append(list, "250-STARTTLS")
			}
			if m.auth != "" {
				list = append(list, "250-AUTH "+m.auth)
			}
			say(append(list, "250 8BITMIME")...)
		case "STARTTLS":
			say("220 go ahead")
			up := tls.Server(conn, m.cert)
			conn, r, secure = up, bufio.NewReader(up), true
		case "AUTH":
			say(m.login(text, say, line))
		case "MAIL", "RCPT":
			envelope = append(envelope, text)
			say("250 ok")
		case "DATA":
			say("354 go on")
			body := strings.Join(envelope, "\n") + "\n\n"
			for text, ok := line(); ok && text != "."; text, ok = line() {
				body += strings.TrimPrefix(text, ".") + "\n"
			}
			answer, planned := m.next(".")
			if !planned {
				answer = "250 queued"
				m.mu.Lock()
				m.got = append(m.got, body)
				m.mu.Unlock()
			}
			say(answer)
		case "QUIT":
			say("221 bye")
			return
		default:
			say("500 unknown")
		}
	}
}

// next returns the planned answer to a command.
func (m *mailServer) next(word string) (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.answers[word]
	if len(list) == 0 {
		return "", false
	}
	m.answers[word] = list[1:]
	return list[0], list[0] != ""
}

// login returns the answer to a login by PLAIN or LOGIN.
func (m *mailServer) login(text string, say func(...string), line func() (string, bool)) string {
	plain := func(s string) string { b, _ := base64.StdEncoding.DecodeString(s); return string(b) }
	words, got := strings.Fields(text), ""
	if words[1] == "PLAIN" {
		got = strings.ReplaceAll(strings.TrimPrefix(plain(words[2]), "\x00"), "\x00", ":")
	} else {
		say("334 " + base64.StdEncoding.EncodeToString([]byte("Username:")))
		user, _ := line()
		say("334 " + base64.StdEncoding.EncodeToString([]byte("Password:")))
		password, _ := line()
		got = plain(user) + ":" + plain(password)
	}
	if got != m.user {
		return "535 wrong: " + got
	}
	return "235 ok"
}

// messages returns what the server has accepted.
func (m *mailServer) messages() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.got...)
}
