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
	"scrimp/internal/agent/datastream"
	"scrimp/internal/lib/draw"
	"scrimp/internal/lib/size"
	"scrimp/internal/wire/api"
)

// ErrEverywhere marks an error of an input or a store that the task would meet on every other machine as well.
var ErrEverywhere = errors.New("no other machine is tried")

// bringData fills the folders of the inputs, from the machine's cache or from their stores, and writes that to the log.
func (w *Workspace) bringData(ctx context.Context, output io.Writer) error {
	for _, in := range w.Task.Data {
		if in.Stream {
			if err := w.stream(ctx, in, output); err != nil {
				return err
			}
			continue
		}
		r, err := w.bring(ctx, in)
		w.read = append(w.read, brought(in.Name, r))
		if err != nil {
			return notBrought(in, err, output)
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

// brought converts the cache's account of an input to the form that the server gets.
func brought(name string, r datacache.Read) api.Brought {
	return api.Brought{Name: name, Files: r.Files, Bytes: r.Bytes, Hits: r.Hits, HitBytes: r.HitBytes, Fetched: r.Fetched,
		Requests: r.Requests, Took: r.Took, Digest: r.Digest}
}

// notBrought adds the input to its error, and writes the error to the log.
func notBrought(in api.Input, err error, output io.Writer) error {
	if errors.Is(err, datacache.ErrInput) && !strings.HasPrefix(in.Path, "file:") {
		err = fmt.Errorf("%w: %w", err, ErrEverywhere)
	}
	err = fmt.Errorf("bring the input %s from %s (data): %w", in.Name, in.Path, err)
	_, _ = fmt.Fprintf(output, "scrimp: %v\n", err) // the attempt's report has it as well
	return err
}

// stream starts to serve an input to the program, and writes that to the log.
func (w *Workspace) stream(ctx context.Context, in api.Input, output io.Writer) error {
	begin := w.machine.Now()
	src, err := w.source(ctx, in)
	if err != nil {
		return notBrought(in, err, output)
	}
	v, err := datastream.Serve(ctx, w.machine.Inputs, src, in.Gigabyte, w.machine.Log)
	if err != nil {
		return notBrought(in, err, output)
	}
	took := max(0, w.machine.Now().Sub(begin))
	w.streams = append(w.streams, stream{in.Name, v, took})
	files, bytes := v.Files()
	_, err = fmt.Fprintf(output, "scrimp: %s: %s, %s, streamed from %s\n", in.Name, draw.Count(files, "file"),
		about(bytes), in.Path)
	return err
}

// stream is an input that the program reads while it arrives.
type stream struct {
	name string
	view *datastream.View
	took time.Duration // from the start to the first readable byte
}

// Inputs returns the values of the inputs' environment variables: a folder, or the address of a stream.
func (w *Workspace) Inputs() map[string]string {
	at := w.inputFolders()
	for _, in := range w.Task.Data {
		for _, s := range w.streams {
			if s.name == in.Name {
				at[in.Variable] = s.view.URL
			}
		}
	}
	return at
}

// inputFolders returns the folders of the inputs by variable. It leaves out addresses of streams, which differ in each
// attempt, so that the cache key of a set-up does not depend on them.
func (w *Workspace) inputFolders() map[string]string {
	at := map[string]string{}
	for _, in := range w.Task.Data {
		at[in.Variable] = w.Folders.Input(in.Name)
	}
	return at
}

// source opens the store of an input.
func (w *Workspace) source(ctx context.Context, in api.Input) (datacache.Source, error) {
	if w.machine.Inputs == nil {
		return nil, errors.New("this machine has no cache: its agent's log says why")
	}
	return datacache.OpenSource(ctx, in.Path, in.Region)
}

func about(bytes int64) string { return cmp.Or(size.About(float64(bytes)), "0 B") }

func (w *Workspace) bring(ctx context.Context, in api.Input) (r datacache.Read, err error) {
	src, err := w.source(ctx, in)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	r, hold, err := w.machine.Inputs.Bring(ctx, src, in.Gigabyte, w.Folders.Input(in.Name))
	w.holds = append(w.holds, hold)
	return r, err
}

// workName is the name under which the agent reports the cache hits of the work folder. No input has this name.
const workName = api.ServerWork

// countWork records, in the log and for the server, how much of the work folder came from the machine's cache.
func (w *Workspace) countWork(c datacache.Copied, took time.Duration, output io.Writer) error {
	if c.Hits == 0 {
		return nil
	}
	w.read = append(w.read, api.Brought{Name: workName, Files: c.Files, Bytes: c.Bytes, Hits: c.Hits,
		HitBytes: c.HitBytes, Fetched: c.Bytes - c.HitBytes, Took: took})
	_, err := fmt.Fprintf(output, "scrimp: work folder: %s from this machine's cache\n", about(c.HitBytes))
	return err
}

// DataRead returns the reads of the inputs. A second call returns none, because the server counts each read once.
func (w *Workspace) DataRead() []api.Brought {
	list := w.read
	w.read = nil
	return list
}

// LeaveData allows the cache to evict the inputs, because no program reads them any more. It returns the reads that
// DataRead has not returned, and those of streams.
func (w *Workspace) LeaveData() []api.Brought {
	for _, s := range w.streams {
		r, err := s.view.Close()
		if err != nil {
			w.machine.Log.Warn("end the stream of an input", "input", s.name, "error", err)
		}
		r.Took = s.took
		w.read = append(w.read, brought(s.name, r))
	}
	w.streams = nil
	for _, h := range w.holds {
		h.Release()
	}
	return w.DataRead()
}
