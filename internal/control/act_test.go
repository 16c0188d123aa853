package control

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"scrimp/internal/decide/core"
	"scrimp/internal/engine"
)

// unreached is an engine whose machines are all unreachable.
type unreached struct {
	shut
	asked int
}

func (u *unreached) Terminate(context.Context, string) error {
	u.asked++
	return errors.New("no route to host")
}

// counter counts log records.
type counter struct {
	slog.Handler
	n atomic.Int64
}

// Handle implements slog.Handler.
func (c *counter) Handle(context.Context, slog.Record) error {
	c.n.Add(1)
	return nil
}

// The server retries the termination of an unreachable machine every few seconds for a day, and logs the failure at
// once and then less and less often.
func TestTerminate_LogsAnUnreachableMachineSeldom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &counter{Handler: slog.NewTextHandler(io.Discard, nil)}
		d := &unreached{}
		c := &Control{cfg: Config{Log: slog.New(log)},
			sources: []*source{newSource(engine.Engine{Name: "lab", Driver: d, Timing: engine.Timing{Poll: time.Second,
				Sweep: time.Second, Boot: time.Second}}, Clock{})}}
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		go c.terminate(ctx, core.Terminate{Provider: "lab", Instance: "lab-m1-0"})
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n := log.n.Load(); n != 1 {
			t.Errorf("within half a minute it is logged %d times, want once", n)
		}
		<-ctx.Done()
		synctest.Wait()
		if n := log.n.Load(); n < 10 || n > 32 || d.asked < 10_000 {
			t.Errorf("within a day it is asked %d times and logged %d times, want it asked all the time, and logged about once "+
				"an hour", d.asked, n)
		}
	})
}

// Users read why a launch was refused, without the path of the data folder.
func TestRefusal_HidesThePathOfTheDataFolder(t *testing.T) {
	t.Parallel()
	c := &Control{cfg: Config{Dir: "/srv/scrimp"}}
	b := c.refusal("a", errors.New("mkdir /srv/scrimp/market/machines/i-1: no space left on device"))
	if want := "mkdir the data folder/market/machines/i-1: no space left on device"; b.Detail != want {
		t.Errorf("%q, want %q", b.Detail, want)
	}
}
