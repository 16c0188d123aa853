// Package workblob puts the work folders of jobs into the buckets for which engines lend credentials, so that machines
// fetch them there and not from the server.
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

// ErrServer says that the work folder is not in the bucket now: the server sends it.
var ErrServer = errors.New("the server sends the work folder")

// How folders get into buckets.
const (
	atOnce  = 2                // folders on their way; each has some parts of 5 MiB in memory
	inLine  = 1024             // folders that wait for their turn
	answers = 5 * time.Second  // how long who asks waits for one that is on its way; an agent gives up after 10 s
	stalled = time.Minute      // how long one may be on its way without moving
	doubted = 10 * time.Minute // between two looks at a copy that agents did not take
)

// Blobs puts work folders into buckets, each job's below its own prefix, once, by credentials that are good for that
// prefix alone. What is there is on record before it is there, and is told to agents once it was read back.
type Blobs struct {
	Folders *workdir.Store
	// Lender is who lends credentials for the store of a job, and the prefix in its bucket that is the job's own; nil:
	// nobody does.
	Lender func(address, job string) (l engine.Lender, prefix string)
	Errors *slog.Logger
	Rests  time.Duration // after what failed it is not tried again for so long

	queue chan *put

	mu      sync.Mutex
	puts    map[string]*put      // by job
	failed  map[string]time.Time // by job
	doubts  map[string]time.Time // by job: when a copy was doubted last
	removed map[string]bool      // jobs whose copies are being removed
	away    map[string]time.Time // by store: when nothing could be removed from it last
}

// put is a folder on its way.
type put struct {
	job, store string
	begun      chan struct{}
	done       chan struct{}
	blob       api.WorkBlob // once it is done
	err        error
}

// New is for the folders of a store.
func New(folders *workdir.Store, lender func(address, job string) (engine.Lender, string), log *slog.Logger) *Blobs {
	return &Blobs{Folders: folders, Lender: lender, Errors: log, Rests: time.Minute,
		queue: make(chan *put, inLine), puts: map[string]*put{},
		failed: map[string]time.Time{}, doubts: map[string]time.Time{}, removed: map[string]bool{},
		away: map[string]time.Time{}}
}

// Run puts folders into buckets until ctx ends.
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

// Ask returns where the work folder of a job lies in the job's store, and has it put there where it is not. It waits a
// moment for one that is on its way: then WorkBlob.Wait says to ask again. ErrServer: nobody knows of one there soon.
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
	default: // a line of others is before it, and the machine costs meanwhile
		return api.WorkBlob{}, ErrServer
	}
}

// join is the put of a job, a new one where none is on its way; nil: there is none now.
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

// work puts a folder into its bucket.
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
		b.Errors.Warn("a work folder is not put into its job's bucket: the server sends it", "job", p.job, "error", err,
			isolate.Stack(err))
	} else {
		p.blob = r.blob()
		b.Errors.Info("a work folder is in its job's bucket", "job", p.job, "bytes", r.Bytes, "sha256", r.SHA256,
			"took", time.Since(begin).Round(time.Millisecond))
	}
	close(p.done)
}

// Refused takes an agent's word that it has not taken the copy in the bucket. One that is missing or damaged is looked
// at again before it is told to others, and put anew where that is so; an agent cannot have that done more than once in
// a while.
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
			b.Errors.Warn("that a copy of a work folder is to be read again was not noted", "job", job, "error", err)
		}
	}
}

func (b *Blobs) dir() string { return filepath.Join(b.Folders.Dir, "lent") }
