package listener

import (
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// throttleEvery is the lowest interval between log lines about bad connections of strangers.
const throttleEvery = time.Minute

// throttled is the http.Server's own error log. It counts messages about connections that speak no HTTP or no TLS
// and logs one a minute; otherwise anyone who can reach the port could fill the disk. It logs every panic of a
// handler and every lack of file descriptors.
type throttled struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	told time.Time // time of the last line; zero: never
	more int       // messages since then
}

func newThrottled(l *slog.Logger) *log.Logger {
	return log.New(&throttled{log: l, now: time.Now}, "", 0)
}

// Write implements io.Writer. The http.Server writes one line per call.
func (m *throttled) Write(p []byte) (int, error) {
	text := strings.TrimSpace(string(p))
	if strings.Contains(text, "panic") || strings.Contains(text, "Accept error") {
		m.log.Error("serving", "error", text)
		return len(p), nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.now(); m.told.IsZero() || now.Sub(m.told) >= throttleEvery {
		m.log.Warn("bad connection", "error", text, "more_before", m.more)
		m.told, m.more = now, 0
	} else {
		m.more++
	}
	return len(p), nil
}
