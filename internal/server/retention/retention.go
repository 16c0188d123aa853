// Package retention gives disk back: it removes what jobs that are over have left, once that is old enough.
package retention

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"scrimp/client"
	"scrimp/internal/control"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/state"
	"scrimp/internal/engine"
	"scrimp/internal/lib/wait"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/kept"
	"scrimp/internal/server/turn"
	"scrimp/internal/server/workblob"
	"scrimp/internal/server/workdir"
)

// What is kept where nobody says otherwise.
const (
	StandardSpan = 90 * 24 * time.Hour // work folders, output and older checkpoints of a job that is over
	machineSpan  = 24 * time.Hour      // what a machine of this computer has left
)

// every is between two rounds of what the server does by itself, and first how long it waits with the first.
const (
	every = time.Hour
	first = time.Minute
)

// Kinds are what can be removed.
var Kinds = []string{client.GCWork, client.GCLogs, client.GCOutputs, client.GCCheckpoints, client.GCMachines,
	client.GCUnused}

// Logs is the output of programs, and what their machines were measured to do.
type Logs interface {
	Logs(ctx context.Context) ([]string, error)
	LogEnd(ctx context.Context, attempt string) (int64, error)
	AllSeries(ctx context.Context) (map[string]int64, error)
	DropLog(ctx context.Context, attempt string) error // with its measurements
}

// Desk removes what is old.
type Desk struct {
	Gate    *auth.Gate
	Control *control.Control
	Logs    Logs
	Folders *workdir.Store
	Blobs   *workblob.Blobs // work folders in buckets
	Kept    *kept.Kept
	Turns   *turn.Turns
	Engines []engine.Engine
	Dir     string // the data folder
	// Span is how long after a job's end its work folder, output and older checkpoints are kept, and OutputSpan the same
	// of its outputs and its newest checkpoint; 0: for ever.
	Span, OutputSpan time.Duration
	Errors           *slog.Logger
	Removed          func() // called when something was removed

	round sync.Mutex // held while something is removed
}

// rules say what goes.
type rules struct {
	spans  map[string]time.Duration // by kind; a kind that is not there stays
	newest time.Duration            // of newest checkpoints; 0: they stay
	keep   []string                 // jobs
	dry    bool
}

// standing are the rules of what the server does by itself.
func (d *Desk) standing() rules {
	r := rules{spans: map[string]time.Duration{client.GCMachines: machineSpan, client.GCUnused: 0}, newest: d.OutputSpan}
	if d.Span > 0 {
		r.spans[client.GCWork], r.spans[client.GCLogs], r.spans[client.GCCheckpoints] = d.Span, d.Span, d.Span
	}
	if d.OutputSpan > 0 {
		r.spans[client.GCOutputs] = d.OutputSpan
	}
	return r
}

// asked are the rules that somebody wants.
func (d *Desk) asked(b client.GC) rules {
	r := d.standing()
	r.keep, r.dry = b.Keep, b.DryRun
	if b.OlderThan > 0 {
		for _, kind := range Kinds {
			r.spans[kind] = b.OlderThan
		}
		r.newest = 0
	}
	if b.NewestCheckpoints {
		r.newest = max(r.spans[client.GCCheckpoints], time.Nanosecond)
	}
	for kind := range r.spans {
		if len(b.Only) > 0 && !slices.Contains(b.Only, kind) {
			delete(r.spans, kind)
		}
	}
	return r
}

// Run removes what is old, again and again, until ctx ends.
func (d *Desk) Run(ctx context.Context) {
	for pause := first; wait.For(ctx, pause) == nil; pause = every {
		done, err := d.remove(ctx, d.standing())
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			d.Errors.Error("what is old was not removed", "error", err)
		}
		if len(done.Items) > 0 {
			d.Errors.Info("what was old is removed", "things", len(done.Items), "bytes", done.Bytes)
		}
	}
}

// remove removes what the rules say, or lists it.
func (d *Desk) remove(ctx context.Context, r rules) (done client.GCDone, err error) {
	d.round.Lock()
	defer d.round.Unlock()
	t := &taking{d: d, ctx: ctx, rules: r, now: time.Now(), done: client.GCDone{DryRun: r.dry, Items: []client.GCItem{}},
		jobs: map[string]*owner{}}
	for _, step := range []func() error{t.workFolders, t.logs, t.blobs, t.machines} {
		err = errors.Join(err, step())
	}
	if _, wanted := r.spans[client.GCUnused]; wanted || len(t.folders) > 0 {
		err = errors.Join(err, t.sweep())
	}
	if !r.dry && len(t.done.Items) > 0 {
		d.Removed()
	}
	slices.SortFunc(t.done.Items, func(a, b client.GCItem) int {
		return strings.Compare(a.Job+"\x00"+a.Kind+"\x00"+a.Name, b.Job+"\x00"+b.Kind+"\x00"+b.Name)
	})
	return t.done, err
}

// owner is a job, as far as it matters for what it has left.
type owner struct {
	known bool
	over  bool
	ended time.Time // wall time
}

// owner is the job of that name.
func (t *taking) owner(id string) (*owner, error) {
	if o := t.jobs[id]; o != nil {
		return o, nil
	}
	o := &owner{}
	o.known = t.d.Control.Job(id, func(_ *core.Machine, j *core.Job) {
		o.over = j.State().Over() && !j.Costs()
		o.ended = t.d.Control.Clock().ToWall(j.Finished())
	})
	if !o.known {
		t.d.Control.Read(func(m *core.Machine) {
			if g := m.State().Group(id); g != nil {
				o.known, o.over = true, g.Phase == state.GroupOver
				o.ended = t.d.Control.Clock().ToWall(g.Finished)
			}
		})
	}
	if !o.known && t.d.Control.Lost() {
		return nil, control.ErrStopping // nobody can say which jobs there are
	}
	t.jobs[id] = o
	return o, nil
}

// old reports whether something of a job is to go: the job ended so long ago, or there is none, and the thing is
// as old.
func (t *taking) old(job, kind string, changed time.Time) (why string, is bool, err error) {
	span, wanted := t.rules.spans[kind]
	if !wanted || slices.Contains(t.rules.keep, job) {
		return "", false, nil
	}
	o, err := t.owner(job)
	switch {
	case err != nil:
		return "", false, err
	case !o.known:
		span = max(span, machineSpan) // it may be on its way in
		return "there is no job of that name", t.now.Sub(changed) > span, nil
	case !o.over || o.ended.IsZero():
		return "", false, nil
	}
	age := t.now.Sub(o.ended)
	return fmt.Sprintf("its job was over %s ago", spoken(age)), age > span, nil
}

// spoken is a span as people say it.
func spoken(d time.Duration) string {
	if d >= 48*time.Hour {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	if d >= time.Hour {
		return d.Truncate(time.Minute).String()
	}
	return d.Truncate(time.Second).String()
}
