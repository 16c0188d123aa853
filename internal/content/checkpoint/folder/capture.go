// Package folder copies a folder that a program is writing, as of one moment, and puts a copy in the place of a
// folder.
package folder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"scrimp/internal/lib/confined"
)

// captureMark is in the name of every folder that holds a capture.
const captureMark = ".scrimp-capture-"

// tick is longer than the time steps of file systems (4 to 10 ms): a file written within it may change again without
// a visible difference.
var tick = 20 * time.Millisecond

// ErrChanged says that a folder changed while it was read.
var ErrChanged = errors.New("changed while it was read")

// Tries bounds the captures of a changing folder.
const Tries = 5

// Capturer takes consistent copies of a folder that a program writes. Use one for all captures of a folder, because
// it learns which files the program overwrites in place. It is not safe for concurrent use.
type Capturer struct {
	confined.Folder
	Aside  string   // folder for the copies, on the same file system; empty: the parent of this one
	Ignore []string // names or patterns as in path.Match, of an element or of the path below Dir
	Copy   bool     // copy every file: for programs that write through a memory map

	noClone bool
	seen    map[string]identity // by path, at the last capture
	inPlace map[string]bool     // paths that the program has overwritten in place
}

// Capture is a copy of a folder. The caller discards it.
type Capture struct {
	Bytes  int64 // sum of the file sizes
	Copied int64 // bytes that were really copied, neither linked nor cloned
	Took   time.Duration

	aside string
	Files []Source
	left  Left
}

// Left names what the copy lacks because it could not be copied; empty: nothing.
func (c *Capture) Left() string { return c.left.String() }

// Size returns the sum of the files' sizes in bytes.
func (c *Capture) Size() int64 { return c.Bytes }

// Discard removes the copy.
func (c *Capture) Discard() error {
	if c.aside == "" {
		return nil
	}
	if err := os.RemoveAll(c.aside); err != nil {
		return fmt.Errorf("discard capture: %w", err)
	}
	return nil
}

// Take captures a folder once.
func Take(ctx context.Context, dir string) (*Capture, error) {
	return (&Capturer{Folder: confined.Folder{Path: dir}}).Capture(ctx)
}

// Capture copies the folder as cheaply as its file system can: by cloning if possible (xfs, btrfs), otherwise by hard
// links, with a real copy of files that the program overwrites in place, that were written just now, or that cannot
// be linked. It returns ErrChanged if the folder does not come to rest.
//
// A hard link does not protect from writes in place. Publish detects those by size and time and returns ErrChanged;
// later captures copy the file.
func (c *Capturer) Capture(ctx context.Context) (*Capture, error) {
	begin := time.Now()
	for try := 0; ; try++ {
		capture, err := c.once(ctx)
		if err == nil {
			capture.Took = time.Since(begin)
			return capture, nil
		}
		if !errors.Is(err, ErrChanged) || try == Tries {
			return nil, fmt.Errorf("capture %s: %w", c.Path, err)
		}
	}
}

func (c *Capturer) once(ctx context.Context) (_ *Capture, err error) {
	dir := c.Path
	if c.Within == "" {
		if dir, err = filepath.EvalSymlinks(c.Path); err != nil {
			return nil, err
		}
	}
	tree, err := c.Open()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	found, left, err := scan(tree, dir, c.Ignore)
	if err != nil {
		return nil, err
	}
	made := &Capture{left: left}
	if c.Aside == "" {
		made.aside, err = MakeAside(dir, captureMark)
	} else {
		made.aside, err = os.MkdirTemp(c.Aside, "."+filepath.Base(dir)+captureMark)
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, made.Discard())
		}
	}()
	if err := c.takeAll(ctx, found, made); err != nil {
		return nil, err
	}
	again, _, err := scan(tree, dir, c.Ignore)
	if err != nil {
		return nil, err
	}
	if !slices.EqualFunc(found, again, func(a, b Source) bool {
		return a.Path == b.Path && a.Mode == b.Mode && a.Target == b.Target && a.state == b.state
	}) {
		return nil, ErrChanged
	}
	c.remember(found)
	copied := func(f Source) bool { return f.in == nil }
	if len(made.left) > 0 && !slices.ContainsFunc(found, copied) { // the previous checkpoint is better than an empty one
		return nil, fmt.Errorf("no file can be copied: %v", made.left)
	}
	made.Files = slices.DeleteFunc(found, func(f Source) bool { return f.Mode.IsRegular() && !copied(f) })
	return made, nil
}

// takeAll copies the found files to the capture's folder, except those that nobody may read.
func (c *Capturer) takeAll(ctx context.Context, found []Source, made *Capture) error {
	for i := range found {
		if err := ctx.Err(); err != nil {
			return err
		}
		f := &found[i]
		if !f.Mode.IsRegular() {
			continue
		}
		to := filepath.Join(made.aside, fmt.Sprintf("%d", i))
		copied, err := c.take(f, to)
		if unreadable(err) {
			made.left.add(f.Path, errUnreadable)
			continue
		}
		if err != nil {
			return err
		}
		f.from, f.in = to, nil
		made.Bytes += f.Size
		made.Copied += copied
	}
	return nil
}

// take copies one file and returns the number of bytes copied.
func (c *Capturer) take(f *Source, to string) (_ int64, err error) {
	in, err := f.open()
	if err != nil {
		return 0, moved(err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if stat, err := in.Stat(); err != nil || stateOf(stat) != f.state {
		return 0, errors.Join(err, ErrChanged)
	}
	if !c.noClone {
		done, err := clone(in, to)
		if done || err != nil {
			return 0, moved(err)
		}
		c.noClone = true
	}
	c.learn(f)
	if !c.Copy && !c.inPlace[f.Path] && time.Since(f.Modified).Abs() > tick && link(in, f.from, to) == nil {
		f.linked = true
		stat, err := os.Lstat(to)
		if err == nil && stateOf(stat) != f.state {
			err = ErrChanged
		}
		return 0, moved(err)
	}
	if err := room(in, filepath.Dir(to)); err != nil {
		return 0, err
	}
	return f.Size, moved(copyFile(in, to, f.Size))
}

// learn notes whether the program has overwritten a file in place since the last capture.
func (c *Capturer) learn(f *Source) {
	last, known := c.seen[f.Path]
	if !known || last.inode != f.state.inode || last == f.state {
		return
	}
	if c.inPlace == nil {
		c.inPlace = map[string]bool{}
	}
	c.inPlace[f.Path] = true
}

func copyFile(in *os.File, to string, size int64) (err error) {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := copyData(out, in); err != nil {
		return err
	}
	stat, err := in.Stat()
	if err == nil && stat.Size() != size {
		err = ErrChanged
	}
	return errors.Join(err, out.Truncate(size))
}

// copyWhole copies a file, with holes as zeros.
func copyWhole(out, in *os.File) error {
	_, err := io.Copy(out, in)
	return err
}

// remember notes the files of a capture, so that the next one can tell which are overwritten in place.
func (c *Capturer) remember(files []Source) {
	c.seen = map[string]identity{}
	for _, f := range files {
		if f.Mode.IsRegular() {
			c.seen[f.Path] = f.state
		}
	}
}

// Unchanged returns ErrChanged if a file that is not our own copy was written to.
func Unchanged(files []Source) error {
	for _, f := range files {
		if !f.linked {
			continue
		}
		stat, err := f.lstat()
		if err != nil {
			return fmt.Errorf("file %s: %w", f.Path, moved(err))
		}
		if stateOf(stat) != f.state {
			return fmt.Errorf("file %s: %w: the program overwrote it in place", f.Path, ErrChanged)
		}
	}
	return nil
}
