package front

import (
	"log"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// throttleEvery is how often what strangers do wrong is a line of the log at most.
const throttleEvery = time.Minute

// throttled is the http.Server's own log. What it says of connections that speak no
// HTTP, or no TLS, is counted, and one of them a minute is told: whoever reaches the
// port could else fill the disk with them. What a handler's panic or a lack of files
// leaves there is told each time.
type throttled struct {
	log *slog.Logger
	now func() time.Time

	mu   sync.Mutex
	told time.Time // zero: never
	more int       // since then
}

func newThrottled(l *slog.Logger) *log.Logger {
	return log.New(&throttled{log: l, now: time.Now}, "", 0)
}

// Write implements io.Writer: a line each.
func (m *throttled) Write(p []byte) (int, error) {
	text := strings.TrimSpace(string(p))
	if strings.Contains(text, "panic") || strings.Contains(text, "Accept error") {
		m.log.Error("serving", "error", text)
		return len(p), nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := m.now(); m.told.IsZero() || now.Sub(m.told) >= throttleEvery {
		m.log.Warn("a connection that does not speak as it should", "error", text, "more_before", m.more)
		m.told, m.more = now, 0
	} else {
		m.more++
	}
	return len(p), nil
}
