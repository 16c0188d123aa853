package reply

import (
	"bufio"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"time"

	"scrimp/internal/wire/signed"
)

// Writer keeps what was answered, and keeps back what must not be: after a write
// that has failed the state is ahead of the log, so that whatever an answer says of
// it may be what a restart knows nothing of. Every answer goes through here, so that
// no handler can forget it.
type Writer struct {
	http.ResponseWriter
	code    int
	title   string      // of the problem, for the audit trail
	lost    func() bool // whether a write has failed
	instead bool        // something else was answered
	dated   bool        // to a machine, which signs by the server's time
	fault   error       // why the answer could not be written as JSON; nil: it could
	// Hide is the data folder. Where it lies is nobody's business who asks: no problem that is answered has its path.
	Hide string
}

// NewWriter is one that asks lost whether a write has failed. An answer to a machine is dated.
func NewWriter(w http.ResponseWriter, lost func() bool, dated bool) *Writer {
	return &Writer{ResponseWriter: w, lost: lost, dated: dated}
}

// hidden is a text without the path of the data folder.
func (w *Writer) hidden(text string) string {
	if w.Hide == "" {
		return text
	}
	return strings.ReplaceAll(text, w.Hide, "the data folder")
}

// NextHeader names the job that the next page begins after, or ends before.
const NextHeader = "Scrimp-Next"

// writePatience is for a client to take what is sent to it.
const writePatience = 30 * time.Second

// End ends the answer and returns its status.
func (w *Writer) End() int {
	if w.code == 0 { // an answer without a body says something too
		w.keepsBack(http.StatusOK)
	}
	return w.code
}

// Said is the status that was answered, 0 where none was yet, and the title of a problem.
func (w *Writer) Said() (code int, title string) { return w.code, w.title }

// Fault is why the answer could not be written as JSON; nil: it could.
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
		w.ResponseWriter.WriteHeader(code)
	}
}

// date tells the time at which the answer begins.
func (w *Writer) date() {
	if w.dated {
		signed.Date(w.Header(), time.Now())
	}
}

// keepsBack answers with a problem instead, where a write has failed. Errors of the
// server say nothing of the state: they go out as they are.
func (w *Writer) keepsBack(code int) bool {
	if code >= http.StatusInternalServerError || !w.lost() {
		return false
	}
	h := w.Header()
	h.Del("Content-Length")
	h.Del(NextHeader)
	h.Set("Retry-After", "1")
	Problem(w, http.StatusServiceUnavailable, "the log was not written",
		"ask again: the server begins anew from what is in its log, and says in its own log what is wrong", nil)
	w.instead = true
	return true
}

// Write implements http.ResponseWriter.
func (w *Writer) Write(b []byte) (int, error) {
	if w.code == 0 && !w.keepsBack(http.StatusOK) {
		w.code = http.StatusOK
		w.date()
	}
	switch {
	case w.instead:
		return len(b), nil
	case w.code < http.StatusInternalServerError && w.lost():
		panic(http.ErrAbortHandler) // it has begun: a part that looked whole would be worse
	}
	// a test's recorder has none
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writePatience))
	return w.ResponseWriter.Write(b)
}

// sendAtOnce is how much of a file goes out between two looks at what keeps it back.
const sendAtOnce = 1 << 20

// ReadFrom implements io.ReaderFrom: a file goes out without passing through this
// process where the system knows how.
func (w *Writer) ReadFrom(from io.Reader) (sent int64, err error) {
	limit := &io.LimitedReader{R: from, N: math.MaxInt64}
	if l, ok := from.(*io.LimitedReader); ok { // a limit of a limit is not sent that way
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
func (w *Writer) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Hijack implements http.Hijacker: what is answered from then on is no answer of HTTP.
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

// Unwrap is for http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }
