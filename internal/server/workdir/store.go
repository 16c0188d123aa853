package workdir

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"scrimp/internal/content/tarball"
	"scrimp/internal/lib/confined"
	"scrimp/internal/server/disk"
	"scrimp/internal/server/workdir/flow"
	"scrimp/internal/server/workdir/pack"
	"scrimp/internal/server/workdir/seen"
)

// Folder is the store's folder below the data folder.
const Folder = "folders"

// ErrNone means that the work folder does not exist.
var ErrNone = errors.New("there is no such work folder")

// Store keeps work folders by content. Its folder contains
//
//	objects/AB/SHA256   the content of a file, or the list of a folder
//	jobs/JOB            the folder of a job
//	sent/USER/NAME      an uploaded folder
//	seen/SHA256         what is known of the files of a folder on this host
//	new/                files in progress
//
// Objects never change, and no program writes there: machines get a tar file. So jobs share equal contents. Sweep
// removes objects that no folder needs.
type Store struct {
	Dir  string // of the store
	Room disk.Room

	// sweep is held for reading while one object, or one name of a folder, is written, and for writing while
	// unneeded objects are removed.
	sweep sync.RWMutex

	mu      sync.Mutex
	next    int
	writing map[int]time.Time // start times of the writes in progress
}

// Ref identifies the folder of a job or of an upload.
type Ref struct {
	Tree  string    `json:"tree"`  // SHA-256 of its list
	Bytes int64     `json:"bytes"` // total size of its files
	Disk  int64     `json:"disk"`  // disk usage without sharing, in bytes; 0: from an old release
	Files int64     `json:"files"` // files, folders and links
	Kept  time.Time `json:"kept"`  // wall time
}

// New returns the store of a data folder.
func New(data string, room disk.Room) *Store {
	return &Store{Dir: filepath.Join(data, Folder), Room: room, writing: map[int]time.Time{}}
}

// Recover removes files that a crash left incomplete, and imports the folders of old releases. No one else may write
// to the store meanwhile.
func (s *Store) Recover() error {
	if err := os.RemoveAll(filepath.Join(s.Dir, "new")); err != nil {
		return fmt.Errorf("open %s: %w", s.Dir, err)
	}
	return s.adopt(filepath.Dir(s.Dir))
}

// adopt imports the folders of releases without a store: a plain folder for each job, and uploads.
func (s *Store) adopt(data string) error {
	old := filepath.Join(data, "work")
	jobs, err := os.ReadDir(old)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, job := range jobs {
		from := filepath.Join(old, job.Name())
		if err == nil && job.IsDir() {
			err = s.writeTo(s.job(job.Name()), func(w *writer) error {
				w.old = true
				return w.folder(from, noRule)
			})
		}
	}
	if err != nil {
		return fmt.Errorf("import work folders: %w", err)
	}
	return errors.Join(os.RemoveAll(old), os.RemoveAll(filepath.Join(data, "uploads")))
}

// Tree returns the folder of a job in the form for machines; empty if the job has none.
func (s *Store) Tree(job string) (*tarball.Folder, error) {
	r, err := s.Of(job)
	if errors.Is(err, ErrNone) {
		return tarball.Of("none", func(func(tarball.Entry, error) bool) {}), nil
	}
	if err != nil {
		return nil, err
	}
	return tarball.Of(r.Tree, func(yield func(tarball.Entry, error) bool) {
		list, err := s.Open(r.Tree)
		if err != nil {
			yield(tarball.Entry{}, err)
			return
		}
		defer func() { _ = list.Close() }() // only read
		contents(list, s.Open)(yield)
	}), nil
}

// Of returns the folder of a job. ErrNone: it has none.
func (s *Store) Of(job string) (Ref, error) { return s.read(s.job(job)) }

// give gives a job the folder of another job or of an upload. ErrNone: that folder does not exist.
func (s *Store) give(job, from string) error {
	s.sweep.RLock()
	defer s.sweep.RUnlock()
	r, err := s.read(from)
	if err != nil {
		return err
	}
	return s.name(s.job(job), r)
}

// Again gives a job the folder of another job. ErrNone: that has none.
func (s *Store) Again(job, other string) error { return s.give(job, s.job(other)) }

// Copy gives a job a copy of a folder on this host, without what .scrimpignore and the default patterns exclude, and
// without the data folder.
func (s *Store) Copy(job, from, data string) error {
	return s.writeTo(s.job(job), func(w *writer) error {
		ignored, err := pack.Ignored(from)
		if err != nil {
			return err
		}
		w.seen = seen.Load(filepath.Join(s.Dir, "seen", sumOf([]byte(from))), time.Now)
		err = w.folder(from, func(rel string, isFolder bool) bool {
			return filepath.Join(from, rel) == data || ignored(rel, isFolder)
		})
		if err == nil {
			w.seen.Save()
		}
		return err
	})
}

