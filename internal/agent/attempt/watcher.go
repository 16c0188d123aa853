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

// pollShare bounds the cost of polling a large checkpoint folder: at most 1/pollShare of the time.
const pollShare = 200

// watcher follows the program's output, progress file and checkpoint folder.
type watcher struct {
	g            *Attempt
	mu           sync.Mutex // held during a read
	output, file progress.Tail
	announced    *save.Announced // an announced save that is not captured yet
	readAt       time.Time       // time of the last read of the output
}

// follow polls until ctx is done.
func (w *watcher) follow(ctx context.Context) {
	for wait.For(ctx, w.g.Pace.Poll) == nil {
		w.read(ctx, false)
	}
}

// read processes new output and progress. With last, it also reads an unfinished line, and captures nothing.
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
			_ = g.reported(&g.written, s, 0) // the attempt's trouble reports a refused value
		}
	})
	if err != nil {
		g.Log.Warn("follow the progress file", "error", err)
	}
	if w.announced != nil && !last {
		err := g.saver.Take(ctx, w.announced.Meta, true)
		if errors.Is(err, save.ErrMoving) || err != nil && ctx.Err() != nil {
			return // the next poll tries again, or Final does
		}
		if err != nil {
			g.Log.Warn("capture the checkpoint that the output announced", "error", err)
		}
		w.announced = nil
	}
}

// readOutput looks for progress and announced saves in the output.
func (w *watcher) readOutput(last bool) {
	g, before := w.g, w.readAt
	w.readAt = g.Now()
	var found *save.Announced
	closes := false // the newest line is the announcement
	err := w.output.Read(last, func(line []byte) {
		f := g.match.Read(line)
		if f.IsStep {
			_ = g.reported(&g.printed, f.Step, f.Epochs) // as above
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
	if last { // the line may be old, and the program may have started another save since
		found.By = before.Add(-clockTick)
		if info, err := os.Stat(g.Folders.Log); err == nil && closes {
			found.By = info.ModTime()
		}
	}
	w.announced = found
}

// clockTick is how far the time of a file may lag behind the clock.
const clockTick = 10 * time.Millisecond

// watchFolder captures what an unmodified program saves, until ctx is done. It reads the output
// before it lists the folder, so that a save gets the step that the program printed before it.
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
			g.trouble.set(troubleLook, err)
		case ctx.Err() == nil:
			g.trouble.set(troubleLook, nil)
		}
		pause = max(g.Pace.Poll, min(took*pollShare, 10*time.Second))
	}
}
