package blobtest

import (
	"context"

	"gocloud.dev/blob/driver"
)

// Op is an operation on a store.
type Op struct {
	Kind string // write, read, attributes, list, delete, copy
	Key  string // for list, the prefix
}

// Watch returns a store that calls before and after for each operation. An error from before prevents the operation;
// an error from after replaces its result, as if the response were lost. Either may be nil.
func Watch(d driver.Bucket, before, after func(Op) error) driver.Bucket {
	none := func(Op) error { return nil }
	if before == nil {
		before = none
	}
	if after == nil {
		after = none
	}
	return &watched{d, before, after}
}

type watched struct {
	driver.Bucket
	before, after func(Op) error
}

// around performs one operation between the two calls.
func (w *watched) around(op Op, do func() error) error {
	err := w.before(op)
	if err == nil {
		err = do()
	}
	if err == nil {
		err = w.after(op)
	}
	return err
}

func (w *watched) Attributes(ctx context.Context, key string) (a *driver.Attributes, err error) {
	err = w.around(Op{"attributes", key}, func() (err error) { a, err = w.Bucket.Attributes(ctx, key); return err })
	if err != nil {
		return nil, err
	}
	return a, nil
}

func (w *watched) ListPaged(ctx context.Context, opts *driver.ListOptions) (p *driver.ListPage, err error) {
	err = w.around(Op{"list", opts.Prefix}, func() (err error) { p, err = w.Bucket.ListPaged(ctx, opts); return err })
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (w *watched) NewRangeReader(ctx context.Context, key string, offset, length int64,
	opts *driver.ReaderOptions) (r driver.Reader, err error) {
	if err := w.before(Op{"read", key}); err != nil {
		return nil, err
	}
	return w.Bucket.NewRangeReader(ctx, key, offset, length, opts)
}

func (w *watched) Delete(ctx context.Context, key string) error {
	return w.around(Op{"delete", key}, func() error { return w.Bucket.Delete(ctx, key) })
}

func (w *watched) Copy(ctx context.Context, to, from string, opts *driver.CopyOptions) error {
	return w.around(Op{"copy", to}, func() error { return w.Bucket.Copy(ctx, to, from, opts) })
}

func (w *watched) NewTypedWriter(ctx context.Context, key, contentType string,
	opts *driver.WriterOptions) (driver.Writer, error) {
	ctx, cancel := context.WithCancel(ctx)
	inner, err := w.Bucket.NewTypedWriter(ctx, key, contentType, opts)
	if err != nil {
		cancel()
		return nil, err
	}
	return &watchedWriter{Writer: inner, w: w, op: Op{"write", key}, cancel: cancel}, nil
}

type watchedWriter struct {
	driver.Writer
	w      *watched
	op     Op
	cancel context.CancelFunc
}

func (w *watchedWriter) Close() error {
	defer w.cancel()
	if err := w.w.before(w.op); err != nil {
		w.cancel()
		_ = w.Writer.Close() // discards what was written
		return err
	}
	if err := w.Writer.Close(); err != nil {
		return err
	}
	return w.w.after(w.op)
}
