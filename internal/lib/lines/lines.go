// Package lines limits the length of lines in text from outside: a reader of CSV or JSON keeps a whole line in memory,
// however long it is.
package lines

import (
	"bytes"
	"fmt"
	"io"
)

// Most is the largest number of bytes in a line of a table.
const Most = 1 << 20

// Reader reads from in. It ends with an error at a line of more than Most bytes.
func Reader(in io.Reader) io.Reader { return &reader{in: in} }

type reader struct {
	in io.Reader
	n  int // bytes of the current line so far
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	for rest := p[:n]; ; {
		end := bytes.IndexByte(rest, '\n')
		length := end
		if end < 0 {
			length = len(rest)
		}
		if r.n += length; r.n > Most {
			return 0, fmt.Errorf("a line has more than %d bytes: this is not a table", Most)
		}
		if end < 0 {
			return n, err
		}
		r.n, rest = 0, rest[end+1:]
	}
}
