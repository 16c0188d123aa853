package progress

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"scrimp/internal/lib/confined"
)

// Tail reads the new lines of a file that somebody else writes, from a byte on.
type Tail struct {
	In     confined.Folder // that Path must be reached within; the zero value: anywhere
	Path   string
	Offset int64
	Bars   bool // \r ends a line too: progress bars
	rest   []byte
	skip   bool // in a line that is longer than longestLine
}

const (
	longestLine = 64 << 10
	tailBlock   = 256 << 10
	longestLag  = 16 << 20 // bytes between two looks that are read whole; of more than that
	keptLag     = 1 << 20  // the newest are
)

// Read calls line for each line that was completed since. A line that is too
// long is passed over. A file that is not there yet is empty; one that has
// become shorter is read from its beginning, and of more than longestLag the newest lines are. The slice is valid
// during the call.
// With last, a line without its end is taken too.
func (t *Tail) Read(last bool, line func([]byte)) error {
	f, size, err := t.open()
	if f == nil || err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was read
	if size < t.Offset {
		t.Offset, t.rest, t.skip = 0, nil, false
	}
	if size-t.Offset > longestLag { // the program prints faster than anybody reads
		t.Offset, t.rest, t.skip = size-keptLag, nil, true
	}
	if size > t.Offset {
		if err := t.blocks(f, size, line); err != nil {
			return err
		}
	}
	if last && len(t.rest) > 0 {
		line(t.rest)
		t.rest = nil
	}
	return nil
}

// Skip passes over what the file holds by now.
func (t *Tail) Skip() error {
	f, size, err := t.open()
	if f == nil || err != nil {
		return err
	}
	t.Offset = size
	return f.Close()
}

// open opens the file and says how long it is; nil: it is not there.
func (t *Tail) open() (*os.File, int64, error) {
	f, err := t.In.File(t.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("look at %s: %w", t.Path, err)
	}
	st, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, st.Size(), nil
}

func (t *Tail) blocks(f *os.File, size int64, line func([]byte)) error {
	block := make([]byte, min(size-t.Offset, tailBlock))
	for t.Offset < size {
		n, err := f.ReadAt(block, t.Offset)
		if n == 0 && err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("read %s: %w", t.Path, err)
		}
		t.Offset += int64(n)
		t.split(block[:n], line)
	}
	return nil
}

func (t *Tail) split(b []byte, line func([]byte)) {
	ends := "\n"
	if t.Bars {
		ends = "\r\n"
	}
	for {
		i := bytes.IndexAny(b, ends)
		if i < 0 {
			if !t.skip {
				t.rest = append(t.rest, b...)
			}
			if len(t.rest) > longestLine {
				t.rest, t.skip = nil, true
			}
			return
		}
		switch {
		case t.skip:
			t.skip = false
		case len(t.rest) > 0:
			line(append(t.rest, b[:i]...))
		case i > 0:
			line(b[:i])
		}
		t.rest = t.rest[:0]
		b = b[i+1:]
	}
}
