package httpblob

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"scrimp/internal/wire/api"
)

// Stream responds with content that is generated while it is sent, from an offset on. write writes the content
// without its first offset bytes and returns the CRC-32C of all of it.
func Stream(w http.ResponseWriter, r *http.Request, mediaType, tag string,
	write func(offset int64) (sum uint32, err error)) error {
	offset := int64(0)
	if text := r.URL.Query().Get("offset"); text != "" {
		var err error
		if offset, err = strconv.ParseInt(text, 10, 64); err != nil || offset < 0 {
			return &ParameterError{"offset", fmt.Sprintf("%.20q, and not a count of bytes", text)}
		}
	}
	if match := r.Header.Get("If-Match"); match != "" && match != `"`+tag+`"` {
		return ErrChanged
	}
	head := w.Header()
	head.Set("Content-Type", mediaType)
	head.Set("ETag", `"`+tag+`"`)
	head.Set("Trailer", api.BlobSum)
	sum, err := write(offset)
	if err != nil {
		panic(http.ErrAbortHandler) // a partial response that looks complete would be worse
	}
	head.Set(api.BlobSum, fmt.Sprintf("%08x", sum))
	return nil
}

// Fetch reads what the server sends with Stream at a path below Base. It resumes where it stopped when the connection
// breaks, and ends with an error if the content differs from what was sent. The caller closes it.
func (b *Bucket) Fetch(ctx context.Context, path string) (io.ReadCloser, error) {
	return b.FetchQuery(ctx, path, nil)
}

// FetchQuery is Fetch with parameters.
func (b *Bucket) FetchQuery(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	s := &stream{ctx: ctx, b: b, path: path, query: query}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

// stream reads content that is generated while it is sent.
type stream struct {
	ctx   context.Context // of this one read
	b     *Bucket
	path  string
	query url.Values
	tag   string
	at    int64
	sum   uint32
	resp  *http.Response // nil: none
}

func (s *stream) open() error {
	q := request{method: http.MethodGet, path: s.path, query: maps.Clone(s.query), header: http.Header{}}
	if s.tag != "" {
		if q.query == nil {
			q.query = url.Values{}
		}
		q.query.Set("offset", strconv.FormatInt(s.at, 10))
		q.header.Set("If-Match", s.tag)
	}
	resp, err := s.b.do(s.ctx, q)
	if e, ok := errors.AsType[*statusError](err); ok && e.status == http.StatusPreconditionFailed {
		return errors.Join(ErrChanged, err)
	}
	if err != nil {
		return err
	}
	s.tag, s.resp = resp.Header.Get("ETag"), resp
	return nil
}

func (s *stream) Read(p []byte) (int, error) {
	for try := 0; ; try++ {
		if s.resp == nil {
			if err := s.open(); err != nil {
				return 0, err
			}
		}
		n, err := s.resp.Body.Read(p)
		s.at += int64(n)
		s.sum = crc32.Update(s.sum, castagnoli, p[:n])
		switch {
		case n > 0 || err == nil:
			return n, nil
		case errors.Is(err, io.EOF):
			if want := s.resp.Trailer.Get(api.BlobSum); want != fmt.Sprintf("%08x", s.sum) {
				return 0, fmt.Errorf("fetch %s: %w: its CRC-32C is %08x and not %.20q", s.path, errTorn, s.sum, want)
			}
			return 0, io.EOF
		case s.ctx.Err() != nil || try == breaks:
			return 0, fmt.Errorf("fetch %s: %w", s.path, err)
		}
		_ = s.resp.Body.Close() // it is broken
		s.resp = nil
	}
}

func (s *stream) Close() error {
	if s.resp == nil {
		return nil
	}
	return s.resp.Body.Close()
}
