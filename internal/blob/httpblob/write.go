package httpblob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"

	"gocloud.dev/blob/driver"

	"scrimp/internal/api"
	"scrimp/internal/blob"
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
	sum    uint32         // of what went out
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
	w.sum = crc32.Update(w.sum, castagnoli, p)
	return w.out.Write(p)
}

// stream begins to send, since the content is longer than what is kept of it.
func (w *writer) stream() {
	in, out := io.Pipe()
	w.out, w.sent = out, make(chan error, 1)
	w.sum = crc32.Update(0, castagnoli, w.data)
	body := io.MultiReader(bytes.NewReader(w.data), in)
	go func() { // ends with the request, which ends with the context or the pipe
		err := w.put(func() (io.Reader, int64) { return body, -1 }, "")
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
	begin, size := r.Size()-int64(r.Len()), int64(r.Len())
	sum := crc32.New(castagnoli)
	if _, err := io.Copy(sum, r); err != nil { // in memory: it takes a thousandth of the way
		return err
	}
	return w.put(func() (io.Reader, int64) { return io.NewSectionReader(r, begin, size), size },
		fmt.Sprintf("%08x", sum.Sum32()))
}

// onlyWriter hides Upload.
type onlyWriter struct{ io.Writer }

// put sends a content. Where its sum is not known before, it is sent once.
func (w *writer) put(body func() (io.Reader, int64), sum string) error {
	q := request{method: http.MethodPut, path: blobsPath, query: keyed(w.key), header: http.Header{}, body: body}
	if w.absent {
		q.header.Set("If-None-Match", "*")
	}
	if w.later != nil {
		q.query.Set("durable", "later")
	}
	if sum != "" {
		q.header.Set(api.BlobSum, sum)
	} else {
		q.once, q.sum = true, func() string { return fmt.Sprintf("%08x", w.sum) }
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
		return w.put(content(w.data), fmt.Sprintf("%08x", crc32.Checksum(w.data, castagnoli)))
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
