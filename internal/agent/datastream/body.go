package datastream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"scrimp/internal/agent/datacache"
	"scrimp/internal/lib/wait"
)

// window is how far beyond the arrived part of a file a request waits for it. What lies farther, such as the footer of
// a Parquet file, comes straight from the source.
const window = 8 << 20

// tries bounds direct reads in a row that bring no byte.
const tries = 5

// pause is the time between two of them.
var pause = time.Second

// body reads a file for one request. The last byte of a file that is being fetched comes once the whole is verified, so
// that no complete answer mixes versions.
type body struct {
	ctx    context.Context
	v      *View
	i      int
	f      *flight
	at     int64
	file   *os.File      // in the cache: the verified file, or what has arrived
	direct io.ReadCloser // from the source, at position from
	from   int64
	failed int // tries of direct reads in a row without a byte
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
		if s.done || s.size > 0 {
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
	for len(p) > 0 && n == 0 && err == nil {
		var there int64
		if there, err = b.arrived(); err != nil {
			return 0, err
		}
		if there > 0 {
			n, err = b.file.ReadAt(p[:min(int64(len(p)), there)], b.at)
			b.at += int64(n)
		} else {
			n, err = b.readDirect(p[:min(int64(len(p)), b.size()-b.at)])
		}
	}
	if n > 0 && !errors.Is(err, datacache.ErrChanged) {
		err = nil
	}
	return n, err
}

// arrived waits for bytes at the body's position, and returns how many lie in b.file; 0: they come from b.direct.
func (b *body) arrived() (there int64, err error) {
	for b.direct == nil || b.from != b.at {
		s := b.f.state()
		end := min(s.size, b.size()-1)
		if s.done {
			end = b.size()
		}
		switch {
		case s.done && s.err != nil && !errors.Is(s.err, datacache.ErrRoom):
			return 0, s.err
		case s.err != nil || !s.done && b.at > s.size+window:
			if err := b.redirect(); err != nil {
				return 0, err
			}
			continue
		case b.at < end:
			opened, err := b.open(s)
			if err != nil {
				return 0, err
			}
			if opened {
				return end - b.at, nil
			}
		}
		if err := b.f.next(b.ctx, s); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// open opens the cache's file. It returns false if the file has just moved to its place: the next state has its path.
func (b *body) open(s state) (bool, error) {
	if b.file != nil {
		return true, nil
	}
	f, err := os.Open(s.path)
	if err != nil {
		if !s.done && errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	b.file = f
	return true, nil
}

// redirect opens the source at the body's position.
func (b *body) redirect() error {
	b.stop()
	for {
		r, err := b.v.src.Open(b.ctx, b.v.files[b.i], b.at)
		if err == nil {
			b.direct, b.from = r, b.at
			break
		}
		if err := b.again(err); err != nil {
			return err
		}
	}
	b.v.mu.Lock()
	if s := b.f.state(); s.done { // without room, nothing else counts it
		b.v.count(b.i, false)
	}
	b.v.mu.Unlock()
	return nil
}

// readDirect reads from the source. A broken connection is continued where it broke; without a byte, it returns 0 and
// no error.
func (b *body) readDirect(p []byte) (int, error) {
	n, err := b.direct.Read(p)
	b.at, b.from = b.at+int64(n), b.from+int64(n)
	b.v.mu.Lock()
	b.v.read.Fetched += int64(n)
	b.v.mu.Unlock()
	if n > 0 {
		b.failed = 0
	}
	if err == nil || errors.Is(err, io.EOF) && b.at == b.size() {
		return n, err
	}
	b.stop()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if n > 0 && !datacache.Permanent(err) {
		return n, nil
	}
	return n, b.again(err)
}

// again waits before the next try of a direct read, or returns the error if another try cannot succeed.
func (b *body) again(err error) error {
	switch b.failed++; {
	case b.ctx.Err() != nil:
		return context.Cause(b.ctx)
	case datacache.Permanent(err):
		return err
	case b.failed >= tries:
		return fmt.Errorf("tried %d times: %w", b.failed, err)
	}
	if wait.For(b.ctx, pause) != nil {
		return context.Cause(b.ctx)
	}
	return nil
}

// stop ends a direct read.
func (b *body) stop() {
	if b.direct != nil {
		_ = b.direct.Close() // it was only read
		b.direct = nil
	}
}

func (b *body) close() {
	if b.file != nil {
		_ = b.file.Close() // likewise
	}
	b.stop()
	b.f.leave()
}
