package datacache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"scrimp/internal/lib/money"
)

// Bounds on fetching.
const (
	atOnce   = 8                // files of an input
	tries    = 5                // in a row without a byte
	stall    = 60 * time.Second // without a byte, until a try has failed
	relists  = 3                // if files change meanwhile
	copySize = 1 << 20
)

// pause is the time between two tries.
var pause = time.Second

// Read is what bringing an input took.
type Read struct {
	Files    int64         // of the input that are there: all of them, or after an error those so far
	Bytes    int64         // of these
	Hits     int64         // files that were not read from the source
	HitBytes int64         // bytes of these
	Fetched  int64         // bytes that the source sent, with those of broken tries
	Requests int64         // to the store
	Took     time.Duration // until all files were there
	// Digest identifies the content: the SHA-256 of a single file, else of the list of names, sizes and digests. It is
	// empty after an error.
	Digest string
}

// Hold keeps files in the cache while a program may read them.
type Hold struct {
	c       *Cache
	mu      sync.Mutex
	digests []string
}

// Release allows the cache to evict the files. Only its first call counts.
func (h *Hold) Release() {
	if h == nil {
		return
	}
	h.mu.Lock()
	digests := h.digests
	h.digests = nil
	h.mu.Unlock()
	h.c.mu.Lock()
	defer h.c.mu.Unlock()
	for _, d := range digests {
		if h.c.holds[d]--; h.c.holds[d] <= 0 {
			delete(h.c.holds, d)
		}
	}
}

// Bring fills a new folder dir with links to the files of a source, and fetches those that the cache lacks. gigabyte is
// the price of reading 1e9 bytes from the source; nil: unknown. The files stay until the caller releases the hold,
// which is never nil. Read is what it took so far, also after an error.
func (c *Cache) Bring(ctx context.Context, src Source, gigabyte *money.Rate, dir string) (Read, *Hold, error) {
	h := &Hold{c: c}
	begin := c.now()
	var r Read
	var err error
	for range relists {
		h.Release()
		sent := r.Fetched
		r = Read{}
		err = c.bring(ctx, src, gigabyte, dir, h, &r)
		r.Fetched += sent
		if !errors.Is(err, ErrChanged) {
			break
		}
	}
	r.Requests, r.Took = src.Requests(), max(0, c.now().Sub(begin))
	if err != nil {
		h.Release()
	}
	return r, h, err
}

func (c *Cache) bring(ctx context.Context, src Source, gigabyte *money.Rate, dir string, h *Hold, r *Read) error {
	files, err := Files(ctx, src)
	if err != nil {
		return err
	}
	if err := c.fits(c.missing(src, files, h)); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	digests := make(map[string]string, len(files)) // by name
	work := make(chan File)
	for range min(atOnce, len(files)) {
		wg.Go(func() {
			for f := range work {
				digest, hit, sent, err := c.ensure(within, src, f, gigabyte, h, nil)
				if err == nil {
					err = link(c.object(digest), dir, f.Name)
				}
				mu.Lock()
				r.Fetched += sent
				if err == nil {
					digests[f.Name] = digest
					r.Files, r.Bytes = r.Files+1, r.Bytes+f.Bytes
				}
				if err == nil && hit {
					r.Hits, r.HitBytes = r.Hits+1, r.HitBytes+f.Bytes
				}
				mu.Unlock()
				if err != nil {
					cancel(fmt.Errorf("%s: %w", f.Name, err))
				}
			}
		})
	}
	for _, f := range files {
		select {
		case work <- f:
			continue
		case <-within.Done():
		}
		break
	}
	close(work)
	wg.Wait()
	if err := context.Cause(within); err != nil {
		return err
	}
	r.Digest = DigestOfAll(files, digests)
	return nil
}

