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
	bodyPatience = 15 * time.Second // for a request's body, besides what its length takes
	bodySlowest  = 16 << 10         // bytes a second that a body comes with at least
)

// patientBody is a request's body whose sender has to keep up: who sends a byte
// now and then is cut off.
type patientBody struct {
	io.ReadCloser
	control *http.ResponseController
	begun   time.Time
	read    int64
	over    bool
}

func newPatientBody(w http.ResponseWriter, r *http.Request, now time.Time) io.ReadCloser {
	b := &patientBody{ReadCloser: r.Body, control: http.NewResponseController(w), begun: now}
	b.extend()
	return b
}

func (b *patientBody) extend() {
	// a test's recorder has none
	_ = b.control.SetReadDeadline(b.begun.Add(bodyPatience + time.Duration(b.read)*time.Second/bodySlowest))
}

func (b *patientBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	switch {
	case b.over:
	case errors.Is(err, io.EOF): // what comes next on the connection has its own time
		b.over = true
		_ = b.control.SetReadDeadline(time.Time{}) // the same
	case n > 0:
		b.extend()
	}
	return n, err
}
