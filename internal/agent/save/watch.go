package save

import (
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"strings"
	"time"

	"scrimp/internal/lib/confined"
)

// view is the result of listing the checkpoint folder.
type view struct {
	files uint64    // hash of the names, sizes and times of the checkpoint's files
	aside uint64    // the same for files that are written aside: *.tmp and hidden files
	any   bool      // the folder has something to save: files, or it is saved whole
	last  time.Time // newest modification time of a checkpoint file
}

// aside reports whether a file or folder of this name is not part of a checkpoint: programs write
// under such a name and then rename.
func aside(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".tmp")
}

// Aside returns the name patterns that aside matches, for code that copies the folder.
func Aside() []string { return []string{".*", "*.tmp"} }

// scan lists a folder and reads no file. With whole, every file is part of the checkpoint.
func scan(dir confined.Folder, whole bool) (view, error) {
	tree, err := dir.Open()
	if err != nil {
		return view{}, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	files, asides := fnv.New64a(), fnv.New64a()
	v := view{any: whole}
	err = tree.Walk(".", func(rel string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // renamed or removed in the meantime: the next poll sees it
		case rel == ".":
			return err
		case err != nil:
			return fs.SkipDir // unreadable folder: the copy reports why
		}
		info, err := d.Info()
		if err != nil {
			return nil // as above
		}
		into := files
		if !whole && inAside(rel) {
			into = asides
		}
		if d.IsDir() {
			return nil // the hash needs only its files
		}
		if into == files {
			v.any = true
			if info.ModTime().After(v.last) {
				v.last = info.ModTime()
			}
		}
		// a hash never fails
		_, _ = fmt.Fprintf(into, "%s\x00%d\x00%d\x00%d\x00", rel, info.Size(), info.ModTime().UnixNano(), info.Mode())
		return nil
	})
	if err = errors.Join(err, tree.Close()); err != nil {
		return view{}, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	v.files, v.aside = files.Sum64(), asides.Sum64()
	return v, nil
}

func inAside(rel string) bool {
	for part := range strings.SplitSeq(rel, "/") {
		if aside(part) {
			return true
		}
	}
	return false
}

// watch decides when the folder of an unmodified program holds a complete checkpoint: the folder
// has changed, and for a moment nothing was written, neither into it nor aside.
type watch struct {
	quiet    time.Duration // how long nothing may be written before a capture
	spacing  time.Duration // minimum time between captures
	now      view          // result of the last poll
	polled   time.Time     // time of the last poll
	began    time.Time     // time after which the save started; zero: nothing is new
	noticed  time.Time     // when the listing began that showed the last change of the checkpoint's files
	changed  time.Time     // last change of the checkpoint's files
	touched  time.Time     // last change of any file
	captured uint64        // hash of the files in the newest capture
	at       time.Time     // time of the newest capture
}

// asideLimit ends the wait for a file that is written aside forever, such as a log.
const asideLimit = time.Minute

// maxRestless is how many quiet times a folder may keep changing before it is captured anyway. A
// program that saves continuously must not lose everything.
const maxRestless = 20

// poll processes a view and returns whether to capture now. The capture then contains the work up to began.
func (w *watch) poll(now time.Time, v view) (capture bool) {
	if !w.polled.IsZero() && (v.files != w.now.files || v.aside != w.now.aside) {
		if w.began.IsZero() {
			w.began = w.polled
		}
		w.touched = now
		if v.files != w.now.files {
			w.changed = now
		}
	}
	w.now, w.polled = v, now
	switch {
	case v.files == w.captured || !v.any:
		if now.Sub(w.touched) >= w.quiet {
			w.began = time.Time{}
		}
		return false
	case now.Sub(w.at) < w.spacing:
		return false
	case !w.began.IsZero() && now.Sub(later(w.began, w.at)) >= maxRestless*w.quiet:
		return true
	case now.Sub(w.changed) < w.quiet:
		return false
	case now.Sub(w.touched) < w.quiet:
		return now.Sub(w.changed) >= asideLimit
	}
	return true
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// took records a capture of files at now.
func (w *watch) took(now time.Time, files uint64) {
	w.captured, w.at = files, now
	w.began = time.Time{}
	if w.now.files != files { // the save continued
		w.began = w.polled
	}
}

// Ending describes how the program ended, for the last examination of its folder.
type Ending struct {
	changed  bool      // the folder differs from the newest capture
	Asked    time.Time // when the agent signalled; zero: the program ended by itself
	Killed   bool      // the agent had to kill it
	Status   int
	Signaled bool      // the main process died of a signal
	told     bool      // the program announces complete saves
	last     time.Time // newest change of the folder
	Ended    time.Time // when the program ended
	quiet    time.Duration
	Heard    bool       // the gang was ending; a program may learn that from another rank
	Said     *Announced // an announced save that is not captured yet; nil: none
}

// Announced is a save that the program announced as complete.
type Announced struct {
	Meta Meta
	By   time.Time // a file written after this may belong to another save
}

// announced reports whether the folder holds the save that the program announced last. A program
// that learned of the end and exited started no other save.
func (e Ending) announced() bool {
	return e.Said != nil && (e.Heard && !e.Signaled || !e.last.After(e.Said.By))
}

// failed reports whether the program ended by itself with an error.
func (e Ending) failed() bool { return e.Asked.IsZero() && !e.Heard && e.Status != 0 }

// before reports whether the signal that asked the program to end killed it, and its folder did not change after that.
func (e Ending) before() bool { return !e.Asked.IsZero() && e.Signaled && e.last.Before(e.Asked) }

// late reports whether the program failed, or was killed by that signal, some time after the last change of its folder.
func (e Ending) late() bool {
	return e.failed() && e.Ended.Sub(e.last) > e.quiet || e.before() && e.Asked.Sub(e.last) > e.quiet
}

// endsOnTerm is the exit status of a program that handled SIGTERM.
const endsOnTerm = 128 + 15

// whole reports whether the folder holds a complete checkpoint that may be published. A program
// that died in the middle of a save leaves a torn one, which no hash can detect, so the previous
// checkpoint is better.
func (e Ending) whole() bool {
	if !e.changed {
		return false
	}
	rested := e.Ended.Sub(e.last) >= e.quiet // it was not saving when it died
	switch {
	case e.announced():
		return true
	case e.Killed:
		return rested && !e.told
	case !e.Asked.IsZero() && !e.Signaled:
		return true // it handled the signal and exited
	case !e.Asked.IsZero():
		// The signal killed the main process, a shell for instance. Newer files were written by a
		// process that handled the signal.
		return rested || e.last.After(e.Asked.Add(10*time.Millisecond))
	case e.Status == 0 || e.Heard && e.Status == endsOnTerm:
		return true
	}
	return rested && !e.told
}