// DigestOfAll identifies the content of an input by the SHA-256 of each file. files are sorted by name.
func DigestOfAll(files []File, digests map[string]string) string {
	if len(files) == 1 {
		return digests[files[0].Name]
	}
	sum := sha256.New()
	for _, f := range files {
		fmt.Fprintf(sum, "%q %d %s\n", f.Name, f.Bytes, digests[f.Name])
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// missing returns the bytes of the files that the cache does not have, and holds the others.
func (c *Cache) missing(src Source, files []File, h *Hold) (bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range files {
		if e := c.entries[sourceOf(src, f)]; e != nil {
			c.hold(h, e.Digest)
		} else {
			bytes += f.Bytes
		}
	}
	return bytes
}

// link makes the program's path to a file.
func link(object, dir, name string) error {
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.Symlink(object, path)
}

// sourceOf identifies a version of a file of a source.
func sourceOf(src Source, f File) string {
	name := f.Name
	if b, ok := src.(*bucket); ok {
		name = b.key(name)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %q", src.Address(), name, f.Bytes, f.Version))
	return hex.EncodeToString(sum[:])
}

// ensure returns the digest of a file's content once the cache has it, verified and held. hit reports that this caller
// did not fetch it, and sent is the number of bytes that the source has sent to it. Of several callers for the same
// file one fetches it, and the others wait.
func (c *Cache) ensure(ctx context.Context, src Source, f File, gigabyte *money.Rate, h *Hold, watch Watch) (
	digest string, hit bool, sent int64, err error) {
	source := sourceOf(src, f)
	for {
		c.mu.Lock()
		e := c.entries[source]
		if e != nil && c.untouched(e) {
			e.used(c.now())
			c.hold(h, e.Digest)
			c.mu.Unlock()
			return e.Digest, true, 0, nil
		}
		flight := c.flights[source]
		if flight == nil {
			c.flights[source] = make(chan struct{})
			c.mu.Unlock()
			break
		}
		c.mu.Unlock()
		select {
		case <-flight: // there now, or its fetcher gave up
		case <-ctx.Done():
			return "", false, 0, context.Cause(ctx)
		}
	}
	defer func() {
		c.mu.Lock()
		close(c.flights[source])
		delete(c.flights, source)
		c.mu.Unlock()
	}()
	if digest, ok := c.verify(source, h); ok {
		return digest, true, 0, nil
	}
	digest, sent, err = c.fetch(ctx, src, f, source, gigabyte, h, watch)
	return digest, false, sent, err
}

// hold counts a program that may read a content. The caller holds the lock.
func (c *Cache) hold(h *Hold, digest string) {
	c.holds[digest]++
	h.mu.Lock()
	h.digests = append(h.digests, digest)
	h.mu.Unlock()
}

// untouched reports whether nothing has changed the file of an entry since it was verified.
func (c *Cache) untouched(e *entry) bool {
	info, err := os.Lstat(c.object(e.Digest))
	return err == nil && info.Mode().IsRegular() && e.Boot == c.boot && c.boot != "" && stampOf(info) == e.Stamp
}

// verify reads the file of an entry and compares it with its digest. It removes a wrong one.
func (c *Cache) verify(source string, h *Hold) (digest string, ok bool) {
	c.mu.Lock()
	e := c.entries[source]
	if e != nil {
		digest = e.Digest
		c.hold(h, digest) // so that it stays meanwhile
	}
	c.mu.Unlock()
	if e == nil {
		return "", false
	}
	path := c.object(digest)
	before, err := os.Lstat(path)
	var got string
	if err == nil && before.Mode().IsRegular() {
		got, err = digestOf(path)
	}
	after, statErr := os.Lstat(path)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && statErr == nil && got == digest && stampOf(before) == stampOf(after) {
		e.Stamp, e.Boot = stampOf(after), c.boot
		e.used(c.now())
		c.note(e)
		return digest, true
	}
	c.forget(map[string]bool{digest: true})
	_ = os.Remove(path) // the new file replaces it anyway
	return "", false
}

// openPlain opens a file that is no link.
func openPlain(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
}

func digestOf(path string) (digest string, err error) {
	f, err := openPlain(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	_, err = io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{f}, make([]byte, copySize))
	return hex.EncodeToString(sum.Sum(nil)), err
}
