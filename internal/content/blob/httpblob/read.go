package httpblob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"gocloud.dev/blob/driver"
)

// reader reads a blob, and resumes where it stopped when the connection breaks.
type reader struct {
	ctx   context.Context // of this one read
	b     *Bucket
	key   string
	tag   string // ETag of the blob, which must not change during the read
	at    int64
	end   int64 // end of the wanted range, exclusive
	body  io.ReadCloser
	attrs driver.ReaderAttributes
}

// NewRangeReader reads length bytes from offset, or to the end if length is negative.
func (b *Bucket) NewRangeReader(ctx context.Context, key string, offset, length int64,
	opts *driver.ReaderOptions) (driver.Reader, error) {
	if opts.BeforeRead != nil {
		if err := opts.BeforeRead(func(any) bool { return false }); err != nil {
			return nil, err
		}
	}
	r := &reader{ctx: ctx, b: b, key: key, at: offset, end: -1}
	if length >= 0 {
		r.end = offset + length
	}
	if length != 0 {
		err := r.open()
		if s, ok := errors.AsType[*statusError](err); !ok || s.status != http.StatusRequestedRangeNotSatisfiable {
			if err != nil {
				return nil, err
			}
			return r, nil
		}
	}
	// The range is empty, or begins beyond the end.
	a, err := b.Attributes(ctx, key)
	if err != nil {
		return nil, err
	}
	r.end, r.body = r.at, io.NopCloser(strings.NewReader(""))
	r.attrs = driver.ReaderAttributes{ContentType: contentType, ModTime: a.ModTime, Size: a.Size}
	return r, nil
}

// open requests the rest of the range.
func (r *reader) open() error {
	q := request{method: http.MethodGet, path: blobsPath, query: keyed(r.key), header: http.Header{}}
	if r.tag != "" {
		q.header.Set("If-Match", r.tag)
	}
	if r.at > 0 || r.end >= 0 {
		last := ""
		if r.end >= 0 {
			last = strconv.FormatInt(r.end-1, 10)
		}
		q.header.Set("Range", fmt.Sprintf("bytes=%d-%s", r.at, last))
	}
	resp, err := r.b.do(r.ctx, q)
	if s, ok := errors.AsType[*statusError](err); ok && s.status == http.StatusPreconditionFailed {
		return errors.Join(ErrChanged, err)
	}
	if err != nil {
		return err
	}
	size, err := wholeSize(resp)
	if err != nil {
		_ = resp.Body.Close()
		return fmt.Errorf("read %s: %w", r.key, err)
	}
	if r.end < 0 || r.end > size {
		r.end = size
	}
	r.tag, r.body = resp.Header.Get("ETag"), resp.Body
	r.attrs = driver.ReaderAttributes{ContentType: contentType, ModTime: modified(resp.Header), Size: size}
	return nil
}

// wholeSize returns the size of the whole blob, even if the response contains only a part of it.
func wholeSize(resp *http.Response) (int64, error) {
	text := resp.Header.Get("Content-Length")
	if resp.StatusCode == http.StatusPartialContent {
		_, text, _ = strings.Cut(resp.Header.Get("Content-Range"), "/")
	}
	size, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the server gives no size: %w", err)
	}
	return size, nil
}

// breaks bounds the consecutive attempts that deliver no byte.
const breaks = 5

func (r *reader) Read(p []byte) (int, error) {
	for try := 0; ; try++ {
		if r.at >= r.end {
			return 0, io.EOF
		}
		n, err := r.body.Read(p[:min(int64(len(p)), r.end-r.at)])
		r.at += int64(n)
		if n > 0 || err == nil {
			return n, nil
		}
		if r.ctx.Err() != nil || try == breaks {
			return 0, err
		}
		_ = r.body.Close() // it is broken
		if err := r.open(); err != nil {
			r.body = io.NopCloser(strings.NewReader(""))
			return 0, err
		}
	}
}

func (r *reader) Close() error                         { return r.body.Close() }
func (r *reader) Attributes() *driver.ReaderAttributes { return &r.attrs }
func (r *reader) As(any) bool                          { return false }
