// Package object stores manifests and the parts of files as the objects of a bucket, and checks every part that it
// reads back.
package object

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"gocloud.dev/blob"

	ours "scrimp/internal/content/blob"
	"scrimp/internal/content/blob/httpblob"
	"scrimp/internal/content/checkpoint/format"
)

// ErrTaken says that a name that may be created only once holds something else.
var ErrTaken = errors.New("the name is taken")

// workersFor returns the number of parts in flight, all of which are in memory: for a folder as many as processors
// can hash (4 hash 7 GB/s), for a server on this machine a few more, since it works while they hash, and for a remote
// store enough to fill the network during round trips.
func workersFor(b *blob.Bucket) int {
	hashing := max(2, min(4, runtime.GOMAXPROCS(0)))
	if b.As(new(string)) {
		return hashing
	}
	var server *httpblob.Bucket
	if b.As(&server) && server.Nearby() {
		return hashing + 1
	}
	return 8
}

// Store holds the objects of a bucket below a prefix.
type Store struct {
	PartSize int64 // Upload cuts files at its multiples

	bucket  *blob.Bucket
	prefix  string
	workers int
}

// Open returns the store of the objects below prefix. It reads and writes nothing yet. The caller keeps the bucket
// open while it uses the store.
func Open(bucket *blob.Bucket, prefix string) *Store {
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	return &Store{PartSize: format.PartSize, bucket: bucket, prefix: prefix, workers: workersFor(bucket)}
}

// Each calls do with the name and the size of every object below folder.
func (s *Store) Each(ctx context.Context, folder string, do func(name string, size int64)) error {
	at := s.prefix + folder + "/"
	for it := s.bucket.List(&blob.ListOptions{Prefix: at}); ; {
		o, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("list %s: %w", folder, err)
		}
		do(strings.TrimPrefix(o.Key, at), o.Size)
	}
}

// Names returns the names below folder, sorted.
func (s *Store) Names(ctx context.Context, folder string) ([]string, error) {
	var names []string
	if err := s.Each(ctx, folder, func(name string, _ int64) { names = append(names, name) }); err != nil {
		return nil, err
	}
	slices.Sort(names)
	return names, nil
}

// Read returns a whole small object.
func (s *Store) Read(ctx context.Context, key string) (data []byte, err error) {
	r, err := s.bucket.NewReader(ctx, s.prefix+key, nil)
	if err != nil {
		return nil, readError(key, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if r.Size() > format.MostBytes {
		return nil, tooLarge(key)
	}
	data, err = io.ReadAll(io.LimitReader(r, format.MostBytes+1))
	if err == nil && len(data) > format.MostBytes {
		return nil, tooLarge(key)
	}
	return data, readError(key, err)
}

func tooLarge(key string) error {
	return fmt.Errorf("read %s: %w: it has more than %d MiB", key, format.ErrDamaged, format.MostBytes>>20)
}

// readError distinguishes damage, which no retry repairs, from a store that does not answer.
func readError(key string, err error) error {
	switch {
	case err == nil:
		return nil
	case ours.Missing(err):
		return fmt.Errorf("read %s: %w: it is missing", key, format.ErrDamaged)
	case errors.Is(err, syscall.EIO), ours.Damaged(err):
		return fmt.Errorf("read %s: %w: %w", key, format.ErrDamaged, err)
	}
	return fmt.Errorf("read %s: %w", key, err)
}

// writeOptions apply to every object. They set the type so that no driver guesses it.
func writeOptions(absent bool) *blob.WriterOptions {
	return &blob.WriterOptions{ContentType: "application/octet-stream", IfNotExist: absent}
}

// Put writes a small object and replaces an existing one.
func (s *Store) Put(ctx context.Context, key string, data []byte) error {
	return s.bucket.WriteAll(ctx, s.prefix+key, data, writeOptions(false))
}

// Create creates a small object, or returns ErrTaken if another one exists. If an answer is lost, it reads the
// object back, so data must be unique.
func (s *Store) Create(ctx context.Context, key string, data []byte) error {
	if len(data) > format.MostBytes {
		return fmt.Errorf("create %s: it has more than %d MiB: save fewer files", key, format.MostBytes>>20)
	}
	var err error
	for range 3 {
		err = s.bucket.WriteAll(ctx, s.prefix+key, data, writeOptions(true))
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			break
		}
		if !ours.Taken(err) {
			continue // it may exist or not
		}
		held, rerr := s.bucket.ReadAll(ctx, s.prefix+key)
		switch {
		case rerr != nil:
			err = rerr
		case bytes.Equal(held, data):
			return nil
		default:
			return fmt.Errorf("create %s: %w", key, ErrTaken)
		}
	}
	return fmt.Errorf("create %s: %w", key, err)
}

// Remove deletes an object; a missing object is no error.
func (s *Store) Remove(ctx context.Context, key string) error {
	if err := s.bucket.Delete(ctx, s.prefix+key); err != nil && !ours.Missing(err) {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}
