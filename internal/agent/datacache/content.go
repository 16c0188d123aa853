package datacache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// Copied counts the large files of a work folder.
type Copied struct {
	Files, Bytes   int64
	Hits, HitBytes int64 // of these, the files that the cache had
}

// contents is the source of files that are known by their SHA-256, wherever they lie.
type contents struct {
	open func(ctx context.Context) (io.ReadCloser, error)
}

func (contents) Address() string                      { return "scrimp:content" }
func (contents) List(context.Context) ([]File, error) { return nil, errors.ErrUnsupported }
func (contents) Requests() int64                      { return 0 }
func (contents) Close() error                         { return nil }

func (s contents) Open(ctx context.Context, _ File, offset int64) (io.ReadCloser, error) {
	r, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := io.CopyN(io.Discard, r, offset); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func contentFile(sum string, bytes int64) File { return File{Name: sum, Bytes: bytes, Version: sum} }

// Copy writes the content with a SHA-256 and a size to an empty file. It takes the content from the cache if it is
// there, and otherwise from open. It verifies the content while it copies. hit reports that the cache had it. A content
// that does not fit into the cache goes past it.
func (c *Cache) Copy(ctx context.Context, sum string, bytes int64, to *os.File,
	open func(ctx context.Context) (io.ReadCloser, error)) (hit bool, err error) {
	for range relists {
		if hit, err = c.copy(ctx, sum, bytes, to, open); !errors.Is(err, ErrChanged) {
			break
		}
		if _, err := to.Seek(0, io.SeekStart); err != nil {
			return false, err
		}
		if err := to.Truncate(0); err != nil {
			return false, err
		}
	}
	return hit, err
}

func (c *Cache) copy(ctx context.Context, sum string, bytes int64, to *os.File,
	open func(ctx context.Context) (io.ReadCloser, error)) (hit bool, err error) {
	h := &Hold{c: c}
	defer h.Release()
	src, file := contents{open: open}, contentFile(sum, bytes)
	c.alias(sum, bytes, sourceOf(src, file))
	digest, err := "", error(nil)
	if c.missing(src, []File{file}, h) > 0 { // to reserve room evicts others, even if it cannot suffice
		err = c.fits(bytes)
	}
	if err == nil {
		digest, hit, _, err = c.ensure(ctx, src, file, nil, h, nil)
	}
	var from io.ReadCloser
	switch {
	case errors.Is(err, ErrRoom):
		from, err = open(ctx)
	case err == nil && digest != sum:
		c.drop(digest)
		err = fmt.Errorf("%w: its SHA-256 is not %s", ErrChanged, sum)
	case err == nil:
		from, err = openPlain(c.object(digest))
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	hash := sha256.New()
	both := io.MultiWriter(to, hash)
	n, err := io.CopyBuffer(struct{ io.Writer }{both}, struct{ io.Reader }{from}, make([]byte, copySize))
	if err == nil && (n != bytes || hex.EncodeToString(hash.Sum(nil)) != sum) {
		c.drop(sum)
		err = fmt.Errorf("%w: its SHA-256 is not %s", ErrChanged, sum)
	}
	return hit, err
}

// alias lets a source have a content that the cache has from another source.
func (c *Cache) alias(sum string, bytes int64, source string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.kept[sum]; e != nil && e.Bytes == bytes && c.entries[source] == nil {
		c.note(&entry{Source: source, Digest: sum, Bytes: bytes, Stamp: e.Stamp, Boot: e.Boot, Made: e.Made})
	}
}

// drop removes a content.
func (c *Cache) drop(digest string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(map[string]bool{digest: true})
	_ = os.Remove(c.object(digest)) // the next fetch replaces it anyway
}

// Add copies a file of this machine into the cache, for the next program that needs the same content. It does so only
// if it fits without evicting anything. A file that changes meanwhile is not added.
func (c *Cache) Add(ctx context.Context, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !c.spare(info.Size()) {
		return nil
	}
	hash := sha256.New()
	n, err := io.CopyBuffer(struct{ io.Writer }{hash}, io.NewSectionReader(f, 0, info.Size()), make([]byte, copySize))
	if err != nil || n != info.Size() {
		return errors.Join(err, ctx.Err())
	}
	h := &Hold{c: c}
	defer h.Release()
	sum := hex.EncodeToString(hash.Sum(nil))
	src := contents{open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(f, 0, n)), nil
	}}
	c.alias(sum, n, sourceOf(src, contentFile(sum, n)))
	digest, _, _, err := c.ensure(ctx, src, contentFile(sum, n), nil, h, nil)
	if err == nil && digest != sum {
		c.drop(digest)
		err = ErrChanged
	}
	return err
}

// spare reports whether so many bytes fit without an eviction.
func (c *Cache) spare(bytes int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	most, spare, err := c.room()
	return err == nil && c.total+c.flying+bytes <= most && bytes <= spare
}
