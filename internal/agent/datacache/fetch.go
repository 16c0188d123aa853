package datacache

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // stores list it; it is no protection
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"scrimp/internal/content/blob"
	"scrimp/internal/lib/blockhash"
	"scrimp/internal/lib/money"
	"scrimp/internal/lib/wait"
)

// fetch reads a file from its source and puts it into the cache.
func (c *Cache) fetch(ctx context.Context, src Source, f File, source string, gigabyte *money.Rate, h *Hold,
	watch Watch) (digest string, sent int64, err error) {
	path := c.partial(source)
	p, err := openPartial(path, f)
	if err != nil {
		return "", 0, err
	}
	pending := f.Bytes - p.size
	c.mu.Lock()
	err = c.reserve(f.Bytes, p.size)
	c.mu.Unlock()
	if err != nil {
		return "", 0, errors.Join(err, p.Close())
	}
	defer func() {
		c.mu.Lock()
		c.flying -= f.Bytes
		c.pending -= pending
		c.mu.Unlock()
	}()
	p.wrote = func(n int64) {
		c.mu.Lock()
		c.pending -= n
		c.mu.Unlock()
		pending -= n
		sent += n
		watch.at(path, p.size)
	}
	watch.at(path, p.size)
	err = p.fill(ctx, src, f)
	if errors.Is(err, ErrChanged) || errors.Is(err, syscall.ENOSPC) {
		err = errors.Join(err, os.Remove(path))
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = fmt.Errorf("%w: the machine's disk is full: %w", ErrRoom, err)
	}
	if err := errors.Join(err, p.Chmod(0o444), p.Close()); err != nil {
		return "", sent, err
	}
	digest = hex.EncodeToString(p.sum.Sum(nil)) // p is closed: it has seen all bytes
	return digest, sent, c.publish(path, &entry{Source: source, Digest: digest, Bytes: f.Bytes, Boot: c.boot,
		Gigabyte: gigabyte, Made: c.now()}, h)
}

// publish moves a complete file to its name, and holds it.
func (c *Cache) publish(path string, e *entry, h *Hold) error {
	to := c.object(e.Digest)
	dir := filepath.Dir(to)
	if err := errors.Join(os.MkdirAll(dir, 0o711), os.Chmod(dir, 0o711)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// Another source may have the same content already; its entries keep the file that they were verified with.
	if other := c.kept[e.Digest]; other != nil && c.untouched(other) {
		e.Stamp = other.Stamp
	}
	if e.Stamp != "" {
		if err := os.Remove(path); err != nil {
			return err
		}
	} else {
		if err := os.Rename(path, to); err != nil {
			return err
		}
		info, err := os.Lstat(to)
		if err != nil {
			return err
		}
		e.Stamp = stampOf(info)
	}
	c.note(e)
	c.hold(h, e.Digest)
	return nil
}

// partial is a file that grows until it is complete.
type partial struct {
	*os.File
	sum   hash.Hash
	md5   hash.Hash // nil: the store lists none
	both  *blockhash.Stream
	size  int64
	wrote func(int64)
}

// openPartial opens the file, and reads what an earlier fetch has left of it.
func openPartial(path string, f File) (*partial, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrPermission) { // complete, and not moved
		if err = os.Remove(path); err == nil {
			file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
		}
	}
	if err != nil {
		return nil, err
	}
	p := &partial{File: file, sum: sha256.New()}
	p.both = blockhash.New(p.sum)
	if len(f.MD5) > 0 {
		p.md5 = md5.New() //nolint:gosec // as above
		p.both = blockhash.New(p.sum, p.md5)
	}
	info, err := file.Stat()
	if err == nil && info.Size() > f.Bytes {
		err = file.Truncate(0)
	}
	if err == nil && info.Size() > 0 && info.Size() <= f.Bytes {
		p.size, err = io.CopyBuffer(struct{ io.Writer }{p.both}, struct{ io.Reader }{file}, make([]byte, copySize))
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return p, nil
}

// Close waits for the hashes, too.
func (p *partial) Close() error {
	p.both.Close()
	return p.File.Close()
}

// Permanent reports whether another try to read a file cannot succeed.
func Permanent(err error) bool {
	return errors.Is(err, ErrChanged) || errors.Is(err, fs.ErrNotExist) || blob.Missing(err) ||
		errors.Is(err, syscall.ENOSPC) || errors.Is(err, fs.ErrPermission) || blob.Denied(err)
}

// fill reads the rest of the file from its source. A broken connection is continued where it broke.
func (p *partial) fill(ctx context.Context, src Source, f File) error {
	for failed := 0; ; {
		before := p.size
		var err error
		if p.size < f.Bytes || f.Bytes == 0 { // otherwise an earlier fetch has read it to its end
			err = p.more(ctx, src, f)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil && p.size == f.Bytes:
			p.both.Wait()
			if p.md5 != nil && !bytes.Equal(p.md5.Sum(nil), f.MD5) {
				return fmt.Errorf("%w: its MD5 is not the one that the store lists", ErrChanged)
			}
			return nil
		case err == nil && p.size > f.Bytes:
			return ErrChanged
		case errors.Is(err, fs.ErrNotExist), blob.Missing(err):
			return errors.Join(ErrChanged, err)
		case Permanent(err):
			return err
		case err == nil:
			err = io.ErrUnexpectedEOF
		}
		if failed++; p.size > before {
			failed = 1
		}
		if failed >= tries {
			return fmt.Errorf("tried %d times: %w", failed, err)
		}
		if wait.For(ctx, pause) != nil {
			return context.Cause(ctx)
		}
	}
}

// more reads from the source until it ends or breaks.
func (p *partial) more(ctx context.Context, src Source, f File) (err error) {
	within, moved, end := wait.Moving(ctx, stall)
	defer end()
	r, err := src.Open(within, f, p.size)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for p.size <= f.Bytes {
		b := p.both.Block(f.Bytes - p.size + 1)
		n, err := r.Read(b)
		if n > 0 {
			moved()
			if _, bad := p.Write(b[:n]); bad != nil {
				p.both.Put(b, 0)
				return bad
			}
		}
		p.both.Put(b, n)
		if p.size += int64(n); n > 0 {
			p.wrote(int64(n))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return ErrChanged
}
