package workdir

import (
	"archive/tar"
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"scrimp/internal/content/tarball"
	"scrimp/internal/server/disk"
)

// entry is a file, a folder or a link of a work folder.
type entry struct {
	kind byte // as in a tar file: tar.TypeReg, tar.TypeDir or tar.TypeSymlink
	mode fs.FileMode
	size int64
	made time.Time // modification time
	sum  string    // of a file: the SHA-256 of its content, its name in the store
	name string    // path with slashes
	link string
}

// line returns the line of the entry in a folder's list.
func (e *entry) line() string {
	return fmt.Sprintf("%c %o %d %d %s %q %q\n", e.kind, e.mode, e.size, e.made.UnixNano(), cmp.Or(e.sum, "-"), e.name,
		e.link)
}

// readEntry parses the output of line.
func readEntry(line string) (e entry, err error) {
	wrong := func(err error) (entry, error) {
		return entry{}, fmt.Errorf("read the list of a work folder: %.60q: %w", line, err)
	}
	fields := strings.SplitN(line, " ", 6)
	if len(fields) < 6 || len(fields[0]) != 1 {
		return wrong(errors.New("it does not have seven fields"))
	}
	mode, err := strconv.ParseUint(fields[1], 8, 32)
	if err != nil {
		return wrong(err)
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return wrong(err)
	}
	made, err := strconv.ParseInt(fields[3], 10, 64)
	if err != nil {
		return wrong(err)
	}
	name, err := strconv.QuotedPrefix(fields[5])
	if err != nil {
		return wrong(err)
	}
	if e.link, err = strconv.Unquote(strings.TrimPrefix(fields[5][len(name):], " ")); err != nil {
		return wrong(err)
	}
	e.name, err = strconv.Unquote(name)
	e.kind, e.mode, e.size, e.made = fields[0][0], fs.FileMode(mode), size, time.Unix(0, made)
	if e.sum = fields[4]; e.sum == "-" {
		e.sum = ""
	}
	return e, err
}

// lines returns the entries of a list.
func lines(r io.Reader) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		for {
			line, err := in.ReadString('\n')
			if errors.Is(err, io.EOF) && line == "" {
				return
			}
			var e entry
			if err == nil {
				e, err = readEntry(strings.TrimSuffix(line, "\n"))
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// header returns the entry's header for machines.
func (e *entry) header() *tar.Header {
	h := &tar.Header{Typeflag: e.kind, Name: e.name, Linkname: e.link, Mode: int64(e.mode.Perm()), Size: e.size,
		ModTime: e.made, Format: tar.FormatPAX}
	if e.kind == tar.TypeDir {
		h.Name += "/"
	}
	return h
}

// tree collects the entries of a folder.
type tree struct {
	count   count
	entries map[string]*entry
}

// add adds an entry and its parent folders.
func (t *tree) add(e entry) error {
	if err := t.count.add(e.name, e.link, e.size); err != nil {
		return err
	}
	if err := t.above(e); err != nil {
		return err
	}
	switch old := t.entries[e.name]; {
	case old == nil:
	case old.kind == tar.TypeDir && e.kind == tar.TypeDir:
		t.count.files, t.count.disk = t.count.files-1, t.count.disk-disk.OnDisk(0)
	default:
		return fmt.Errorf("%s is in the folder twice", quote(e.name))
	}
	if t.entries == nil {
		t.entries = map[string]*entry{}
	}
	t.entries[e.name] = &e
	return nil
}

// above adds the parent folders of an entry if they are missing.
func (t *tree) above(e entry) error {
	dir := path.Dir(e.name)
	if dir == "." {
		return nil
	}
	switch up := t.entries[dir]; {
	case up == nil:
		return t.add(entry{kind: tar.TypeDir, mode: 0o700, made: e.made, name: dir})
	case up.kind != tar.TypeDir:
		return fmt.Errorf("%s is below %s, which is not a folder", quote(e.name), quote(dir))
	}
	return nil
}

// write writes the list in order of paths: a folder comes before its contents.
func (t *tree) write(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(t.entries)) {
		_, _ = out.WriteString(t.entries[name].line()) // Flush returns errors
	}
	return out.Flush()
}

// contents returns the entries of a list for a tar file.
func contents(list io.Reader, open func(sum string) (io.ReadCloser, error)) iter.Seq2[tarball.Entry, error] {
	return func(yield func(tarball.Entry, error) bool) {
		for e, err := range lines(list) {
			is := tarball.Entry{Header: e.header(), Sum: e.sum}
			if e.kind == tar.TypeReg {
				is.Open = func() (io.ReadCloser, error) { return open(e.sum) }
			}
			if !yield(is, err) {
				return
			}
		}
	}
}
