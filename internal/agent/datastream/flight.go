package datastream

import (
	"context"
	"errors"
	"sync"

	"scrimp/internal/agent/datacache"
)

// flight is a fetch of a file into the cache.
type flight struct {
	v    *View
	i    int
	hold *datacache.Hold

	mu      sync.Mutex
	users   int           // requests that read it
	changed chan struct{} // closed at the next progress
	path    string        // of what has arrived, then of the verified file; "": nothing yet, or another task fetches it
	size    int64         // of what has arrived
	done    bool
	err     error
}

// join returns the flight of a file, which it begins if there is none. The caller leaves it.
func (v *View) join(i int) *flight {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.flights[i]
	if f == nil {
		f = &flight{v: v, i: i, hold: v.cache.NewHold(), changed: make(chan struct{})}
		v.flights[i] = f
		v.fetches.Go(f.run)
	}
	f.mu.Lock()
	f.users++
	f.mu.Unlock()
	return f
}

// run fetches the file. A file that no request has opened stays held for the one that will.
func (f *flight) run() {
	v := f.v
	path, hit, sent, err := v.cache.Get(v.ctx, v.src, v.files[f.i], v.gigabyte, f.hold, f.grew)
	v.mu.Lock()
	delete(v.flights, f.i)
	v.read.Fetched += sent
	if err == nil {
		v.count(f.i, hit)
	}
	f.mu.Lock()
	f.done, f.path, f.err = true, path, err
	close(f.changed)
	unused := f.users == 0
	f.mu.Unlock()
	if unused {
		if err == nil && v.held[f.i] == nil {
			v.held[f.i], f.hold = f.hold, nil
		}
		f.hold.Release()
	}
	v.mu.Unlock()
	if err != nil && !errors.Is(err, datacache.ErrRoom) && v.ctx.Err() == nil {
		v.log.Warn("stream an input", "file", v.files[f.i].Name, "error", err)
	}
}

// count counts a file that has reached the machine, once. The caller holds the view's lock.
func (v *View) count(i int, hit bool) {
	if v.seen[i] {
		return
	}
	v.seen[i] = true
	bytes := v.files[i].Bytes
	v.read.Files, v.read.Bytes = v.read.Files+1, v.read.Bytes+bytes
	if hit {
		v.read.Hits, v.read.HitBytes = v.read.Hits+1, v.read.HitBytes+bytes
	}
}

// grew is the Watch of the fetch.
func (f *flight) grew(path string, bytes int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.path, f.size = path, bytes
	close(f.changed)
	f.changed = make(chan struct{})
}

// leave ends the use of the flight by a request, or by nobody: a fetch ahead.
func (f *flight) leave() {
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	f.mu.Lock()
	f.users--
	over := f.done && f.users == 0
	f.mu.Unlock()
	if over {
		f.hold.Release()
	}
}

// opened releases what a fetch ahead has kept for the request that opens the file: that holds it itself.
func (f *flight) opened() {
	f.v.mu.Lock()
	h := f.v.held[f.i]
	delete(f.v.held, f.i)
	f.v.mu.Unlock()
	h.Release()
}

// state is the progress of a flight.
type state struct {
	path    string
	size    int64
	done    bool
	err     error
	changed <-chan struct{}
}

func (f *flight) state() state {
	f.mu.Lock()
	defer f.mu.Unlock()
	return state{f.path, f.size, f.done, f.err, f.changed}
}

// next waits for progress after a state.
func (f *flight) next(ctx context.Context, s state) error {
	select {
	case <-s.changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-f.v.ctx.Done():
		return context.Cause(f.v.ctx)
	}
}
