package datastream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"scrimp/internal/agent/datacache"
)

// window is how far beyond the arrived part of a file a request waits for it. What lies farther, such as the footer of
// a Parquet file, comes straight from the source.
const window = 8 << 20

// body reads a file for one request. The last byte of a file that is being fetched comes once the whole is verified, so
// that no complete answer mixes versions.
type body struct {
	ctx    context.Context
	v      *View
	i      int
	f      *flight
	at     int64
	whole  *os.File      // the verified file
	direct io.ReadCloser // from the source, at position from
	from   int64
}

func (b *body) size() int64 { return b.v.files[b.i].Bytes }

// begun waits until the first byte is there or comes from the source, so that the error of a file that cannot be read
// has a status of its own.
func (b *body) begun() error {
	for {
		s := b.f.state()
		if s.done && s.err != nil && !errors.Is(s.err, datacache.ErrRoom) {
			return s.err
		}
		if s.done || s.partial != nil {
			b.f.opened()
			return nil
		}
		if err := b.f.next(b.ctx, s); err != nil {
			return err
		}
	}
}

func (b *body) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += b.at
	case io.SeekEnd:
		offset += b.size()
	}
	if offset < 0 {
		return b.at, fmt.Errorf("seek to %d", offset)
	}
	b.at = offset
	return offset, nil
}

func (b *body) Read(p []byte) (n int, err error) {
	if b.at >= b.size() {
		return 0, io.EOF
	}
	if p = p[:min(int64(len(p)), b.size()-b.at)]; len(p) == 0 {
		return 0, nil
	}
	for b.direct == nil || b.from != b.at {
		s := b.f.state()
		switch {
		case s.done && s.err == nil:
			n, err = b.verified(s.path, p)
		case s.done && !errors.Is(s.err, datacache.ErrRoom):
			return 0, s.err
		case s.done || s.partial != nil && b.at > s.size+window:
			if err := b.redirect(); err != nil {
				return 0, err
			}
			continue
		case s.partial != nil && min(s.size, b.size()-1) > b.at:
			n, err = s.partial.ReadAt(p[:min(int64(len(p)), min(s.size, b.size()-1)-b.at)], b.at)
		default:
			if err := b.f.next(b.ctx, s); err != nil {
				return 0, err
			}
			continue
		}
		b.at += int64(n)
		if n > 0 {
			return n, nil
		}
		return 0, err
	}
	n, err = b.direct.Read(p)
	b.at, b.from = b.at+int64(n), b.from+int64(n)
	b.v.mu.Lock()
	b.v.read.Fetched += int64(n)
	b.v.mu.Unlock()
	if n > 0 && !errors.Is(err, datacache.ErrChanged) {
		return n, nil
	}
	if errors.Is(err, io.EOF) && b.at < b.size() {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// verified reads from the cache's file.
func (b *body) verified(path string, p []byte) (n int, err error) {
	if b.whole == nil {
		if b.whole, err = os.Open(path); err != nil {
			return 0, err
		}
	}
	return b.whole.ReadAt(p, b.at)
}

// redirect opens the source at the body's position.
func (b *body) redirect() error {
	if b.direct != nil {
		_ = b.direct.Close() // at another position
		b.direct = nil
	}
	r, err := b.v.src.Open(b.ctx, b.v.files[b.i], b.at)
	if err != nil {
		return err
	}
	b.direct, b.from = r, b.at
	b.v.mu.Lock()
	if s := b.f.state(); s.done { // without room, nothing else counts it
		b.v.count(b.i, false)
	}
	b.v.mu.Unlock()
	return nil
}

func (b *body) close() {
	if b.whole != nil {
		_ = b.whole.Close() // it was only read
	}
	if b.direct != nil {
		_ = b.direct.Close() // likewise
	}
	b.f.leave()
}
