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
	"net/url"
	"strconv"
	"time"

	"gocloud.dev/blob/driver"

	"scrimp/internal/wire/api"
)

// Default limits of a call.
const (
	Patience = time.Minute // how long to wait for an unreachable server
	Stall    = time.Minute // an attempt fails after this long without a byte in either direction
)

// NewBucket returns the store behind a server at base, such as https://host:port/v1/agent. It calls token before each
// request.
func NewBucket(base string, client *http.Client, token func() string) *Bucket {
	return &Bucket{Base: base, Client: client, Token: token, Wire: api.Wire, Patience: Patience, Stall: Stall}
}

// Bucket is the driver of a store behind a server. It stores no content type and no metadata, and refuses a write
// with metadata.
type Bucket struct {
	Base     string // prefix of all paths, such as https://host:port/v1/agent
	Socket   bool   // Client connects to a socket of this machine, whatever Base says
	Client   *http.Client
	Token    func() string // called before each request
	Wire     int           // protocol version
	Patience time.Duration
	Stall    time.Duration
}

// request is one call, which may be sent several times.
type request struct {
	method string
	path   string // below Base
	query  url.Values
	header http.Header
	// body returns the content from its beginning, and its size or -1; nil means no content.
	body func() (io.Reader, int64)
	once bool // the body can be read only once
	// summed sends the content's CRC-32C after it.
	summed bool
}

// do repeats a call until it is answered, and returns the answer, whose body the caller closes.
func (b *Bucket) do(ctx context.Context, q request) (*http.Response, error) {
	limit := time.Now().Add(b.Patience)
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		resp, wait, err := b.try(ctx, q)
		if err == nil {
			return resp, nil
		}
		wait = max(wait, pause)
		if !again(err) || q.once || ctx.Err() != nil || time.Now().Add(wait).After(limit) {
			return nil, fmt.Errorf("%s %s: %w", q.method, b.Base+q.path, err)
		}
		if !sleep(ctx, wait) {
			return nil, fmt.Errorf("%s %s: %w", q.method, b.Base+q.path, errors.Join(context.Cause(ctx), err))
		}
	}
}

// again reports whether a repeated call may succeed.
func again(err error) bool {
	s, ok := errors.AsType[*statusError](err)
	if !ok {
		return true // the connection broke, or nobody answered
	}
	switch s.status {
	case http.StatusUnprocessableEntity, // the content arrived incomplete
		http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// errStall ends an attempt in which no byte moves.
var errStall = errors.New("no byte came or went for too long")

// try makes a call once. wait is the pause that the server requests.
func (b *Bucket) try(ctx context.Context, q request) (resp *http.Response, wait time.Duration, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	alive := time.AfterFunc(b.Stall, func() { cancel(errStall) })
	touch := func() { alive.Reset(b.Stall) }
	end := func() { alive.Stop(); cancel(nil) }
	defer func() {
		if err != nil {
			if cause := context.Cause(ctx); errors.Is(cause, errStall) {
				err = errors.Join(cause, err)
			}
			end()
		}
	}()
	req, err := b.request(ctx, q, touch)
	if err != nil {
		return nil, 0, err
	}
	resp, err = b.Client.Do(req)
	if err != nil {
		return nil, 0, err
	}
	resp.Body = &answer{ReadCloser: resp.Body, touch: touch, end: end}
	if resp.StatusCode < 300 {
		return resp, 0, nil
	}
	wait, err = refusal(resp)
	return nil, wait, err
}

func (b *Bucket) request(ctx context.Context, q request, touch func()) (*http.Request, error) {
	address := b.Base + q.path
	if len(q.query) > 0 {
		address += "?" + q.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, q.method, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	if q.header != nil {
		req.Header = q.header.Clone()
	}
	req.Header.Set("Authorization", "Bearer "+b.Token())
	req.Header.Set(api.WireHeader, strconv.Itoa(b.Wire))
	if q.body == nil {
		return req, nil
	}
	content, size := q.body()
	if size != 0 {
		req.Body, req.ContentLength = &sent{Reader: content, touch: touch}, size
	}
	if q.summed {
		req.ContentLength, req.Trailer = -1, http.Header{api.BlobSum: nil}
		req.Body = &sent{Reader: content, touch: touch, trailer: req.Trailer}
	}
	return req, nil
}

// refusal reads an error response.
func refusal(resp *http.Response) (wait time.Duration, err error) {
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // it only adds detail
	s := &statusError{status: resp.StatusCode, text: resp.Status}
	var p api.Problem
	if json.Unmarshal(text, &p) == nil && p.Title != "" {
		s.text = fmt.Sprintf("status %d: %s", resp.StatusCode, p.Title)
		if p.Detail != "" {
			s.text += ": " + p.Detail
		}
	}
	if n, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && n > 0 {
		wait = time.Duration(min(n, 30)) * time.Second
	}
	return wait, s
}

// sent is content on its way to the server.
type sent struct {
	io.Reader
	touch   func()
	trailer http.Header // receives the content's sum at its end; nil: no sum
	sum     uint32
}

func (s *sent) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.touch()
	if s.trailer != nil {
		s.sum = crc32.Update(s.sum, castagnoli, p[:n])
	}
	if errors.Is(err, io.EOF) {
		s.over()
	}
	return n, err
}

func (s *sent) over() {
	if s.trailer != nil {
		s.trailer.Set(api.BlobSum, fmt.Sprintf("%08x", s.sum))
	}
}

// sendChunk is the size of the pieces in which content in memory is sent: small enough that a piece is still in the
// processor's cache when it is copied after it was summed.
const sendChunk = 256 << 10

// WriteTo implements io.WriterTo; it avoids a copy of content in memory.
func (s *sent) WriteTo(w io.Writer) (int64, error) {
	memory, ok := s.Reader.(*bytes.Reader)
	if !ok {
		return io.Copy(w, readOnly{s})
	}
	pieces := &pieces{s: s, w: w}
	n, err := memory.WriteTo(pieces)
	if err == nil {
		s.over()
	}
	return n, err
}

// readOnly hides WriteTo.
type readOnly struct{ io.Reader }

// pieces passes its input on in pieces.
type pieces struct {
	s *sent
	w io.Writer
}

func (p *pieces) Write(data []byte) (int, error) {
	total := 0
	for len(data) > 0 {
		piece := data[:min(len(data), sendChunk)]
		p.s.sum = crc32.Update(p.s.sum, castagnoli, piece)
		n, err := p.w.Write(piece)
		p.s.touch()
		total += n
		if err != nil {
			return total, err
		}
		data = data[n:]
	}
	return total, nil
}

// Close leaves the content to its opener.
func (*sent) Close() error { return nil }

// answer is the body of a response.
type answer struct {
	io.ReadCloser
	touch func()
	end   func()
}

func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	a.touch()
	return n, err
}

func (a *answer) Close() error {
	err := a.ReadCloser.Close()
	a.end()
	return err
}

// done makes a call whose response has no content.
func (b *Bucket) done(ctx context.Context, q request) (http.Header, error) {
	resp, err := b.do(ctx, q)
	if err != nil {
		return nil, err
	}
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection can be reused
	return resp.Header, resp.Body.Close()
}

// blobsPath is the path of the blobs below Base.
const blobsPath = "/blobs"

func keyed(key string) url.Values { return url.Values{"key": {key}} }

// content returns a body function for content in memory.
func content(data []byte) func() (io.Reader, int64) {
	return func() (io.Reader, int64) { return bytes.NewReader(data), int64(len(data)) }
}

// As exposes only the Bucket itself.
func (b *Bucket) As(i any) bool {
	p, ok := i.(**Bucket)
	if ok {
		*p = b
	}
	return ok
}

// ErrorAs exposes nothing.
func (*Bucket) ErrorAs(error, any) bool { return false }

// Close drops idle connections.
func (b *Bucket) Close() error {
	b.Client.CloseIdleConnections()
	return nil
}

// Attributes describes a blob.
func (b *Bucket) Attributes(ctx context.Context, key string) (*driver.Attributes, error) {
	head, err := b.done(ctx, request{method: http.MethodHead, path: blobsPath, query: keyed(key)})
	if err != nil {
		return nil, err
	}
	size, err := strconv.ParseInt(head.Get("Content-Length"), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the server gives no size of %s: %w", key, err)
	}
	return &driver.Attributes{ContentType: contentType, ModTime: modified(head), Size: size, ETag: head.Get("ETag")}, nil
}

// contentType is the type that every blob reports.
const contentType = "application/octet-stream"

func modified(head http.Header) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, head.Get(api.BlobModified)) // zero if unknown
	return t
}

