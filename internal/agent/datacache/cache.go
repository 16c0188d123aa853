// Package datacache keeps the files of jobs' inputs on a machine's disk, by content, so that the next program on the
// machine does not read them from their store again.
package datacache

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"scrimp/internal/lib/durable"
	"scrimp/internal/lib/inode"
	"scrimp/internal/lib/money"
)

// Errors that callers test for with errors.Is.
var (
	ErrRoom    = errors.New("the machine's cache has no room for it")
	ErrChanged = errors.New("it changed while it was read")
	ErrBusy    = errors.New("another agent uses the folder")
	ErrInput   = errors.New("not an input that scrimp can bring")
)

// Names in the cache's folder.
const (
	objectsName = "objects"     // files by digest, readable by all programs of the machine
	partialName = "partial"     // files that are not complete yet, by source
	indexName   = "index.jsonl" // one line for each entry
	lockName    = "lock"
)

// mostUses bounds the uses that an entry remembers.
const mostUses = 16

// entry is a file of a source, and where its content lies.
type entry struct {
	Source   string      `json:"source"` // hash of the store's address, the file's name there, its size and its version
	Digest   string      `json:"digest"` // SHA-256 of the content, in hexadecimal
	Bytes    int64       `json:"bytes"`
	Stamp    string      `json:"stamp"`             // identity of the file when its content was verified
	Boot     string      `json:"boot"`              // boot of the machine then: a crash may have torn files written before
	Gigabyte *money.Rate `json:"gigabyte,omitzero"` // price of reading 1e9 bytes from the source; nil: unknown
	Made     time.Time   `json:"made"`
	Uses     []time.Time `json:"uses,omitempty"` // after the first, the newest last
}

// Cache is a folder of files by content. Its methods may be called from several goroutines.
type Cache struct {
	dir    string
	boot   string
	limits Limits
	now    func() time.Time
	lock   *os.File

	mu      sync.Mutex
	index   *os.File                 // open for appending
	entries map[string]*entry        // by source
	kept    map[string]*entry        // the newest entry of each content, by digest
	total   int64                    // bytes of all contents
	holds   map[string]int           // programs that may read a content, by digest
	flights map[string]chan struct{} // closed once nobody fetches the source any more
	flying  int64                    // bytes of the files that are being fetched
	pending int64                    // of those, bytes that are not on the disk yet
}

// Open opens the cache in a folder, which no other agent may use meanwhile. It removes incomplete files of an earlier
// boot and files that no entry names. boot is empty if the system does not identify boots; then every file is verified
// before its first use.
func Open(dir, boot string, limits Limits, now func() time.Time) (*Cache, error) {
	c := &Cache{dir: dir, boot: boot, limits: limits, now: now, entries: map[string]*entry{}, kept: map[string]*entry{},
		holds: map[string]int{}, flights: map[string]chan struct{}{}}
	if err := c.open(); err != nil {
		if c.lock != nil {
			_ = c.lock.Close() // nothing was written to it
		}
		return nil, fmt.Errorf("open the cache of data %s: %w", dir, err)
	}
	return c, nil
}

