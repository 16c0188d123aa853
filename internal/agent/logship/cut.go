package logship

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// The server keeps so much of a program's output in a second, and a program may
// print more. What waits on the machine is bounded: where it gets too long its
// middle is cut out, and a line in the log says how much. So a place in the log,
// which the server counts by, is not the same place in the program's file.

// cut is a piece that was left out.
type cut struct {
	At   int64  `json:"at"`   // place of Line in the log
	Line string `json:"line"` // that stands for it
	From int64  `json:"from"` // place in the file at which the log goes on after Line
}

// cuts are all pieces that were left out, in order, and how much of the file's
// beginning was given back to the disk. They are kept beside the file: an agent
// that is started again sends the same bytes from the same place.
type cuts struct {
	path string

	mu   sync.Mutex
	list []cut
	gone int64 // bytes of the file's beginning that are on the disk no more
}

type storedCuts struct {
	Cuts []cut `json:"cuts,omitempty"`
	Lost int64 `json:"lost,omitempty"`
}

// openCuts reads what an earlier agent has cut.
func openCuts(path string) (*cuts, error) {
	c := &cuts{path: path}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	var s storedCuts
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	c.list, c.gone = s.Cuts, s.Lost
	return c, err
}

// keep writes them, so that after a crash the file holds the old or the new ones.
// The caller holds the lock.
func (c *cuts) keep() error {
	b, err := json.Marshal(storedCuts{c.list, c.gone})
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(c.path), filepath.Base(c.path)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), c.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// find returns what stands at a place of the log: the rest of a cut's line, or a
// place in the file and how many bytes may follow from there; most < 0 is all.
func (c *cuts) find(at int64) (line string, file, most int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, _ := slices.BinarySearchFunc(c.list, at, func(c cut, at int64) int {
		if c.At <= at {
			return -1
		}
		return 1
	})
	most = -1
	if n < len(c.list) {
		most = c.list[n].At - at
	}
	if n == 0 {
		return "", at, most
	}
	last := c.list[n-1]
	if in := at - last.At; in < int64(len(last.Line)) {
		return last.Line[in:], 0, 0
	}
	return "", last.From + at - last.At - int64(len(last.Line)), most
}

// end is the place in the log at which a file of that size ends.
func (c *cuts) end(size int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) == 0 {
		return size
	}
	last := c.list[len(c.list)-1]
	return last.At + int64(len(last.Line)) + max(0, size-last.From)
}

// last is the place in the log after the last cut's line; 0 where there is none.
func (c *cuts) last() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) == 0 {
		return 0
	}
	last := c.list[len(c.list)-1]
	return last.At + int64(len(last.Line))
}

// from is the place in the file at which the log goes on after the last cut.
func (c *cuts) from() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) == 0 {
		return 0
	}
	return c.list[len(c.list)-1].From
}

// leaveOut cuts what stands in the file between the place at in the log, which is
// the place from in the file, and the place to in the file, cuts between them included.
func (c *cuts) leaveOut(at, from, to int64, why string, now time.Time, fresh bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	line := fmt.Sprintf("scrimp: %d bytes of output (%.1f MB) are left out here, at %s: %s\n", to-from,
		float64(to-from)/1e6, now.UTC().Format(time.RFC3339), why)
	if !fresh { // it begins in the middle of a line
		line = "\n" + line
	}
	before := c.list
	n := slices.IndexFunc(before, func(c cut) bool { return c.At >= at })
	if n < 0 {
		n = len(before)
	}
	c.list = append(slices.Clone(before[:n]), cut{At: at, Line: line, From: to})
	if err := c.keep(); err != nil {
		c.list = before // a cut that an agent after us does not know would mix up the log
		return err
	}
	return nil
}

// give says that the file's bytes before place are on the disk no more.
func (c *cuts) give(place int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = max(c.gone, place)
	return c.keep()
}

func (c *cuts) given() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// wholeLine returns the first place from at on at which a line begins, or at
// where none does within b, which stands there.
func wholeLine(b []byte, at int64) int64 {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return at + int64(i) + 1
	}
	return at
}
