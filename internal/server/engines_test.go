package server

import (
	"testing"
	"time"

	"scrimp/internal/decide/core"
)

// A server restored from a backup opens its market at the log's time.
func TestMarket_OpensAtTheTimeOfTheLog(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, nil)
	w.must("POST", "/v1/jobs", aJob("one", ""), nil)
	w.event(core.AttemptStarted{Attempt: w.booting(1)[0], Message: 1}, 50*time.Hour)
	at, err := w.marketTime(t.Context())
	if ahead := at.Sub(opened); err != nil || ahead < 49*time.Hour || ahead > 51*time.Hour {
		t.Errorf("the log has come to %v, %v after its beginning, %v; want 50 h", at, ahead, err)
	}
}
