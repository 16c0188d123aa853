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

	"scrimp/internal/content/blob/folderblob"
	"scrimp/internal/wire/api"
)

// inMemory bounds the content that is buffered until it is sent, so that it can be sent again. Longer content is
// streamed once.
const inMemory = 1 << 20

// writer writes a blob, which appears when Close returns without error.
type writer struct {
	ctx    context.Context // of this one write
	b      *Bucket
	key    string
	absent bool
	later  *folderblob.Later // nil: the blob is durable when Close returns
	data   []byte
	out    *io.PipeWriter // nil: the content is in data
	sent   chan error     // receives the outcome of the stream
	done   bool           // Upload has done everything
}

// NewTypedWriter starts to write a blob.
func (b *Bucket) NewTypedWriter(ctx context.Context, key, _ string, opts *driver.WriterOptions) (driver.Writer, error) {
	if len(opts.Metadata) > 0 {
		return nil, fmt.Errorf("write %s with metadata to the server: %w", key, errors.ErrUnsupported)
	}
	w := &writer{ctx: ctx, b: b, key: key, absent: opts.IfNotExist}
	if opts.BeforeWrite != nil {
		as := func(i any) (ok bool) { w.later, ok = i.(*folderblob.Later); return ok }
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

// stream starts to send content that is longer than the buffer.
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

// Upload sends content that can be read again from its place in memory.
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

// inPlace captures the slice behind a bytes.Reader, so that the content is read in place while Upload runs.
type inPlace struct{ data []byte }

func (i *inPlace) Write(p []byte) (int, error) {
	i.data = p
	return len(p), nil
}

// onlyWriter hides Upload.
type onlyWriter struct{ io.Writer }

// put sends content, followed by its sum.
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

// Close makes the blob appear, or discards it if the context has ended.
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
	_ = w.out.Close() // a pipe returns no error
	return <-w.sent
}

// run identifies the boot of the server's machine in which blobs were written.
type run struct {
	b    *Bucket
	boot string
}

// SyncBlobs implements blob.Syncer.
func (r run) SyncBlobs(ctx context.Context, keys []string) error {
	for len(keys) > 0 {
		n := min(len(keys), maxKeys)
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