// ListPaged lists blobs in the order of their keys.
func (b *Bucket) ListPaged(ctx context.Context, opts *driver.ListOptions) (*driver.ListPage, error) {
	if opts.BeforeList != nil {
		if err := opts.BeforeList(func(any) bool { return false }); err != nil {
			return nil, err
		}
	}
	query := url.Values{"prefix": {opts.Prefix}, "delimiter": {opts.Delimiter}, "page": {string(opts.PageToken)}}
	if opts.PageSize > 0 {
		query.Set("limit", strconv.Itoa(min(opts.PageSize, maxKeys)))
	}
	resp, err := b.do(ctx, request{method: http.MethodGet, path: blobsPath + "/list", query: query})
	if err != nil {
		return nil, err
	}
	var list api.Blobs
	err = json.NewDecoder(resp.Body).Decode(&list)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, fmt.Errorf("list %s: %w", opts.Prefix, err)
	}
	page := &driver.ListPage{}
	if list.Next != "" {
		page.NextPageToken = []byte(list.Next)
	}
	for _, o := range list.Blobs {
		page.Objects = append(page.Objects,
			&driver.ListObject{Key: o.Key, Size: o.Size, ModTime: o.Modified, IsDir: o.Folder})
	}
	return page, nil
}

// Delete removes a blob. A repeated call may find it already removed.
func (b *Bucket) Delete(ctx context.Context, key string) error {
	_, err := b.done(ctx, request{method: http.MethodDelete, path: blobsPath, query: keyed(key)})
	return err
}

// Copy reads a blob and writes it.
func (b *Bucket) Copy(ctx context.Context, to, from string, opts *driver.CopyOptions) error {
	if opts.BeforeCopy != nil {
		if err := opts.BeforeCopy(func(any) bool { return false }); err != nil {
			return err
		}
	}
	r, err := b.NewRangeReader(ctx, from, 0, -1, &driver.ReaderOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := b.NewTypedWriter(ctx, to, contentType, &driver.WriterOptions{})
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, r); err != nil {
		cancel() // makes Close discard the copy
		_ = w.Close()
		return err
	}
	return w.Close()
}

// SignedURL fails: the server accepts only its own tokens.
func (*Bucket) SignedURL(context.Context, string, *driver.SignedURLOptions) (string, error) {
	return "", fmt.Errorf("sign an address of the server: %w", errors.ErrUnsupported)
}
