package wait

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// It lasts as long as it is told, and not a moment longer than its context, whose end it names.
func TestForEndsWithTheTimeOrWithTheContext(t *testing.T) {
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
