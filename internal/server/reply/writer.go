package reply

import (
	"bufio"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/identity"
	"scrimp/internal/wire/httpsig"
)

// Writer records the status of a response, and withholds responses after a failed write to the log: then the state
// is ahead of the log, and a response could show what a restart will not know. Every response goes through a Writer,
// so that no handler can forget this.
type Writer struct {
	http.ResponseWriter
	code    int
	title   string      // of the problem, for the audit trail
	lost    func() bool // reports whether a write to the log has failed
	instead bool        // a problem replaced the response
	dated   bool        // carries a date for machines, which sign with the server's time
	fault   error       // why the response could not be encoded as JSON; nil: it could
	// Hide is the path of the data folder, which is removed from all problems.
	Hide string
	// Names returns a text with names of users in place of their IDs; nil: the response has none.
	Names func(text []byte) []byte

	named bool   // the body is a text, and passes through Names
	rest  []byte // an unfinished ID at the end of what is sent so far
}

// NewWriter returns a Writer; lost reports whether a write to the log has failed. dated adds the date for machines.
func NewWriter(w http.ResponseWriter, lost func() bool, dated bool) *Writer {
	return &Writer{ResponseWriter: w, lost: lost, dated: dated}
}

// hidden returns the text without the path of the data folder.
func (w *Writer) hidden(text string) string {
	if w.Hide == "" {
		return text
	}
	return strings.ReplaceAll(text, w.Hide, "the data folder")
}

// NextHeader names the job after which, or before which, the next page starts.
const NextHeader = "Scrimp-Next"

// writePatience is how long a client may take to accept a write.
const writePatience = 30 * time.Second

// End completes the response and returns its status.
func (w *Writer) End() int {
	if w.code == 0 { // a response without a body reveals something, too
		w.keepsBack(http.StatusOK)
	}
	w.sendRest()
	return w.code
}

// Said returns the status sent, 0 if none was yet, and the title of a problem.
func (w *Writer) Said() (code int, title string) { return w.code, w.title }

// Fault returns why the response could not be encoded as JSON; nil: it could.
func (w *Writer) Fault() error { return w.fault }

// WriteHeader implements http.ResponseWriter.
func (w *Writer) WriteHeader(code int) {
	if w.code == 0 && w.keepsBack(code) {
		return
	}
	if w.code == 0 {
		w.code = code
	}
	if !w.instead {
		w.date()
		w.begin()
		w.ResponseWriter.WriteHeader(code)
	}
}

// begin decides whether the body passes through Names.
func (w *Writer) begin() {
	h := w.Header()
	kind := h.Get("Content-Type")
	// what has a length is a file, or a page whose parts went through here
	w.named = w.Names != nil && h.Get("Content-Encoding") == "" && h.Get("Content-Length") == "" &&
		(strings.HasPrefix(kind, "text/") || strings.Contains(kind, "json"))
}

// sendRest sends what waits for the end of an ID.
func (w *Writer) sendRest() {
	rest := w.rest
	w.rest = nil
	if len(rest) > 0 && !w.instead {
		_, _ = w.ResponseWriter.Write(rest) // the client has it or has left
	}
}

// date sets the date header.
func (w *Writer) date() {
	if w.dated {
		httpsig.Date(w.Header(), time.Now())
	}
}

// keepsBack sends a problem instead of the response if a write to the log has failed. Server errors reveal nothing
// about the state, so they pass.
func (w *Writer) keepsBack(code int) bool {
	if code >= http.StatusInternalServerError || !w.lost() {
		return false
	}
	h := w.Header()
	h.Del("Content-Length")
	h.Del(NextHeader)
	h.Set("Retry-After", "1")
	Problem(w, http.StatusServiceUnavailable, "the log was not written",
		"ask again: the server restarts from its event log, and its own log file says what is wrong", nil)
	w.instead = true
	return true
}

// Write implements http.ResponseWriter.
func (w *Writer) Write(b []byte) (int, error) {
	if w.code == 0 && !w.keepsBack(http.StatusOK) {
		w.code = http.StatusOK
		w.date()
		w.begin()
	}
	switch {
	case w.instead:
		return len(b), nil
	case w.code < http.StatusInternalServerError && w.lost():
		panic(http.ErrAbortHandler) // already started: abort, so that the client cannot take a truncated file for the whole
	}
	// fails with a test's recorder only, which has no deadlines
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writePatience))
	if !w.named || len(b) == 0 {
		return w.ResponseWriter.Write(b)
	}
	text := slices.Concat(w.rest, b)
	whole := identity.Whole(text)
	w.rest = text[whole:]
	if _, err := w.ResponseWriter.Write(w.Names(text[:whole])); err != nil {
		return 0, err
	}
	return len(b), nil
}

// sendAtOnce is the number of bytes of a file sent between two checks.
const sendAtOnce = 1 << 20

// ReadFrom implements io.ReaderFrom, so that the system can send a file without a copy through this process
// (sendfile).
func (w *Writer) ReadFrom(from io.Reader) (sent int64, err error) {
	limit := &io.LimitedReader{R: from, N: math.MaxInt64}
	if l, ok := from.(*io.LimitedReader); ok { // sendfile does not work for nested limits
		limit = l
	}
	for limit.N > 0 {
		if _, err := w.Write(nil); err != nil || w.instead {
			return sent, err
		}
		part := &io.LimitedReader{R: limit.R, N: min(limit.N, sendAtOnce)}
		n, err := io.Copy(w.ResponseWriter, part)
		sent, limit.N = sent+n, limit.N-n
		if err != nil || n == 0 {
			return sent, err
		}
	}
	return sent, nil
}

// Flush implements http.Flusher.
func (w *Writer) Flush() {
	w.sendRest()
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack implements http.Hijacker. After it, the connection is no longer HTTP.
func (w *Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if w.code != 0 || w.keepsBack(http.StatusSwitchingProtocols) {
		return nil, nil, http.ErrHijacked
	}
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err == nil {
		w.code = http.StatusSwitchingProtocols
	}
	return conn, buffered, err
}

// Unwrap supports http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
