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

// Tail reads the new lines of a file that another process writes.
type Tail struct {
	In     confined.Folder // folder that must contain Path; the zero value allows any
	Path   string
	Offset int64
	Bars   bool // \r also ends a line, for progress bars
	rest   []byte
	skip   bool // inside a line longer than longestLine
}

const (
	maxLine   = 64 << 10
	tailBlock = 256 << 10
	maxLag    = 16 << 20 // largest number of bytes to read completely in one call; beyond it,
	keptLag   = 1 << 20  // only the newest bytes
)

// Read calls line for each line completed since the last call. It skips lines that are too long. A
// missing file counts as empty, and Read starts at the beginning of a file that has become shorter.
// If more than maxLag bytes are new, it reads only the newest keptLag. The slice is valid only
// during the call. With last, it also reads an unfinished line.
func (t *Tail) Read(last bool, line func([]byte)) error {
	f, size, err := t.open()
	if f == nil || err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	if size < t.Offset {
		t.Offset, t.rest, t.skip = 0, nil, false
	}
	if size-t.Offset > maxLag { // the program prints faster than the agent reads
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

// Skip skips the present content of the file.
func (t *Tail) Skip() error {
	f, size, err := t.open()
	if f == nil || err != nil {
		return err
	}
	t.Offset = size
	return f.Close()
}

// open opens the file and returns its size. The file is nil if it does not exist.
func (t *Tail) open() (*os.File, int64, error) {
	f, err := t.In.File(t.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("open %s: %w", t.Path, err)
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
			if len(t.rest) > maxLine {
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
