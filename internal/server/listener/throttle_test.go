package listener

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// Bad connections do not fill the log, and the server's own errors are logged each time.
func TestThrottled_StrangersDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	now := time.Unix(0, 0)
	m := &throttled{log: slog.New(slog.NewTextHandler(&out, nil)), now: func() time.Time { return now }}
	for n := range 100_000 { // a little more than ten minutes
		now = time.Unix(0, 0).Add(time.Duration(n) * 6 * time.Millisecond)
		_, _ = fmt.Fprintf(m, "http: TLS handshake error from 1.2.3.4:%d: EOF\n", n)
	}
	if n := strings.Count(out.String(), "\n"); n < 9 || n > 11 {
		t.Errorf("strangers made %d lines in ten minutes", n)
	}
	if !strings.Contains(out.String(), "more_before=9999") {
		t.Errorf("how many there were is not told: %s", out.String())
	}
	out.Reset()
	for range 2 {
		_, _ = fmt.Fprintf(m, "http: panic serving 1.2.3.4:5: oh\ngoroutine 1\n")
		_, _ = fmt.Fprintf(m, "http: Accept error: accept tcp: too many open files; retrying in 5ms\n")
	}
	if n := strings.Count(out.String(), "\n"); n != 4 {
		t.Errorf("of 4 faults of ours %d are told", n)
	}
}
