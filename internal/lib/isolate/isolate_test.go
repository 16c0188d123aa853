package isolate

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestDo_ReturnsAPanicWithItsStack(t *testing.T) {
	t.Parallel()
	var none []int
	err := Do(func() error { _ = none[len(t.Name())]; return nil })
	failed, ok := errors.AsType[*PanicError](err)
	if !ok || !strings.Contains(string(failed.Stack), "TestDo_ReturnsAPanicWithItsStack") {
		t.Errorf("got %v, want a PanicError with the stack of this test", err)
	}
	if no := errors.New("no"); !errors.Is(Do(func() error { return no }), no) {
		t.Error("the error of f is not returned")
	}
}

// A task that panics ten times is retried after 1 s, 2 s, 4 s and so on, and each panic is logged.
func TestRetry_WaitsLongerAfterEachPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		began, calls := time.Now(), 0
		Retry(t.Context(), slog.New(slog.NewTextHandler(&out, nil)), "the test", func() {
			if calls++; calls <= 10 {
				panic("hostile")
			}
		})
		if lasted := time.Since(began); calls != 11 || lasted != 511*time.Second+5*time.Minute {
			t.Errorf("%d calls in %v, want 11 in 13m31s", calls, lasted)
		}
		if n := strings.Count(out.String(), "report it: hostile"); n != 10 {
			t.Errorf("%d panics are in the log, want 10", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		Retry(ctx, slog.New(slog.DiscardHandler), "the test", func() { panic("hostile") }) // it returns
	})
}
