// Package tarball sends a folder as one tar file with resumption: the same folder gives the same bytes, so after a
// break the receiver asks for the rest.
package tarball

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Folder is the content of a folder at the time of the scan.
type Folder struct {
	root    string // folder to read; empty: the entries open their own content
	entries iter.Seq2[Entry, error]
	tag     string
}

// Entry is a file, a folder or a link.
type Entry struct {
	Header *tar.Header
	Sum    string                        // SHA-256 of the content in hexadecimal; "": unknown
	Open   func() (io.ReadCloser, error) // opens the content of a file that is in no folder
}

// Of returns a Folder that is not on disk. tag must change with the content of its entries.
func Of(tag string, entries iter.Seq2[Entry, error]) *Folder {
	return &Folder{tag: tag, entries: entries}
}

// Scan lists a folder: files, folders and links with their permissions and times. It leaves out everything else
// (sockets, devices). A missing folder is empty.
func Scan(root string) (*Folder, error) {
	var list []Entry
	sum := sha256.New()
	err := filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if at == root && errors.Is(err, fs.ErrNotExist) {
			return fs.SkipAll
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, at)
		if err != nil || rel == "." {
			return err
		}
		h, err := header(at, filepath.ToSlash(rel), d)
		if err != nil || h == nil {
			return err
		}
		list = append(list, Entry{Header: h})
		_, _ = fmt.Fprintf(sum, "%q %q %o %d %d\n", h.Name, h.Linkname, h.Mode, h.Size, h.ModTime.UnixNano())
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", root, err)
	}
	f := &Folder{tag: hex.EncodeToString(sum.Sum(nil)[:16]), entries: each(list)}
	if len(list) > 0 { // otherwise it may be missing
		f.root = root
	}
	return f, nil
}

// each iterates over a list.
func each(list []Entry) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// header describes a file, a folder or a link; nil for anything else.
func header(at, rel string, d fs.DirEntry) (*tar.Header, error) {
	info, err := d.Info()
	if err != nil {
		return nil, err
	}
	h := &tar.Header{Name: rel, Mode: int64(info.Mode().Perm()), ModTime: info.ModTime(), Format: tar.FormatPAX}
	switch info.Mode().Type() {
	case 0:
		h.Typeflag, h.Size = tar.TypeReg, info.Size()
	case fs.ModeDir:
		h.Typeflag, h.Name = tar.TypeDir, rel+"/"
	case fs.ModeSymlink:
		h.Typeflag = tar.TypeSymlink
		if h.Linkname, err = os.Readlink(at); err != nil {
			return nil, err
		}
	default:
		return nil, nil
	}
	return h, nil
}

// Tag changes with the bytes that Write writes.
func (f *Folder) Tag() string { return f.tag }

// Write writes the tar file without its first offset bytes, and returns the CRC-32C of all of it. It follows no link
// of the folder.
func (f *Folder) Write(ctx context.Context, to io.Writer, offset int64) (sum uint32, err error) {
	var root *os.Root
	if f.root != "" {
		if root, err = os.OpenRoot(f.root); err != nil {
			return 0, err
		}
		defer func() { _ = root.Close() }() // only read
	}
	all := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	out := bufio.NewWriterSize(io.MultiWriter(all, &skip{to: to, left: offset}), 256<<10)
	t := tar.NewWriter(out)
	for e, err := range f.entries {
		if err := cmp.Or(context.Cause(ctx), err); err != nil {
			return 0, err
		}
		if err := writeOne(t, root, e); err != nil {
			return 0, fmt.Errorf("send %s: %w", e.Header.Name, err)
		}
	}
	err = errors.Join(t.Close(), out.Flush())
	return all.Sum32(), err
}

func writeOne(t *tar.Writer, root *os.Root, e Entry) error {
	if err := t.WriteHeader(e.Header); err != nil || e.Header.Typeflag != tar.TypeReg {
		return err
	}
	open := e.Open
	if open == nil {
		open = func() (io.ReadCloser, error) { return root.Open(filepath.FromSlash(e.Header.Name)) }
	}
	in, err := open()
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	_, err = io.CopyN(t, in, e.Header.Size)
	return err
}

