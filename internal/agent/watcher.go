package agent

import (
	"context"
	"errors"
	"time"

	"scrimp/internal/agent/program"
	"scrimp/internal/agent/progress"
	"scrimp/internal/agent/save"
	"scrimp/internal/api"
	"scrimp/internal/wait"
)

// How often the agent looks at things while the program runs. A poll costs some
// microseconds; the checkpoint folder is looked at less often where it is large.
const (
	lookOutput = 250 * time.Millisecond
	lookFolder = 250 * time.Millisecond
	lookUsage  = 5 * time.Second
	pollShare  = 200 // a look at the folder takes at most one part of this many of the time
)

// watcher follows what the program prints and writes.
type watcher struct {
	g            *attempt
	output, file progress.Tail
	announced    *save.Meta // a save that the output announced and that is not captured yet
}

// follow reads until ctx is done.
func (w *watcher) follow(ctx context.Context) {
	for wait.For(ctx, lookOutput) == nil {
		w.read(ctx, false)
	}
}

// read takes what is new. last takes an unfinished line too.
func (w *watcher) read(ctx context.Context, last bool) {
	g := w.g
	if g.match.Any() {
		err := w.output.Read(last, func(line []byte) {
			f := g.match.Read(line)
			if f.IsStep {
				_ = g.progress(f.Step) // what is refused stands in the trouble of the attempt
			}
			if f.Saved {
				step, metrics := g.seen()
				if f.SavedStep > 0 {
					step = f.SavedStep
				}
				w.announced = &save.Meta{Step: step, Captured: g.Now(), Metrics: metrics}
			}
		})
		if err != nil {
			g.Log.Warn("follow the output", "error", err)
		}
	}
	err := w.file.Read(last, func(line []byte) {
		s, ok, err := progress.Parse(line)
		if err != nil {
			g.Log.Debug("progress file", "error", err)
		}
		if ok {
			_ = g.progress(s) // likewise
		}
	})
	if err != nil {
		g.Log.Warn("follow the progress file", "error", err)
	}
	if w.announced != nil && !last {
		err := g.saver.Take(ctx, *w.announced, true)
		if errors.Is(err, save.ErrMoving) {
			return // the next poll tries again
		}
		if err != nil {
			g.Log.Warn("capture the checkpoint that the output announced", "error", err)
		}
		g.trouble.is(troubleCapture, err)
		w.announced = nil
	}
}

// watchFolder captures what an unmodified program saves, until ctx is done.
func (g *attempt) watchFolder(ctx context.Context) {
	for pause := lookFolder; wait.For(ctx, pause) == nil; {
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
			g.trouble.is(troubleCapture, err)
		} else if err == nil {
			g.trouble.is(troubleCapture, nil)
		}
		pause = max(lookFolder, min(took*pollShare, 10*time.Second))
	}
}

// measure reports what the program uses, until ctx is done.
func (g *attempt) measure(ctx context.Context, p *program.Program) {
	m := program.NewMeter(p.Group(), time.Now())
	for wait.For(ctx, lookUsage) == nil {
		if u, ok := m.Measure(time.Now()); ok {
			g.box.Usage(g.Now(), api.Usage{CPU: u.CPU, Memory: u.Memory, DiskRead: u.Read, DiskWrite: u.Written,
				Processes: u.Processes})
		}
	}
}
