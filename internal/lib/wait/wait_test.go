package wait

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// For waits for the given time, but not longer than its context, and returns the reason why the context ended.
func TestFor_EndsWithTheTimeOrTheContext(t *testing.T) {
	why := errors.New("over")
	for _, c := range []struct {
		name           string
		ends, d, lasts time.Duration
		want           error
	}{
		{"the time is first", time.Hour, time.Minute, time.Minute, nil},
		{"the context is first", time.Minute, time.Hour, time.Minute, why},
		{"it is over already", 0, time.Hour, 0, why},
		{"no time", time.Hour, 0, 0, nil},
		{"less than none", time.Hour, -time.Second, 0, nil},
		{"no time, and it is over", 0, 0, 0, why},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				if c.ends == 0 {
					cancel(why)
				}
				begun := time.Now()
				time.AfterFunc(c.ends, func() { cancel(why) })
				if err := For(ctx, c.d); !errors.Is(err, c.want) || time.Since(begun) != c.lasts {
					t.Errorf("%v after %v, want %v after %v", err, time.Since(begun), c.want, c.lasts)
				}
				cancel(nil)
			})
		})
	}
}

// The context lives as long as there is progress. It ends a given span after the last progress, with the reason.
func TestMoving_EndsWithoutProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, moved, end := Moving(t.Context(), time.Minute)
		defer end()
		for range 10 {
			if err := For(ctx, 59*time.Second); err != nil {
				t.Fatal(err)
			}
			moved()
		}
		begin := time.Now()
		<-ctx.Done()
		if span := time.Since(begin); span != time.Minute || !strings.Contains(context.Cause(ctx).Error(), "moved for 1m") {
			t.Errorf("after %v: %v", span, context.Cause(ctx))
		}
		over, moved, end := Moving(t.Context(), time.Minute)
		end()
		moved()
		if !errors.Is(context.Cause(over), context.Canceled) {
			t.Errorf("%v", context.Cause(over))
		}
	})
}