// skip drops the first bytes.
type skip struct {
	to   io.Writer
	left int64
}

func (s *skip) Write(p []byte) (int, error) {
	n := min(s.left, int64(len(p)))
	s.left -= n
	if n == int64(len(p)) {
		return len(p), nil
	}
	m, err := s.to.Write(p[n:])
	return int(n) + m, err
}

// Unpack fills a folder from a tar file, with permissions and times. For any names and links, it writes nothing
// outside, and refuses a relative link that leaves the folder.
func Unpack(ctx context.Context, from io.Reader, to string) error {
	return UnpackLight(ctx, from, to, nil)
}

// UnpackLight unpacks a tar file that Light may have made. fill writes the contents that the tar file leaves out.
func UnpackLight(ctx context.Context, from io.Reader, to string, fill Filler) error {
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	var folders []*tar.Header // set last: adding files changes their times, and some may not be writable
	var empty []*tar.Header   // filled once the sender is done: it may limit how many transfers run at once
	end := &zeros{from: from}
	t := tar.NewReader(end)
	for {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := unpackOne(root, h, t); err != nil {
			return fmt.Errorf("unpack %s: %w", h.Name, err)
		}
		if h.Typeflag == tar.TypeDir {
			folders = append(folders, h)
		}
		if _, _, light := leftOut(h); light {
			empty = append(empty, h)
		}
	}
	if _, err := io.Copy(io.Discard, end); err != nil { // the end of the file, and anything after it
		return err
	}
	if end.n < 1024 { // two empty blocks end a tar file
		return io.ErrUnexpectedEOF
	}
	if err := fillAll(ctx, root, empty, fill); err != nil {
		return err
	}
	for i := len(folders) - 1; i >= 0; i-- {
		name := filepath.FromSlash(path.Clean(folders[i].Name))
		if err := root.Chtimes(name, folders[i].ModTime, folders[i].ModTime); err != nil {
			return err
		}
		if err := root.Chmod(name, fs.FileMode(folders[i].Mode).Perm()); err != nil {
			return err
		}
	}
	return nil
}

// zeros counts the zeros at the end of what was read so far.
type zeros struct {
	from io.Reader
	n    int64
}

func (z *zeros) Read(p []byte) (int, error) {
	n, err := z.from.Read(p)
	rest := len(bytes.TrimRight(p[:n], "\x00"))
	if rest > 0 {
		z.n = 0
	}
	z.n += int64(n - rest)
	return n, err
}

func unpackOne(root *os.Root, h *tar.Header, from io.Reader) error {
	name := filepath.FromSlash(path.Clean(h.Name))
	if !filepath.IsLocal(name) {
		return errors.New("it leads out of its folder")
	}
	switch h.Typeflag {
	case tar.TypeDir:
		// The owner can write for now; otherwise the files below could not be created.
		mode := fs.FileMode(h.Mode).Perm() | 0o700
		if err := root.MkdirAll(name, mode); err != nil {
			return err
		}
		return root.Chmod(name, mode)
	case tar.TypeSymlink:
		if climbs(h.Name, h.Linkname) {
			return fmt.Errorf("it is a link to %s, which leads out of the folder: copy what it leads to, or leave it out "+
				"with .scrimpignore", h.Linkname)
		}
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		return unpackFile(root, name, h, from)
	}
	return errors.New("it is neither a file, a folder nor a link")
}

// climbs reports whether a relative link leaves the folder. An absolute link names a place on the machine, and Unpack
// never reads or writes through it.
func climbs(name, target string) bool {
	if path.IsAbs(target) {
		return false
	}
	end := path.Join(path.Dir(path.Clean(name)), target)
	return end == ".." || strings.HasPrefix(end, "../")
}

func unpackFile(root *os.Root, name string, h *tar.Header, from io.Reader) error {
	mode := fs.FileMode(h.Mode).Perm() | 0o200
	f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, from)
	err = errors.Join(err, f.Chmod(mode)) // regardless of the umask, and also if the file existed
	if err == nil && n != h.Size {
		err = io.ErrUnexpectedEOF
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return root.Chtimes(name, h.ModTime, h.ModTime) // build tools compare times
}
