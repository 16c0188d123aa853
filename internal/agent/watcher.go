package agent

import (
	"context"
	"errors"
	"time"

	"scrimp/internal/agent/program"
	"scrimp/internal/api"
)

// How often the agent looks at things while the program runs. A look costs some
// microseconds; the checkpoint folder is looked at less often where it is large.
const (
	lookOutput = 250 * time.Millisecond
	lookFolder = 250 * time.Millisecond
	lookUsage  = 5 * time.Second
	lookShare  = 200 // a look at the folder takes at most one part of this many of the time
)

// watcher follows what the program prints and writes.
type watcher struct {
	g            *attempt
	output, file tail
	announced    *meta // a save that the output announced and that is not captured yet
}

// follow reads until ctx is done.
func (w *watcher) follow(ctx context.Context) {
	for sleep(ctx, lookOutput) {
		w.read(ctx, false)
	}
}

// read takes what is new. last takes an unfinished line too.
func (w *watcher) read(ctx context.Context, last bool) {
	g := w.g
	if g.match.progress != nil || g.match.saved != nil {
		err := w.output.read(last, func(line []byte) {
			f := g.match.read(line)
			if f.isStep {
				g.progress(f.step)
			}
			if f.saved {
				step, metrics := g.seen()
				if f.savedAt > 0 {
					step = f.savedAt
				}
				w.announced = &meta{Step: step, Captured: g.Now(), Metrics: metrics}
			}
		})
		if err != nil {
			g.Log.Warn("follow the output", "error", err)
		}
	}
	err := w.file.read(last, func(line []byte) {
		s, ok, err := parseProgress(line)
		if err != nil {
			g.Log.Debug("progress file", "error", err)
		}
		if ok {
			g.progress(s)
		}
	})
	if err != nil {
		g.Log.Warn("follow the progress file", "error", err)
	}
	if w.announced != nil && !last {
		err := g.saver.Take(ctx, *w.announced, true)
		if errors.Is(err, errMoving) {
			return // the next look tries again
		}
		if err != nil {
			g.Log.Warn("capture the checkpoint that the output announced", "error", err)
		}
		w.announced = nil
	}
}

// watchFolder captures what an unmodified program saves, until ctx is done.
func (g *attempt) watchFolder(ctx context.Context) {
	for pause := lookFolder; sleep(ctx, pause); {
		step, metrics := g.seen()
		g.mu.Lock()
		asked := g.asked
		g.mu.Unlock()
		if asked {
			g.saver.Hurry()
		}
		took, err := g.saver.Look(ctx, step, metrics)
		if err != nil && ctx.Err() == nil {
			g.Log.Warn("watch the checkpoint folder", "error", err)
		}
		pause = max(lookFolder, min(took*lookShare, 10*time.Second))
	}
}

// measure reports what the program uses, until ctx is done.
func (g *attempt) measure(ctx context.Context, p *program.Program) {
	m := program.NewMeter(p.Group(), time.Now())
	for sleep(ctx, lookUsage) {
		if u, ok := m.Measure(time.Now()); ok {
			g.box.Usage(g.Now(), api.Usage{CPU: u.CPU, Memory: u.Memory, DiskRead: u.Read, DiskWrite: u.Written, Processes: u.Processes})
		}
	}
}
