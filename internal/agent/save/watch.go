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

// view is what a poll of the checkpoint folder showed.
type view struct {
	files uint64    // stands for names, sizes and times of what a checkpoint holds
	aside uint64    // the same for what is being written aside: *.tmp and hidden files
	any   bool      // whether there are files
	last  time.Time // newest time of a file that a checkpoint holds
}

// aside reports whether a file or folder of this name is no part of a
// checkpoint: programs write aside and rename.
func aside(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".tmp")
}

// Aside lists the patterns of names that aside knows, for those who copy.
func Aside() []string { return []string{".*", "*.tmp"} }

// scan looks at a folder. It reads no file.
func scan(dir confined.Folder) (view, error) {
	tree, err := dir.Open()
	if err != nil {
		return view{}, fmt.Errorf("%w: %w", ErrFolder, err)
	}
	files, asides := fnv.New64a(), fnv.New64a()
	var v view
	err = tree.Walk(".", func(rel string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // renamed or removed just now: the next poll sees it
		case rel == ".":
			return err
		case err != nil:
			return fs.SkipDir // a folder that cannot be listed: who copies it says why
		}
		info, err := d.Info()
		if err != nil {
			return nil // as above
		}
		into := files
		if inAside(rel) {
			into = asides
		}
		if d.IsDir() {
			return nil // its files say all
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

// watch decides when the folder of an unmodified program holds a complete
// checkpoint: it has changed, and nothing has been written for a moment, neither
// into it nor aside.
type watch struct {
	quiet    time.Duration // for how long nothing must be written
	spacing  time.Duration // between two captures
	now      view          // at the last poll
	polled   time.Time     // last poll
	began    time.Time     // the save began after this; zero: nothing is new
	changed  time.Time     // last change of the files
	touched  time.Time     // last change of anything
	captured uint64        // what the newest capture holds
	at       time.Time     // of the newest capture
}

// asideLimit ends the wait for a file that is written aside without end, a log for instance.
const asideLimit = time.Minute

// restless is how many quiet times a folder may keep changing before it is
// captured between two changes: a program that saves all the time must not lose everything.
const restless = 20

// poll takes what a poll showed. It returns whether to capture now; the work up to began is then in it.
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
	case !w.began.IsZero() && now.Sub(later(w.began, w.at)) >= restless*w.quiet:
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

// took notes that a capture of files was made at now.
func (w *watch) took(now time.Time, files uint64) {
	w.captured, w.at = files, now
	w.began = time.Time{}
	if w.now.files != files { // it went on
		w.began = w.polled
	}
}

// Ending is what is known when the program is gone and its folder is looked at for the last time.
type Ending struct {
	changed  bool      // the folder differs from the newest capture
	Asked    time.Time // when we signalled; zero: it ended by itself
	Killed   bool      // we had to kill it
	Status   int
	Signaled bool      // the main process died of a signal
	told     bool      // the program says itself when it is complete
	last     time.Time // newest change of the folder
	Ended    time.Time // when the program was gone
	quiet    time.Duration
	Heard    bool       // its gang was being ended, which a program may hear of from another rank's
	Said     *Announced // a save of which nothing is captured; nil: there is none
}

// Announced is a save that the program has said is complete.
type Announced struct {
	Meta Meta
	By   time.Time // a file that was written later need not belong to it
}

// announced reports whether what the program left is the save that it announced last. Where it
// heard of the end and went, it began no other.
func (e Ending) announced() bool {
	return e.Said != nil && (e.Heard && !e.Signaled || !e.last.After(e.Said.By))
}

// failed reports whether the program ended by itself and not in order.
func (e Ending) failed() bool { return e.Asked.IsZero() && !e.Heard && e.Status != 0 }

// endsOnTerm is the status of a program that ends in order because of SIGTERM.
const endsOnTerm = 128 + 15

// whole reports whether what the program left is a complete checkpoint, so
// that it may be published. A program that died in the middle of a save leaves a
// torn one, which no hash can tell: better the one before it.
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
		return true // it took our signal and ended in order
	case !e.Asked.IsZero():
		// The main process died of our signal, a shell for instance. What was
		// written later was written by one that handled it.
		return rested || e.last.After(e.Asked.Add(10*time.Millisecond))
	case e.Status == 0 || e.Heard && e.Status == endsOnTerm:
		return true
	}
	return rested && !e.told
}
