// Package datadigest identifies the content of a folder as the cache of data identifies an input.
package datadigest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"path/filepath"
	"runtime"
	"sync"

	"scrimp/internal/agent/datacache"
	"scrimp/internal/lib/quiet"
)

// copySize bounds the memory of a processor.
const copySize = 1 << 20

// Folder returns the digest that Bring gives to the files below a folder. It hashes on all processors, and leaves the
// time of the files' last use as it is where the system allows that. datacache.ErrChanged: a file changed meanwhile.
func Folder(ctx context.Context, dir string) (digest string, err error) {
	src, err := datacache.OpenFolder(dir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	files, err := datacache.Files(ctx, src)
	if err != nil {
		return "", err
	}
	within, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var mu sync.Mutex
	next := 0
	digests := make(map[string]string, len(files))
	for range min(runtime.GOMAXPROCS(0), len(files)) {
		wg.Go(func() {
			memory := make([]byte, copySize)
			for within.Err() == nil {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= len(files) {
					return
				}
				sum, err := file(filepath.Join(dir, filepath.FromSlash(files[i].Name)), files[i].Bytes, memory)
				if err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				digests[files[i].Name] = sum
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := context.Cause(within); err != nil {
		return "", err
	}
	return datacache.DigestOfAll(files, digests), nil
}

// file returns the SHA-256 of a file of a size.
func file(path string, size int64, memory []byte) (digest string, err error) {
	f, err := quiet.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	sum := sha256.New()
	n, err := io.CopyBuffer(struct{ io.Writer }{sum}, struct{ io.Reader }{f}, memory)
	if err == nil && n != size {
		err = datacache.ErrChanged
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}
