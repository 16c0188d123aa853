package auth

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// Limits that keep one client from occupying shared resources. Sizes of bodies stand with their routes; see
// docs/design/server.md.
const (
	bodyPatience = 15 * time.Second // for a request's body, on top of the time for its length, and for its next byte
	bodySlowest  = 16 << 10         // lowest rate of a body, in bytes per second
)

// patientBody is a request's body whose sender has to keep up. It cuts off a sender that trickles bytes, and one
// that sends most of the body at once and then nothing. The part in memory counts for its sender until the request
// ends.
type patientBody struct {
	io.ReadCloser
	control *http.ResponseController
	begun   time.Time
	read    int64
	over    bool

	bodies *Bodies // nil: the sender is not known yet
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
	// fails with a test's recorder only, which has no deadlines
	_ = b.control.SetReadDeadline(all)
}

func (b *patientBody) Read(p []byte) (int, error) {
	if !b.over {
		b.extend(time.Now())
	}
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if !b.over && errors.Is(err, io.EOF) { // the next request on the connection has its own deadline
		b.over = true
		_ = b.control.SetReadDeadline(time.Time{}) // as above
	}
	return n, err
}
