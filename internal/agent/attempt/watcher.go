package attempt

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"scrimp/internal/agent/progress"
	"scrimp/internal/agent/save"
	"scrimp/internal/lib/wait"
)

// pollShare bounds what a look at a large checkpoint folder costs: one part of this many of the time.
const pollShare = 200

// watcher follows what the program prints and writes.
type watcher struct {
	g            *Attempt
	mu           sync.Mutex // one reads at a time
	output, file progress.Tail
	announced    *save.Announced // a save that the output announced and that is not captured yet
	readAt       time.Time       // when the output was read last
}

// follow reads until ctx is done.
func (w *watcher) follow(ctx context.Context) {
	for wait.For(ctx, w.g.Pace.Poll) == nil {
		w.read(ctx, false)
	}
}

// read takes what is new. last takes an unfinished line too, and captures nothing.
func (w *watcher) read(ctx context.Context, last bool) {
	g := w.g
	w.mu.Lock()
	defer w.mu.Unlock()
	if g.match.Any() {
		w.readOutput(last)
	}
	err := w.file.Read(last, func(line []byte) {
		s, ok, err := progress.Parse(line)
		if err != nil {
			g.Log.Debug("progress file", "error", err)
		}
		if ok {
			_ = g.reported(&g.written, s, 0) // what is refused stands in the trouble of the attempt
		}
	})
	if err != nil {
		g.Log.Warn("follow the progress file", "error", err)
	}
	if w.announced != nil && !last {
		err := g.saver.Take(ctx, w.announced.Meta, true)
		if errors.Is(err, save.ErrMoving) || err != nil && ctx.Err() != nil {
			return // the next poll tries again, or who looks at what the program left
		}
		if err != nil {
			g.Log.Warn("capture the checkpoint that the output announced", "error", err)
		}
		w.announced = nil
	}
}

// readOutput looks for progress and for saves that are announced.
func (w *watcher) readOutput(last bool) {
	g, before := w.g, w.readAt
	w.readAt = g.Now()
	var found *save.Announced
	closes := false // the announcement is the newest line
	err := w.output.Read(last, func(line []byte) {
		f := g.match.Read(line)
		if f.IsStep {
			_ = g.reported(&g.printed, f.Step, f.Epochs) // likewise
		}
		if closes = f.Saved; closes {
			step, metrics := g.seen()
			if f.SavedStep > 0 && !g.anew(&g.printed) {
				step = f.SavedStep
			}
			found = &save.Announced{Meta: save.Meta{Step: step, Captured: g.Now(), Metrics: metrics}, By: w.readAt}
		}
	})
	if err != nil {
		g.Log.Warn("follow the output", "error", err)
	}
	if found == nil {
		return
	}
	if last { // it was printed at an unknown time since, and the program may have begun another save
		found.By = before.Add(-clockTick)
		if info, err := os.Stat(g.Folders.Log); err == nil && closes {
			found.By = info.ModTime()
		}
	}
	w.announced = found
}

// clockTick is by how much the time of a file may be earlier than the clock says.
const clockTick = 10 * time.Millisecond

// watchFolder captures what an unmodified program saves, until ctx is done. It reads what the program said before it
// looks at the folder, so that a save has the step that the program printed before it.
func (w *watcher) watchFolder(ctx context.Context) {
	g := w.g
	for pause := g.Pace.Poll; wait.For(ctx, pause) == nil; {
		w.read(ctx, false)
		step, metrics := g.seen()
		g.mu.Lock()
		asked := g.asked
		g.mu.Unlock()
		if asked {
			g.saver.Hurry()
		}
		took, err := g.saver.Poll(ctx, step, metrics)
		if err != nil && ctx.Err() == nil {
			g.Log.Warn("watch the checkpoint folder", "error", err)
		}
		switch {
		case errors.Is(err, save.ErrFolder):
			g.trouble.is(troubleLook, err)
		case ctx.Err() == nil:
			g.trouble.is(troubleLook, nil)
		}
		pause = max(g.Pace.Poll, min(took*pollShare, 10*time.Second))
	}
}
