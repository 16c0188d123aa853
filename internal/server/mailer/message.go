package mailer

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"mime/quotedprintable"
	"strings"
	"time"
)

// Message is a text for each of its recipients.
type Message struct {
	// Key identifies the event. Messages with one key have one Message-ID for each recipient, so that mail servers and
	// readers recognise a repeat.
	Key     string
	Date    time.Time
	Subject string
	Text    string
}

// idOf returns the Message-ID of a key for a recipient, without brackets.
func idOf(key, to, from string) string {
	sum := sha256.Sum256([]byte(key + "\n" + to))
	return hex.EncodeToString(sum[:16]) + "@" + from[strings.LastIndexByte(from, '@')+1:]
}

// oneLine replaces line ends, with which a text could add a header.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ", "\x00", " ")

// body returns the message for one recipient in the form of RFC 5322.
func (m *Message) body(from, to string) []byte {
	var b bytes.Buffer
	for _, h := range [][2]string{
		{"Date", m.Date.UTC().Format("Mon, 02 Jan 2006 15:04:05 -0700")},
		{"From", "<" + from + ">"}, {"To", "<" + to + ">"},
		{"Subject", mime.QEncoding.Encode("utf-8", oneLine.Replace(m.Subject))},
		{"Message-ID", "<" + idOf(m.Key, to, from) + ">"},
		{"Auto-Submitted", "auto-generated"}, // no answers from absent readers (RFC 3834)
		{"MIME-Version", "1.0"}, {"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"},
	} {
		b.WriteString(h[0] + ": " + oneLine.Replace(h[1]) + "\r\n")
	}
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	_, _ = w.Write([]byte(m.Text)) // writes to memory
	_ = w.Close()
	return b.Bytes()
}