// Drop removes a job's reference to its folder. The next Sweep removes contents that no other folder needs.
func (s *Store) Drop(job string) error { return drop(s.job(job)) }

func drop(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (s *Store) job(id string) string { return filepath.Join(s.Dir, "jobs", filepath.Base(id)) }

// read returns the folder that a name refers to.
func (s *Store) read(path string) (r Ref, err error) {
	text, err := confined.ReadFile(path, mostName)
	if errors.Is(err, fs.ErrNotExist) {
		return r, ErrNone
	}
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err == nil && !sumName.MatchString(r.Tree) {
		err = errors.New("it does not name a list")
	}
	if err != nil {
		return r, fmt.Errorf("read the reference to the work folder of %s: %w", filepath.Base(path), err)
	}
	return r, nil
}

// mostName bounds the file of a name, in bytes.
const mostName = 1 << 20

// sumName matches a SHA-256 in hex.
var sumName = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (s *Store) object(sum string) string { return filepath.Join(s.Dir, "objects", sum[:2], sum) }

// Open opens the content with that SHA-256.
func (s *Store) Open(sum string) (io.ReadCloser, error) {
	if !sumName.MatchString(sum) {
		return nil, fmt.Errorf("%.70q is not the name of a content", sum)
	}
	return confined.Folder{}.File(s.object(sum)) // does not block on a pipe
}

// name makes a name refer to a folder, atomically. The caller holds sweep for reading.
func (s *Store) name(path string, r Ref) error {
	r.Kept = time.Now().UTC()
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := s.aside()
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// aside creates a file for content that is incomplete.
func (s *Store) aside() (*os.File, error) {
	dir := filepath.Join(s.Dir, "new")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.CreateTemp(dir, "*") // 0600
}

// writeTo stores a folder under a name. If it fails, nothing stays.
func (s *Store) writeTo(path string, fill func(*writer) error) (err error) {
	defer s.begin()()
	w := &writer{s: s}
	defer func() {
		if err != nil {
			w.removeNew()
		}
	}()
	if err := fill(w); err != nil {
		return err
	}
	r, err := w.finish()
	if err != nil {
		return err
	}
	s.sweep.RLock()
	defer s.sweep.RUnlock()
	return s.name(path, r)
}

// begin marks a write of a folder as in progress until done.
func (s *Store) begin() (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	n := s.next
	s.writing[n] = time.Now()
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.writing, n)
	}
}

// since returns a time before the start of all writes in progress.
func (s *Store) since() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldest := time.Now()
	for _, at := range s.writing {
		if at.Before(oldest) {
			oldest = at
		}
	}
	return oldest.Add(-2 * time.Second) // some file systems store times to two seconds
}

// put moves a temporary file into the store under its hash. fresh reports that the store did not have it.
func (s *Store) put(aside, sum string, size int64) (is time.Time, fresh bool, err error) {
	s.sweep.RLock()
	defer s.sweep.RUnlock()
	path, now := s.object(sum), time.Now()
	if s.touch(path, size, now) {
		return now, false, os.Remove(aside)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return now, false, err
	}
	if err := os.Chtimes(aside, now, now); err != nil {
		return now, false, err
	}
	return now, true, os.Rename(aside, path)
}

// place stores a small content under its hash.
func (s *Store) place(sum string, text []byte) (is time.Time, err error) {
	s.sweep.RLock()
	defer s.sweep.RUnlock()
	return flow.Place(s.object(sum), text, s.Room)
}

// has reports whether the store has the content, and protects it from a sweep in progress.
func (s *Store) has(sum string, size int64) (is time.Time, there bool) {
	s.sweep.RLock()
	defer s.sweep.RUnlock()
	now := time.Now()
	return now, s.touch(s.object(sum), size, now)
}

// touch marks an object as needed from now on, if it exists and is whole.
func (s *Store) touch(path string, size int64, now time.Time) bool {
	info, err := os.Stat(path)
	return err == nil && info.Size() == size && os.Chtimes(path, now, now) == nil
}

// sumOf returns the hash of a content.
func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// names calls yield for every name of a folder, with its path.
func (s *Store) names(yield func(path string, r Ref)) error {
	for _, top := range []string{"jobs", "sent"} {
		err := filepath.WalkDir(filepath.Join(s.Dir, top), func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || !e.Type().IsRegular() { // ignore links and pipes
				return err
			}
			r, err := s.read(path)
			if errors.Is(err, ErrNone) {
				return nil
			}
			if err == nil {
				yield(path, r)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Jobs returns the folders of all jobs that have one.
func (s *Store) Jobs() (map[string]Ref, error) {
	all := map[string]Ref{}
	err := s.names(func(path string, r Ref) {
		if job, ok := strings.CutPrefix(path, filepath.Join(s.Dir, "jobs")+string(filepath.Separator)); ok {
			all[job] = r
		}
	})
	return all, err
}
