// Package mailer sends e-mail through the mail server that an admin names.
package mailer

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"scrimp/internal/job/spec"
)

// Settings are the flags of scrimp serve about e-mail.
type Settings struct {
	URL          string // smtp://[USER@]HOST[:PORT] (STARTTLS) or smtps://[USER@]HOST[:PORT] (TLS); "": no e-mail
	PasswordFile string // read at each connection, so that an admin can replace the password
	From         string // address of the sender
}

// longestPassword bounds the file of the password, in bytes.
const longestPassword = 4096

// relay is the mail server of valid settings.
type relay struct {
	host, port string
	implicit   bool // TLS from the first byte; otherwise STARTTLS
	user       string
	password   string // file
	from       string
	roots      *x509.CertPool // trusted certificates; nil: the system's
}

// relayOf checks the settings.
func relayOf(s Settings) (relay, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		return relay{}, errors.New("--smtp is not an address: write smtp://USER@HOST:587 or smtps://USER@HOST:465")
	}
	r := relay{host: u.Hostname(), port: u.Port(), implicit: u.Scheme == "smtps", password: s.PasswordFile}
	if r.user = u.User.Username(); r.port == "" {
		r.port = map[bool]string{true: "465", false: "587"}[r.implicit]
	}
	_, inURL := u.User.Password()
	port, err := strconv.ParseUint(r.port, 10, 16)
	switch {
	case inURL: // the message must not repeat it
		return relay{}, errors.New("--smtp holds a password, which the list of processes shows: put it in a file and name " +
			"that with --smtp-password")
	case u.Scheme != "smtp" && u.Scheme != "smtps", r.host == "", u.Path != "" && u.Path != "/", u.RawQuery != "",
		u.Fragment != "", err != nil, port == 0:
		return relay{}, fmt.Errorf("--smtp is %q: write smtp://USER@HOST:587 or smtps://USER@HOST:465", s.URL)
	case r.user != "" && s.PasswordFile == "":
		return relay{}, errors.New("--smtp names a user without a password: name its file with --smtp-password")
	case r.user == "" && s.PasswordFile != "":
		return relay{}, errors.New("--smtp-password is given without a user: write smtp://USER@HOST:587")
	}
	if !spec.IsMailbox(s.From) {
		return relay{}, fmt.Errorf("--smtp-from is %q: give the sender's address, such as scrimp@example.org", s.From)
	}
	r.from = s.From
	if _, err := r.secret(); err != nil {
		return relay{}, err
	}
	return r, nil
}

// secret reads the password; "" if there is none.
func (r *relay) secret() (string, error) {
	if r.password == "" {
		return "", nil
	}
	f, err := os.Open(r.password)
	if err != nil {
		return "", fmt.Errorf("read --smtp-password: %w", err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, longestPassword+1))
	text := strings.TrimRight(string(b), "\r\n")
	switch {
	case err != nil:
		return "", fmt.Errorf("read --smtp-password: %w", err)
	case text == "", len(b) > longestPassword, strings.ContainsAny(text, "\r\n\x00"):
		return "", fmt.Errorf("--smtp-password %s: write one line of at most %d bytes", r.password, longestPassword)
	}
	return text, nil
}

func (r *relay) address() string { return net.JoinHostPort(r.host, r.port) }
