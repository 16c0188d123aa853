package storage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"slices"

	"scrimp/internal/lib/quiet"
	"scrimp/internal/work/storage"
)

// head is how many bytes of files of one size are compared before their whole contents.
const head = 64 << 10

// duplicates compares the contents of files of one size: folders by SHA-256, buckets by the MD5 that the store lists.
// It returns how many files it could not compare.
func (s *scanner) duplicates(ctx context.Context, places []storage.Place, c *storage.Candidates,
	tick func(files, bytes int64)) (list []storage.Duplicates, left int64, err error) {
	roots := map[int]*os.Root{}
	defer func() {
		for _, r := range roots {
			_ = r.Close()
		}
	}()
	var files, bytes int64
	sum := func(f storage.File, most int64) string {
		if places[f.Place].Store != storage.Local {
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
		for _, some := range split(group, func(f storage.File) string { return sum(f, head) }, &left) {
			if ctx.Err() != nil {
				return nil, 0, context.Cause(ctx)
			}
			if some[0].Bytes <= head || places[some[0].Place].Store != storage.Local {
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

// hash returns the SHA-256 of the first bytes of a file, or "" if it cannot be read or has changed. It reads only files
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
	h, piece := sha256.New(), make([]byte, 1<<20)
	for most > 0 && ctx.Err() == nil {
		n, err := in.Read(piece[:min(most, int64(len(piece)))])
		h.Write(piece[:n])
		read, most = read+int64(n), most-int64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", read
		}
	}
	return hex.EncodeToString(h.Sum(nil)), read
}
