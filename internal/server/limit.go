package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// Limits that keep one client from taking what all share. Sizes of bodies stand
// with their routes; see docs/design/server.md.
const (
	bodyPatience  = 15 * time.Second // for a request's body, besides what its length takes
	bodySlowest   = 16 << 10         // bytes a second that a body comes with at least
	writePatience = 30 * time.Second // for a client to take what is sent to it
	tokenStreams  = 100              // answers without an end that one token may follow at once
	allStreams    = 2000             // and all together
	agentMoves    = 16               // contents that one attempt may send and fetch at once
	allMoves      = 1024             // and all together: each holds a buffer of 64 KiB
	allLogRate    = 64 << 20         // bytes of output a second of all attempts together
	logReserve    = 512 << 20        // bytes of disk that output leaves to the log of events
	endReserve    = 64 << 20         // bytes of it that new jobs leave to the ends of those that are there
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

// streams counts what a caller has open: answers without an end, or contents on their way.
type streams struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

// open counts one more of the caller's, or says why there are too many: each is what
// one may have, most what all may have together.
func (s *streams) open(caller string, each, most int) (end func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.all >= most:
		return nil, fmt.Errorf("%d streams are open, which is as many as this server serves", s.all)
	case s.of[caller] >= each:
		return nil, fmt.Errorf("%d streams are open with this token, which is as many as one may have", s.of[caller])
	}
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.all++
	s.of[caller]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		if s.of[caller]--; s.of[caller] == 0 {
			delete(s.of, caller)
		}
	}, nil
}

// disk says how much room a folder's disk has left. It asks now and then only.
type disk struct {
	mu    sync.Mutex
	asked time.Time
	free  int64
	known bool
}

// room returns the bytes that are free for us in the folder; ok is false where nobody can say.
func (d *disk) room(dir string, now time.Time) (free int64, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now.Sub(d.asked) > 2*time.Second {
		var s syscall.Statfs_t
		err := syscall.Statfs(dir, &s)
		d.asked, d.known = now, err == nil
		d.free = int64(s.Bavail) * int64(s.Bsize) //nolint:unconvert // their types differ between systems
	}
	return d.free, d.known
}

// crowded answers who submits where the log has so little room left that it is kept
// for the jobs that are there. With PostgreSQL the log lies on another disk.
func (s *Server) crowded(w http.ResponseWriter, r *http.Request) bool {
	if s.opts.DB != "" {
		return false
	}
	free, ok := s.disk.room(s.opts.Dir, time.Now())
	if !ok || free >= endReserve {
		return false
	}
	callOf(r).written = true // on record it would take of the room
	w.Header().Set("Retry-After", "5")
	problem(w, http.StatusInsufficientStorage, "the server's disk is nearly full",
		"make room on it and submit again with the same key: the jobs that are there go on",
		fmt.Errorf("%d MiB are free in %s, and %d MiB are kept for the log of the jobs that are there", free>>20, s.opts.Dir,
			endReserve>>20))
	return true
}
