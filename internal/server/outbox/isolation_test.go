package outbox

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/decide/core"
)

// A panic during a call (here because the outbox has no server) ends neither the server nor the calls for other
// jobs: each is retried and logged.
func TestTellOld_RetriesAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		o := &Outbox{Log: slog.New(slog.NewTextHandler(&log, nil))}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of the bubble
		defer cancel()
		o.TellOld(ctx, []core.Notify{{Job: "a"}, {Job: "b"}})
		for _, what := range []string{"webhook of job a", "webhook of job b"} {
			if n := strings.Count(log.String(), what); n < 2 {
				t.Errorf("%s was tried %d times", what, n)
			}
		}
	})
}
