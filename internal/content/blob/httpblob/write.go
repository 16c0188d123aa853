package httpblob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"gocloud.dev/blob/driver"

	"scrimp/internal/content/blob"
	"scrimp/internal/wire/api"
)

// inMemory is how much of a content is kept until it is sent, so that it can be sent
// again. What is longer goes out as it comes, once.
const inMemory = 1 << 20

// writer writes a blob. It appears when Close returns without error.
type writer struct {
	ctx    context.Context // of the one write that this value is
	b      *Bucket
	key    string
	absent bool
	later  *blob.Later // nil: the blob is durable when Close returns
	data   []byte
	out    *io.PipeWriter // nil: what was written is in data
	sent   chan error     // has the outcome of what went out
	done   bool           // Upload has done everything
}

// NewTypedWriter begins to write a blob.
func (b *Bucket) NewTypedWriter(ctx context.Context, key, _ string, opts *driver.WriterOptions) (driver.Writer, error) {
	if len(opts.Metadata) > 0 {
		return nil, fmt.Errorf("write %s with metadata to the server: %w", key, errors.ErrUnsupported)
	}
	w := &writer{ctx: ctx, b: b, key: key, absent: opts.IfNotExist}
	if opts.BeforeWrite != nil {
		as := func(i any) (ok bool) { w.later, ok = i.(*blob.Later); return ok }
		if err := opts.BeforeWrite(as); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	if w.out == nil && len(w.data)+len(p) <= inMemory {
		w.data = append(w.data, p...)
		return len(p), nil
	}
	if w.out == nil {
		w.stream()
	}
	return w.out.Write(p)
}

// stream begins to send, since the content is longer than what is kept of it.
func (w *writer) stream() {
	in, out := io.Pipe()
	w.out, w.sent = out, make(chan error, 1)
	body := io.MultiReader(bytes.NewReader(w.data), in)
	go func() { // ends with the request, which ends with the context or the pipe
		err := w.put(func() (io.Reader, int64) { return body, -1 }, true)
		if err != nil {
			_ = in.CloseWithError(err)
		}
		w.sent <- err
	}()
}

// Upload sends a content that can be read again from where it lies.
func (w *writer) Upload(from io.Reader) error {
	r, ok := from.(*bytes.Reader)
	if !ok {
		_, err := io.Copy(onlyWriter{w}, from)
		return err
	}
	w.done = true
	var lies inPlace
	if _, err := r.WriteTo(&lies); err != nil {
		return err
	}
	return w.put(content(lies.data), false)
}

// inPlace gets to know where the content of a bytes.Reader lies: it is read there,
// whole, for as long as Upload lasts.
type inPlace struct{ data []byte }

func (i *inPlace) Write(p []byte) (int, error) {
	i.data = p
	return len(p), nil
}

// onlyWriter hides Upload.
type onlyWriter struct{ io.Writer }

// put sends a content, with its sum behind it.
func (w *writer) put(body func() (io.Reader, int64), once bool) error {
	q := request{method: http.MethodPut, path: blobsPath, query: keyed(w.key), header: http.Header{}, body: body,
		once: once, summed: true}
	if w.absent {
		q.header.Set("If-None-Match", "*")
	}
	if w.later != nil {
		q.query.Set("durable", "later")
	}
	head, err := w.b.done(w.ctx, q)
	if err != nil || w.later == nil {
		return err
	}
	return w.later.Wrote(w.ctx, run{w.b, head.Get(api.BlobBoot)}, w.key)
}

// Close makes the blob appear, or throws it away where the context has ended.
func (w *writer) Close() error {
	if w.done {
		return nil
	}
	if w.out == nil {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		return w.put(content(w.data), false)
	}
	if err := w.ctx.Err(); err != nil {
		_ = w.out.CloseWithError(err)
		return errors.Join(err, <-w.sent)
	}
	_ = w.out.Close() // a pipe has no error
	return <-w.sent
}

// run is the server's machine from its start to the next, in which blobs were written.
type run struct {
	b    *Bucket
	boot string
}

// SyncBlobs implements blob.Syncer.
func (r run) SyncBlobs(ctx context.Context, keys []string) error {
	for len(keys) > 0 {
		n := min(len(keys), mostKeys)
		body, err := json.Marshal(api.BlobSync{Boot: r.boot, Keys: keys[:n]})
		if err != nil {
			return err
		}
		q := request{method: http.MethodPost, path: blobsPath + "/sync", body: content(body)}
		if _, err := r.b.done(ctx, q); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}
