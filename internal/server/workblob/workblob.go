// Package workblob uploads the work folders of jobs to buckets for which engines lend credentials, so that machines
// fetch them there instead of from the server.
package workblob

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/lib/isolate"
	"scrimp/internal/server/workdir"
	"scrimp/internal/wire/api"
)

// ErrServer means that the work folder is not in the bucket now: agents fetch it from the server.
var ErrServer = errors.New("the server sends the work folder")

// Limits of uploads.
const (
	atOnce  = 2                // concurrent uploads; each has some parts of 5 MiB in memory
	inLine  = 1024             // uploads that wait
	answers = 5 * time.Second  // how long a request waits for an upload in progress; an agent gives up after 10 s
	stalled = time.Minute      // how long an upload may make no progress
	doubted = 10 * time.Minute // lowest interval between two checks of a copy that agents refused
)

// Blobs uploads work folders to buckets, once per job below its own prefix, with credentials for that prefix alone.
// It records a copy before the upload, and reports it to agents after reading it back.
type Blobs struct {
	Folders *workdir.Store
	// Lender returns the engine that lends credentials for a job's store, and the job's own prefix in the bucket. It
	// returns nil if no engine does.
	Lender func(address, job string) (l engine.Lender, prefix string)
	Errors *slog.Logger
	Rests  time.Duration // pause after a failure

	queue chan *put

	mu      sync.Mutex
	puts    map[string]*put      // by job
	failed  map[string]time.Time // by job
	doubts  map[string]time.Time // by job: time of the last check of a refused copy
	removed map[string]bool      // jobs whose copies are being deleted
	away    map[string]time.Time // by store: time of the last failed deletion
}

// put is an upload.
type put struct {
	job, store string
	begun      chan struct{}
	done       chan struct{}
	blob       api.WorkBlob // valid once done is closed
	err        error
}

// New returns the uploads for a store of folders.
func New(folders *workdir.Store, lender func(address, job string) (engine.Lender, string), log *slog.Logger) *Blobs {
	return &Blobs{Folders: folders, Lender: lender, Errors: log, Rests: time.Minute,
		queue: make(chan *put, inLine), puts: map[string]*put{},
		failed: map[string]time.Time{}, doubts: map[string]time.Time{}, removed: map[string]bool{},
		away: map[string]time.Time{}}
}

// Run uploads folders until ctx ends.
func (b *Blobs) Run(ctx context.Context) {
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for {
				select {
				case p := <-b.queue:
					b.work(ctx, p)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	all.Wait()
}

// Ask returns where a job's work folder lies in its store, and starts the upload if needed. It waits a moment for an
// upload in progress; if that goes on, WorkBlob.Wait tells the agent to ask again. ErrServer: no copy will be there
// soon.
func (b *Blobs) Ask(ctx context.Context, job, store string) (api.WorkBlob, error) {
	ref, err := b.Folders.Of(job)
	if err != nil {
		return api.WorkBlob{}, errors.Join(ErrServer, err)
	}
	if r, err := b.record(job); err == nil && r.is(ref, store) {
		return r.blob(), nil
	}
	p := b.join(job, store)
	if p == nil {
		return api.WorkBlob{}, ErrServer
	}
	moment := time.NewTimer(answers)
	defer moment.Stop()
	select {
	case <-p.done:
		return p.blob, p.err
	case <-moment.C:
	case <-ctx.Done():
		return api.WorkBlob{}, context.Cause(ctx)
	}
	select {
	case <-p.begun:
		return api.WorkBlob{Wait: true}, nil
	default: // other uploads are queued first, and the machine costs money meanwhile
		return api.WorkBlob{}, ErrServer
	}
}

// join returns the upload of a job, and starts one if there is none; nil: none is possible now.
func (b *Blobs) join(job, store string) *put {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.puts[job]; p != nil {
		return p
	}
	for other, at := range b.failed {
		if time.Since(at) > b.Rests {
			delete(b.failed, other)
		}
	}
	if _, failed := b.failed[job]; failed || b.removed[job] {
		return nil
	}
	p := &put{job: job, store: store, begun: make(chan struct{}), done: make(chan struct{})}
	select {
	case b.queue <- p:
		b.puts[job] = p
		return p
	default:
		return nil
	}
}

// work performs an upload.
func (b *Blobs) work(ctx context.Context, p *put) {
	close(p.begun)
	begin := time.Now()
	var r record
	err := isolate.Do(func() (err error) { r, err = b.put(ctx, p.job, p.store); return err })
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.puts, p.job)
	if err != nil {
		p.err = errors.Join(ErrServer, err)
		b.failed[p.job] = time.Now()
		b.Errors.Warn("cannot upload a work folder to its job's bucket", "job", p.job, "error", err,
			isolate.Stack(err))
	} else {
		p.blob = r.blob()
		b.Errors.Info("a work folder is in its job's bucket", "job", p.job, "bytes", r.Bytes, "sha256", r.SHA256,
			"took", time.Since(begin).Round(time.Millisecond))
	}
	close(p.done)
}

// Refused records that an agent did not accept the copy in the bucket. If the copy was missing or damaged, the
// server checks it before it reports it again, and uploads it anew if needed. An agent can cause that only once in a
// while.
func (b *Blobs) Refused(job, attempt, why string) {
	b.Errors.Warn("a work folder was not taken from its job's bucket: the server sends it", "job", job,
		"attempt", attempt, "why", why)
	if why != api.WorkMissing && why != api.WorkDamaged {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for other, at := range b.doubts {
		if time.Since(at) > doubted {
			delete(b.doubts, other)
		}
	}
	if _, lately := b.doubts[job]; lately || b.puts[job] != nil || b.removed[job] {
		return
	}
	b.doubts[job] = time.Now()
	if r, err := b.record(job); err == nil && r.Whole {
		r.Whole = false
		if err := b.note(job, r); err != nil {
			b.Errors.Warn("cannot record that a copy of a work folder must be checked again", "job", job, "error", err)
		}
	}
}

func (b *Blobs) dir() string { return filepath.Join(b.Folders.Dir, "lent") }
