package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"scrimp/internal/agent/datacache"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/size"
	"scrimp/internal/wire/api"
)

// ErrEverywhere marks an error of an input that the task would meet on every other machine as well.
var ErrEverywhere = errors.New("no other machine is tried")

// bringData fills the folders of the inputs, from the machine's cache or from where they lie, and says so in the log.
func (w *Workspace) bringData(ctx context.Context, output io.Writer) error {
	for _, in := range w.Task.Data {
		r, err := w.bring(ctx, in)
		w.read = append(w.read, api.Brought{Name: in.Name, Files: r.Files, Bytes: r.Bytes, Hits: r.Hits,
			HitBytes: r.HitBytes, Fetched: r.Fetched, Requests: r.Requests, Took: r.Took,
			Digest: r.Digest})
		if errors.Is(err, datacache.ErrInput) && !strings.HasPrefix(in.Path, "file:") {
			err = fmt.Errorf("%w: %w", err, ErrEverywhere)
		}
		if err != nil {
			err = fmt.Errorf("bring the input %s from %s (data): %w", in.Name, in.Path, err)
			_, _ = fmt.Fprintf(output, "scrimp: %v\n", err) // the server hears it anyway
			return err
		}
		_, err = fmt.Fprintf(output, "scrimp: %s: %s, %s: %s from this machine's cache, %s from %s, in %v\n", in.Name,
			draw.Count(int(r.Files), "file"), about(r.Bytes), about(r.HitBytes), about(r.Fetched), in.Path,
			r.Took.Round(time.Millisecond))
		if err != nil {
			return err
		}
	}
	return nil
}

func about(bytes int64) string { return cmp.Or(size.About(float64(bytes)), "0 B") }

func (w *Workspace) bring(ctx context.Context, in api.Input) (r datacache.Read, err error) {
	if w.machine.Inputs == nil {
		return r, errors.New("this machine has no cache: its agent's log says why")
	}
	src, err := datacache.OpenSource(ctx, in.Path, in.Region)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	r, hold, err := w.machine.Inputs.Bring(ctx, src, in.Gigabyte, w.Folders.Input(in.Name))
	w.holds = append(w.holds, hold)
	return r, err
}

// workName is the name under which the server hears what of the work folder came from the cache. No input has it.
const workName = api.ServerWork

// countWork says in the log, and to the server, how much of the work folder came from the machine's cache.
func (w *Workspace) countWork(c datacache.Copied, took time.Duration, output io.Writer) error {
	if c.Hits == 0 {
		return nil
	}
	w.read = append(w.read, api.Brought{Name: workName, Files: c.Files, Bytes: c.Bytes, Hits: c.Hits,
		HitBytes: c.HitBytes, Fetched: c.Bytes - c.HitBytes, Took: took})
	_, err := fmt.Fprintf(output, "scrimp: work folder: %s from this machine's cache\n", about(c.HitBytes))
	return err
}

// DataRead returns what bringing the inputs took, once: the server counts it once.
func (w *Workspace) DataRead() []api.Brought {
	list := w.read
	w.read = nil
	return list
}

// LeaveData allows the cache to evict the inputs, because no program reads them any more. It returns what bringing them
// took, unless DataRead has.
func (w *Workspace) LeaveData() []api.Brought {
	for _, h := range w.holds {
		h.Release()
	}
	return w.DataRead()
}
