// Package retention removes old files of finished jobs.
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
	"scrimp/internal/server/artifacts"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/keymutex"
	"scrimp/internal/server/workblob"
	"scrimp/internal/server/workdir"
)

// Default retention.
const (
	StandardSpan = 90 * 24 * time.Hour // work folders, output and older checkpoints of a finished job
	machineSpan  = 24 * time.Hour      // files of a machine on this host
)

// every is the interval between the server's own rounds; first is the wait before the first.
const (
	every = time.Hour
	first = time.Minute
)

// Kinds lists what can be removed.
var Kinds = []string{client.GCWork, client.GCLogs, client.GCOutputs, client.GCCheckpoints, client.GCMachines,
	client.GCUnused}

// Logs stores the output of programs and telemetry.
type Logs interface {
	Logs(ctx context.Context) ([]string, error)
	LogEnd(ctx context.Context, attempt string) (int64, error)
	AllSeries(ctx context.Context) (map[string]int64, error)
	DropLog(ctx context.Context, attempt string) error // with its telemetry
}

// Service removes old files.
type Service struct {
	Gate    *auth.Gate
	Control *control.Control
	Logs    Logs
	Folders *workdir.Store
	Blobs   *workblob.Blobs // work folders in buckets
	Kept    *artifacts.Kept
	Turns   *keymutex.Turns
	Engines []engine.Engine
	Dir     string // the data folder
	// Span is how long a job's work folder, output and older checkpoints are kept after its end. OutputSpan is the
	// same for its outputs and its newest checkpoint. 0: for ever.
	Span, OutputSpan time.Duration
	Errors           *slog.Logger
	Removed          func() // called after a removal

	round sync.Mutex // held during a round
	sizes sizes
}

// rules decide what to remove.
type rules struct {
	spans  map[string]time.Duration // by kind; kinds without an entry stay
	newest time.Duration            // for newest checkpoints; 0: they stay
	keep   []string                 // jobs to keep
	fit    *int64                   // space for outputs of stages; nil: what goes depends on its age
	dry    bool
}

// standingRules returns the rules for the server's own rounds.
func (d *Service) standingRules() rules {
	r := rules{spans: map[string]time.Duration{client.GCMachines: machineSpan, client.GCUnused: 0}, newest: d.OutputSpan}
	if d.Span > 0 {
		r.spans[client.GCWork], r.spans[client.GCLogs], r.spans[client.GCCheckpoints] = d.Span, d.Span, d.Span
	}
	if d.OutputSpan > 0 {
		r.spans[client.GCOutputs] = d.OutputSpan
	}
	return r
}

// asked returns the rules of a request.
func (d *Service) asked(b client.GC) rules {
	r := d.standingRules()
	r.keep, r.dry, r.fit = b.Keep, b.DryRun, b.Fit
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

// Run removes old files periodically until ctx ends.
func (d *Service) Run(ctx context.Context) {
	for pause := first; wait.For(ctx, pause) == nil; pause = every {
		done, err := d.remove(ctx, d.standingRules())
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			d.Errors.Error("cannot remove old files", "error", err)
		}
		if len(done.Items) > 0 {
			d.Errors.Info("removed old files", "things", len(done.Items), "bytes", done.Bytes)
		}
	}
}

// remove removes what the rules select, or lists it.
func (d *Service) remove(ctx context.Context, r rules) (done client.GCDone, err error) {
	d.round.Lock()
	defer d.round.Unlock()
	t := &taking{d: d, ctx: ctx, rules: r, now: time.Now(), done: client.GCDone{DryRun: r.dry, Items: []client.GCItem{}},
		jobs: map[string]*owner{}}
	steps := []func() error{t.workFolders, t.logs, t.blobs, t.machines}
	if r.fit != nil {
		steps = []func() error{t.fits}
	}
	for _, step := range steps {
		err = errors.Join(err, step())
	}
	if _, wanted := r.spans[client.GCUnused]; r.fit == nil && wanted || len(t.folders) > 0 {
		err = errors.Join(err, t.sweep())
	}
	if !r.dry && len(t.done.Items) > 0 {
		d.sizes.forget()
		d.Removed()
	}
	slices.SortFunc(t.done.Items, func(a, b client.GCItem) int {
		return strings.Compare(a.Job+"\x00"+a.Kind+"\x00"+a.Name, b.Job+"\x00"+b.Kind+"\x00"+b.Name)
	})
	return t.done, err
}

// owner is a job, with what matters for the retention of its files.
type owner struct {
	known bool
	over  bool
	ended time.Time // wall time
}

// owner returns the job of the given name.
func (t *taking) owner(id string) (*owner, error) {
	if o := t.jobs[id]; o != nil {
		return o, nil
	}
	o := &owner{}
	if _, err := t.d.Control.FindGroups(t.ctx, id); err != nil { // an error must not look like an unknown name
		return nil, err
	}
	o.known = t.d.Control.Job(id, func(_ *core.Machine, j *core.Job) {
		o.over = j.State().Over() && !j.Costs()
		o.ended = t.d.Control.Clock().ToWall(j.Finished())
	})
	if !o.known {
		o.known = t.d.Control.Group(id, func(_ *core.Machine, g *state.Group) {
			o.over = g.Phase == state.GroupOver
			o.ended = t.d.Control.Clock().ToWall(g.Finished)
		})
	}
	if !o.known && t.d.Control.Lost() {
		return nil, control.ErrStopping // the list of jobs is not complete then
	}
	t.jobs[id] = o
	return o, nil
}

// old reports whether a thing of a job is old enough to remove, and why: its job ended that long ago, or there is no
// such job and the thing itself is that old.
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
		span = max(span, machineSpan) // its job may be in submission
		return "there is no job of that name", t.now.Sub(changed) > span, nil
	case !o.over || o.ended.IsZero():
		return "", false, nil
	}
	age := t.now.Sub(o.ended)
	return fmt.Sprintf("its job ended %s ago", formatSpan(age)), age > span, nil
}

// formatSpan formats a duration for people.
func formatSpan(d time.Duration) string {
	if d >= 48*time.Hour {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	if d >= time.Hour {
		return d.Truncate(time.Minute).String()
	}
	return d.Truncate(time.Second).String()
}
