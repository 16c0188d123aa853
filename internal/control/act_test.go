package control

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/core"
	"scrimp/internal/engine"
)

// unreached is an engine none of whose machines is reached.
type unreached struct {
	shut
	asked int
}

func (u *unreached) Terminate(context.Context, string) error {
	u.asked++
	return errors.New("no route to host")
}

// A machine behind a cable that is out for a day is asked to end every few seconds, and that it has not is logged
// at once and then ever more seldom.
func TestWhatIsNotGivenBackIsLoggedSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		d := &unreached{}
		c := &Control{cfg: Config{Log: slog.New(slog.NewTextHandler(&log, nil))},
			sources: []*source{newSource(engine.Engine{Name: "lab", Driver: d, Timing: engine.Timing{Poll: time.Second,
				Sweep: time.Second, Boot: time.Second}}, Clock{})}}
		lines := func() int { return bytes.Count(log.Bytes(), []byte("not given back yet")) }
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		go c.terminate(ctx, core.Terminate{Provider: "lab", Instance: "lab-m1-0"})
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if lines() != 1 {
			t.Errorf("within half a minute it is logged %d times, want once:\n%s", lines(), &log)
		}
		<-ctx.Done()
		synctest.Wait()
		if n := lines(); n < 10 || n > 32 || d.asked < 10_000 {
			t.Errorf("within a day it is asked %d times and logged %d times, want it asked all the time, and logged about once "+
				"an hour", d.asked, n)
		}
	})
}
