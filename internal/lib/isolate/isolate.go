// Package isolate contains panics: the process continues after a panic that one provider's answer or one job has
// caused. Otherwise the restarted process would meet the same panic again.
package isolate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"scrimp/internal/lib/wait"
)

// PanicError is a panic that Do has stopped.
type PanicError struct {
	Value any
	Stack []byte // of the goroutine that panicked
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("the server failed, please report it: %v", e.Value)
}

// Do calls f. It returns a panic of f as a *PanicError.
func Do(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{v, debug.Stack()}
		}
	}()
	return f()
}

// Call is like Do, for an f that returns no error.
func Call(f func()) error { return Do(func() error { f(); return nil }) }

// Stack returns the log attribute with the stack of a panic. For any other error it is empty, and the log line has no
// stack.
func Stack(err error) slog.Attr {
	if failed, ok := errors.AsType[*PanicError](err); ok {
		return slog.String("stack", string(failed.Stack))
	}
	return slog.Attr{}
}

// The first and the longest pause of Retry.
const (
	firstPause = time.Second
	mostPause  = 5 * time.Minute
)

// Retry calls f until it returns without a panic or ctx is done. It logs each panic with its stack. It waits for one
// second before the second call, twice as long before the next, and so on, up to five minutes. After an f that ran for
// longer than five minutes the pause is one second again.
func Retry(ctx context.Context, log *slog.Logger, what string, f func()) {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		began := time.Now()
		err := Call(f)
		if err == nil {
			return
		}
		log.Error("a task of the server panicked; trying again", "task", what, "error", err, Stack(err))
		if time.Since(began) > mostPause {
			pause = firstPause
		}
		if wait.For(ctx, pause) != nil {
			return
		}
	}
}
