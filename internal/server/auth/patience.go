package auth

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Limits that keep one client from taking what all share. Sizes of bodies stand
// with their routes; see docs/design/server.md.
const (
	bodyPatience = 15 * time.Second // for a request's body, besides what its length takes, and for its next byte
	bodySlowest  = 16 << 10         // bytes a second that a body comes with at least
)

// patientBody is a request's body whose sender has to keep up: who sends a byte
// now and then is cut off, and so is who sends most of it at once and then nothing. What of
// it is in memory counts for its sender until the request is over.
type patientBody struct {
	io.ReadCloser
	control *http.ResponseController
	begun   time.Time
	read    int64
	over    bool

	bodies *Bodies // nil: nobody is known to send it
	caller string
	held   int64
}

func newPatientBody(w http.ResponseWriter, r *http.Request, now time.Time) *patientBody {
	b := &patientBody{ReadCloser: r.Body, control: http.NewResponseController(w), begun: now}
	b.extend(now)
	return b
}

func (b *patientBody) extend(now time.Time) {
	all, next := b.begun.Add(bodyPatience+time.Duration(b.read)*time.Second/bodySlowest), now.Add(bodyPatience)
	if next.Before(all) {
		all = next
	}
	// a test's recorder has none
	_ = b.control.SetReadDeadline(all)
}

func (b *patientBody) Read(p []byte) (int, error) {
	if !b.over {
		b.extend(time.Now())
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if !b.over && errors.Is(err, io.EOF) { // what comes next on the connection has its own time
		b.over = true
		_ = b.control.SetReadDeadline(time.Time{}) // the same
	}
	return n, err
}
