// Package seen remembers the contents of the files of a folder by size, times and inode, so that files that have not
// changed are not read again.
package seen

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"scrimp/internal/lib/durable"
	"scrimp/internal/lib/inode"
)

// settled is the age of a file's last change from which on another change shows: some file systems store times to two
// seconds.
const settled = 3 * time.Second

// keep is how long a folder that nobody copies is remembered.
const keep = 30 * 24 * time.Hour

// Files knows the contents of files. Its methods may be called from several goroutines. A nil Files knows none.
type Files struct {
	path  string
	clock func() time.Time
	old   map[string]string // from an earlier copy: SHA-256 by stamp

	mu  sync.Mutex
	now map[string]string // of the files of this copy
}

// Load reads what an earlier copy of a folder has stored at a path. It returns an empty Files if nothing is there, or
// if what is there is damaged.
func Load(path string, clock func() time.Time) *Files {
	f := &Files{path: path, clock: clock, old: map[string]string{}, now: map[string]string{}}
	text, err := os.ReadFile(path)
	if err != nil {
		return f
	}
	sum, body, _ := bytes.Cut(text, []byte("\n"))
	if string(sum) != checksum(body) {
		return f
	}
	for line := range strings.Lines(string(body)) {
		if stamp, digest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok {
			f.old[stamp] = digest
		}
	}
	return f
}

func checksum(body []byte) string { return fmt.Sprintf("%x", sha256.Sum256(body)) }

// stamp differs once a file has another content. No program can set the time of the last change that it contains.
func stamp(info fs.FileInfo) string {
	return fmt.Sprintf("%s/%d/%d", inode.Of(info), info.ModTime().UnixNano(), info.Size())
}

// Of returns the SHA-256 of a file that has not changed since it was read.
func (f *Files) Of(info fs.FileInfo) (sum string, ok bool) {
	if f == nil {
		return "", false
	}
	at := stamp(info)
	if sum, ok = f.old[at]; ok {
		f.mu.Lock()
		f.now[at] = sum
		f.mu.Unlock()
	}
	return sum, ok
}

// Add remembers the SHA-256 of a file, unless it changed between before and after its reading, or so recently that
// another change could go unnoticed.
func (f *Files) Add(before, after fs.FileInfo, sum string) {
	if f == nil || stamp(before) != stamp(after) || f.clock().Sub(inode.Of(after).Changed) < settled {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now[stamp(after)] = sum
}

// Save stores what is known of the files of this copy, and forgets folders that nobody has copied for 30 days. If it
// fails, the next copy reads the files again.
func (f *Files) Save() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if maps.Equal(f.old, f.now) {
		return
	}
	var body bytes.Buffer
	for _, at := range slices.Sorted(maps.Keys(f.now)) {
		fmt.Fprintf(&body, "%s %s\n", at, f.now[at])
	}
	dir := filepath.Dir(f.path)
	if errors.Join(os.MkdirAll(dir, 0o700), durable.Replace(f.path, append([]byte(checksum(body.Bytes())+"\n"),
		body.Bytes()...))) != nil {
		_ = os.Remove(f.path)
	}
	others, _ := os.ReadDir(dir)
	for _, o := range others {
		if info, err := o.Info(); err == nil && f.clock().Sub(info.ModTime()) > keep {
			_ = os.Remove(filepath.Join(dir, o.Name()))
		}
	}
}
