package wire

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetry_StopsAtPermanentError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, tries := time.Now(), 0
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := Retry(ctx, func(context.Context) error { tries++; return fmt.Errorf("away") })
		if err == nil || time.Since(start) != time.Minute || tries < 10 || tries > 20 {
			t.Errorf("%d tries in %v: %v", tries, time.Since(start), err)
		}
		tries = 0
		if err := Retry(t.Context(), func(context.Context) error { tries++; return ErrFenced }); err == nil || tries != 1 {
			t.Errorf("a refused token was tried %d times", tries)
		}
	})
}
