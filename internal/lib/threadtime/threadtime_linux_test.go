package threadtime

import (
	"testing"
	"time"
)

const enough = 10 * time.Millisecond

// burn uses some processor time of its thread.
func burn() {
	for begun := used(); used() < begun+enough; { //nolint:revive // it computes nothing
	}
}

// What f computes counts, and what another goroutine computes while f waits does not.
func TestOf_CountsTheWorkOfItsOwnGoroutine(t *testing.T) {
	if own := Of(burn); own < enough {
		t.Errorf("%s were counted of %s", own, enough)
	}
	var other time.Duration
	waits := Of(func() {
		done := make(chan bool)
		go func() { other = Of(burn); close(done) }()
		<-done
	})
	if waits >= other {
		t.Errorf("%s were counted of a goroutine that waits while another uses %s", waits, other)
	}
}