func (c *Cache) open() (err error) {
	for _, d := range []struct {
		name string
		mode fs.FileMode
	}{{"", 0o711}, {objectsName, 0o711}, {partialName, 0o700}} {
		path := filepath.Join(c.dir, d.name)
		if err := errors.Join(os.MkdirAll(path, d.mode), os.Chmod(path, d.mode)); err != nil {
			return err
		}
	}
	if c.lock, err = os.OpenFile(filepath.Join(c.dir, lockName), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if err := syscall.Flock(int(c.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.Join(ErrBusy, err)
	}
	if err := c.readIndex(); err != nil {
		return err
	}
	if err := errors.Join(c.removePartials(), c.removeOrphans()); err != nil {
		return err
	}
	return c.writeIndex()
}

// readIndex reads the entries. Of two lines for a source the later counts. A crash may leave a torn line, which names
// no file: readIndex skips it.
func (c *Cache) readIndex() error {
	text, err := os.ReadFile(filepath.Join(c.dir, indexName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) != nil || e.Source == "" || !isDigest(e.Digest) || e.Bytes < 0 {
			continue
		}
		c.entries[e.Source] = &e
	}
	return nil
}

func isDigest(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32
}

// removePartials removes incomplete files of an earlier boot, because a crash of the machine may have torn them. What a
// killed agent has written is complete up to its end.
func (c *Cache) removePartials() error {
	names, err := os.ReadDir(filepath.Join(c.dir, partialName))
	if err != nil {
		return err
	}
	for _, n := range names {
		if n.Name() != c.boot || c.boot == "" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(c.dir, partialName, n.Name())))
		}
	}
	return errors.Join(err, os.MkdirAll(filepath.Dir(c.partial("x")), 0o700))
}

// removeOrphans removes files that no entry names, and entries without their file.
func (c *Cache) removeOrphans() error {
	named := map[string]bool{}
	for source, e := range c.entries {
		if info, err := os.Lstat(c.object(e.Digest)); err != nil || info.Size() != e.Bytes {
			delete(c.entries, source)
			continue
		}
		named[e.Digest] = true
		c.add(e)
	}
	return filepath.WalkDir(filepath.Join(c.dir, objectsName), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || named[d.Name()] {
			return err
		}
		return os.Remove(path)
	})
}

// writeIndex replaces the index by one without superseded lines, and opens it for appending.
func (c *Cache) writeIndex() error {
	var b bytes.Buffer
	for _, source := range slices.Sorted(maps.Keys(c.entries)) {
		line, err := json.Marshal(c.entries[source])
		if err != nil {
			return err
		}
		b.Write(append(line, '\n'))
	}
	path := filepath.Join(c.dir, indexName)
	if err := durable.Replace(path, b.Bytes()); err != nil {
		return err
	}
	if c.index != nil {
		_ = c.index.Close() // the new file replaces it
	}
	var err error
	c.index, err = os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	return err
}

// add adds an entry in memory. The caller holds the lock.
func (c *Cache) add(e *entry) {
	if c.kept[e.Digest] == nil {
		c.total += e.Bytes
	}
	c.entries[e.Source], c.kept[e.Digest] = e, e
}

// forget removes contents from memory. The caller holds the lock.
func (c *Cache) forget(digests map[string]bool) {
	for d := range digests {
		if e := c.kept[d]; e != nil {
			c.total -= e.Bytes
			delete(c.kept, d)
		}
	}
	maps.DeleteFunc(c.entries, func(_ string, e *entry) bool { return digests[e.Digest] })
}

// note adds an entry to the index. If that fails, for example on a full disk, a restarted agent fetches the file
// again. The caller holds the lock.
func (c *Cache) note(e *entry) {
	c.add(e)
	if line, err := json.Marshal(e); err == nil {
		_, _ = c.index.Write(append(line, '\n'))
	}
}

// Close writes the uses of the files, and lets another agent use the folder.
func (c *Cache) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.writeIndex()
	return errors.Join(err, c.index.Close(), c.lock.Close())
}

// Dir returns the folder of the cache.
func (c *Cache) Dir() string { return c.dir }

// object returns the path of a content.
func (c *Cache) object(digest string) string {
	return filepath.Join(c.dir, objectsName, digest[:2], digest)
}

// partial returns the path of a file of a source that is not complete.
func (c *Cache) partial(source string) string {
	boot := c.boot
	if boot == "" {
		boot = "unknown"
	}
	return filepath.Join(c.dir, partialName, boot, source)
}

// stampOf returns the identity of a file. It differs once anything has changed the file; no program can set the time
// of the last change.
func stampOf(info fs.FileInfo) string {
	return fmt.Sprintf("%s/%d/%d", inode.Of(info), info.ModTime().UnixNano(), info.Size())
}
