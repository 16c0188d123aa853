// Package compare finds files with the same contents in folders and buckets.
package compare

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"slices"
	"strings"

	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/lib/quiet"
	"scrimp/internal/work/storage"
)

// FolderID begins the ID of a folder that counts as a whole, before its digest.
const FolderID = "folder "

// head is how many bytes of files of one size are compared before their whole contents.
const head = 64 << 10

// Duplicates compares the contents of files of one size: folders by SHA-256, buckets by the MD5 that the store lists.
// It returns how many files it could not compare.
func Duplicates(ctx context.Context, places []storage.Place, c *storage.Candidates,
	tick func(files, bytes int64)) (list []storage.Duplicates, left int64, err error) {
	roots := map[int]*os.Root{}
	defer func() {
		for _, r := range roots {
			_ = r.Close()
		}
	}()
	var files, bytes int64
	sum := func(f storage.File, most int64) string {
		if p := places[f.Place]; p.Store != storage.Local || p.Known || strings.HasPrefix(f.ID, FolderID) {
			return f.ID
		}
		if roots[f.Place] == nil {
			root, err := os.OpenRoot(places[f.Place].Name)
			if err != nil {
				return ""
			}
			roots[f.Place] = root
		}
		digest, n := hash(ctx, roots[f.Place], f, most)
		bytes += n
		tick(files, bytes)
		return digest
	}
	for _, group := range c.SameSize() {
		// Of a file in a place that was not scanned only the digest of the whole is known.
		whole := slices.ContainsFunc(group, func(f storage.File) bool { return places[f.Place].Known })
		first := [][]storage.File{group}
		if !whole {
			first = split(group, func(f storage.File) string { return sum(f, head) }, &left)
		}
		for _, some := range first {
			if ctx.Err() != nil {
				return nil, 0, context.Cause(ctx)
			}
			if !whole && (some[0].Bytes <= head || places[some[0].Place].Store != storage.Local) {
				list = append(list, storage.Duplicates{Digest: sum(some[0], head), Files: some})
				continue
			}
			var no int64
			for _, same := range split(some, func(f storage.File) string { files++; return sum(f, f.Bytes) }, &no) {
				list = append(list, storage.Duplicates{Digest: sum(same[0], head), Files: same})
			}
			left += no
		}
	}
	return list, left, ctx.Err()
}

// split groups files by key, in the order of their first file. It counts files without a key and leaves out groups of
// one. Files of folders and of buckets never share a group, because their digests differ.
func split(files []storage.File, key func(storage.File) string, left *int64) (groups [][]storage.File) {
	at := map[string]int{}
	for _, f := range files {
		k := key(f)
		if k == "" {
			*left++
			continue
		}
		i, ok := at[k]
		if !ok {
			i = len(groups)
			at[k] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], f)
	}
	return slices.DeleteFunc(groups, func(g []storage.File) bool { return len(g) < 2 })
}

// hash returns the digest of the first bytes of a file, as format.File.Content does, or "" if it cannot be read or has
// changed. It reads only files
// whose time of last use stays as it was: otherwise the next scan would find them in use.
func hash(ctx context.Context, root *os.Root, f storage.File, most int64) (digest string, read int64) {
	in, err := root.OpenFile(f.Path, quiet.Flag, 0)
	if err != nil {
		return "", 0
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() != f.Bytes || !info.ModTime().Equal(f.Changed) {
		return "", 0
	}
	var content format.File
	piece := make([]byte, 1<<20)
	for read < most && ctx.Err() == nil {
		h := sha256.New()
		n, err := io.CopyBuffer(struct{ io.Writer }{h}, io.LimitReader(in, min(most-read, format.PartSize)), piece)
		if read += n; err != nil {
			return "", read
		}
		if n == 0 {
			break
		}
		content.Parts = append(content.Parts, format.Part{Sum: hex.EncodeToString(h.Sum(nil)), Size: n})
	}
	return content.Content(), read
}
