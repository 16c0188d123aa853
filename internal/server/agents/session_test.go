package agents

import (
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/wire/api"
)

// In a synctest bubble: the reader of a session learns within a second that the attempt is over, and until then has a
// heartbeat every ten seconds.
func TestFollow_EndsSoonAfterAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, sent := time.Now(), 0
		over := began.Add(25 * time.Second)
		s := &session{rank: api.Rank("a.1", 0), changed: make(chan struct{}), heard: over}
		var last api.ExecOutput
		err := new(sessions).follow(t.Context(), s, func(string) bool { return time.Now().Before(over) },
			func(o api.ExecOutput) error { sent++; last = o; return nil })
		if err != nil || !last.Over || last.Error == "" || sent != 4 {
			t.Errorf("%v after %d messages, the last %+v", err, sent, last)
		}
		if late := time.Since(over); late > time.Second {
			t.Errorf("it ends %v after the attempt", late)
		}
	})
}
