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

// The server accepts a limited amount of a program's output per second, and a program may print
// more. The backlog on the machine is bounded: if it grows too long, the shipper cuts out its
// middle, and a line in the log says how much is missing. So an offset in the log, which the server
// counts by, differs from the offset in the program's file.

// cut is a piece of output that was left out.
type cut struct {
	At   int64  `json:"at"`   // offset of Line in the log
	Line string `json:"line"` // the line that replaces the piece
	From int64  `json:"from"` // offset in the file where the log continues after Line
}

// cuts holds all pieces that were left out, in order, and how much of the file's beginning was
// released. It is stored beside the file, so that a restarted agent sends the same bytes at the
// same offset.
type cuts struct {
	path string

	mu   sync.Mutex
	list []cut
	gone int64 // released bytes at the beginning of the file
}

type storedCuts struct {
	Cuts []cut `json:"cuts,omitempty"`
	Lost int64 `json:"lost,omitempty"`
}

// openCuts reads the cuts of an earlier agent.
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

// keep writes the cuts atomically. The caller holds mu.
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

// find returns what the log holds at an offset: the rest of a cut's line, or an offset in the file
// and the number of bytes that may follow; most < 0 means all.
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

// end returns the length of the log for a file of that size.
func (c *cuts) end(size int64) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) == 0 {
		return size
	}
	last := c.list[len(c.list)-1]
	return last.At + int64(len(last.Line)) + max(0, size-last.From)
}

// last returns the offset in the log after the last cut's line, or 0 without cuts.
func (c *cuts) last() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) == 0 {
		return 0
	}
	last := c.list[len(c.list)-1]
	return last.At + int64(len(last.Line))
}

// from returns the offset in the file where the log continues after the last cut.
func (c *cuts) from() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) == 0 {
		return 0
	}
	return c.list[len(c.list)-1].From
}

// cutOut cuts the bytes of the file from from to to, including cuts between them. at is the
// offset in the log that corresponds to from.
func (c *cuts) cutOut(at, from, to int64, why string, now time.Time, fresh bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	line := fmt.Sprintf("scrimp: %d bytes of output (%.1f MB) are left out here, at %s: %s\n", to-from,
		float64(to-from)/1e6, now.UTC().Format(time.RFC3339), why)
	if !fresh { // the cut starts in the middle of a line
		line = "\n" + line
	}
	before := c.list
	n := slices.IndexFunc(before, func(c cut) bool { return c.At >= at })
	if n < 0 {
		n = len(before)
	}
	c.list = append(slices.Clone(before[:n]), cut{At: at, Line: line, From: to})
	if err := c.keep(); err != nil {
		c.list = before // a restarted agent that does not know the cut would corrupt the log
		return err
	}
	return nil
}

// release records that the file's bytes before place were released.
func (c *cuts) release(place int64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gone = max(c.gone, place)
	return c.keep()
}

func (c *cuts) released() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// wholeLine returns the first offset from at on where a line starts, or at if no line starts in b,
// the bytes at that offset.
func wholeLine(b []byte, at int64) int64 {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return at + int64(i) + 1
	}
	return at
}
