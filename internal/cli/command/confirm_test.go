package command

import (
	"context"
	"io"
	"strings"
	"testing"
)

func TestConfirmed_EndsWithLineOrCtrlC(t *testing.T) {
	for text, want := range map[string]bool{"\n": true, "y\n": true, " YES \n": true, "n\n": false, "what\n": false, "": false, "y": false} {
		a := &App{In: strings.NewReader(text), Err: io.Discard}
		if got := a.Confirmed(t.Context(), "?", true); got != want {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
	in, out := io.Pipe() // a user who types nothing
	defer func() { _ = out.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a := (&App{In: in, Err: io.Discard}); a.Confirmed(ctx, "?", true) {
		t.Error("Ctrl-C is taken for yes")
	}
}
