package tarball

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strconv"
)

// LeastLight is the size from which Light leaves out the content of a file, in bytes. A request for each smaller file
// would take longer than its content.
const LeastLight = 1 << 20

// Records of a file whose content is left out.
const (
	sumRecord   = "SCRIMP.sha256"
	bytesRecord = "SCRIMP.bytes"
)

// Filler writes the content with a SHA-256 and a size to an empty file.
type Filler func(ctx context.Context, sum string, size int64, to *os.File) error

// Light returns the folder without the contents of large files whose SHA-256 is known. A machine that has such a
// content takes it from its own disk, and reads the others with Content.
func (f *Folder) Light() *Folder {
	return &Folder{root: f.root, tag: f.tag + "-light", entries: func(yield func(Entry, error) bool) {
		for e, err := range f.entries {
			if err == nil && e.Sum != "" && e.Header.Typeflag == tar.TypeReg && e.Header.Size >= LeastLight {
				h := *e.Header
				h.PAXRecords = maps.Clone(h.PAXRecords)
				if h.PAXRecords == nil {
					h.PAXRecords = map[string]string{}
				}
				h.PAXRecords[sumRecord], h.PAXRecords[bytesRecord] = e.Sum, strconv.FormatInt(h.Size, 10)
				h.Size = 0
				e = Entry{Header: &h, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(nil)), nil }}
			}
			if !yield(e, err) {
				return
			}
		}
	}}
}

// Content returns the file of the folder whose content has this SHA-256; false: the folder has none.
func (f *Folder) Content(sum string) (e Entry, there bool, err error) {
	for e, err := range f.entries {
		if err != nil {
			return Entry{}, false, err
		}
		if e.Sum == sum && sum != "" && e.Open != nil {
			return e, true, nil
		}
	}
	return Entry{}, false, nil
}

// WriteContent writes the content of a file without its first offset bytes, and returns the CRC-32C of all of it.
func (e Entry) WriteContent(ctx context.Context, to io.Writer, offset int64) (sum uint32, err error) {
	in, err := e.Open()
	if err != nil {
		return 0, err
	}
	defer func() { _ = in.Close() }() // only read
	all := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	out := io.MultiWriter(all, &skip{to: to, left: offset})
	buffer := make([]byte, 256<<10)
	for {
		if err := context.Cause(ctx); err != nil {
			return 0, err
		}
		n, err := in.Read(buffer)
		if _, err := out.Write(buffer[:n]); err != nil {
			return 0, err
		}
		if errors.Is(err, io.EOF) {
			return all.Sum32(), nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// leftOut returns the content that Light has left out of a file.
func leftOut(h *tar.Header) (sum string, size int64, light bool) {
	sum = h.PAXRecords[sumRecord]
	b, err := hex.DecodeString(sum)
	size, sizeErr := strconv.ParseInt(h.PAXRecords[bytesRecord], 10, 64)
	known := err == nil && sizeErr == nil && len(b) == sha256.Size && size >= LeastLight
	return sum, size, known && h.Typeflag == tar.TypeReg && h.Size == 0
}

// fillAll writes the contents that Light has left out.
func fillAll(ctx context.Context, root *os.Root, empty []*tar.Header, fill Filler) error {
	for _, h := range empty {
		if err := fillOne(ctx, root, h, fill); err != nil {
			return fmt.Errorf("fill %s: %w", h.Name, err)
		}
	}
	return nil
}

func fillOne(ctx context.Context, root *os.Root, h *tar.Header, fill Filler) error {
	if fill == nil {
		return errors.New("its content is left out")
	}
	name := filepath.FromSlash(path.Clean(h.Name))
	f, err := root.OpenFile(name, os.O_RDWR|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	sum, size, _ := leftOut(h)
	if err := errors.Join(fill(ctx, sum, size, f), f.Close()); err != nil {
		return err
	}
	return root.Chtimes(name, h.ModTime, h.ModTime)
}
