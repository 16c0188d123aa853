// Package checkpoint stores what a program saves: captured on its machine, addressed by content, published by one
// manifest, fenced by claims, and verified whenever it is read back. docs/design/checkpoints.md explains why it is
// safe.
package checkpoint

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
	"scrimp/internal/content/checkpoint/folder"
	"scrimp/internal/content/checkpoint/format"
)

// Callers test for these errors with errors.Is, never by their text.
var (
	ErrFenced  = errors.New("fenced: a newer attempt has the claim")           // stop, publish nothing more
	ErrDamaged = format.ErrDamaged                                             // differs from what was published
	ErrChanged = folder.ErrChanged                                             // capture again
	ErrNone    = errors.New("nothing is kept")                                 // there is nothing to fetch
	ErrSkipped = errors.New("a machine of the gang has no part of this step")  // the next step may be complete
	ErrRanks   = errors.New("the checkpoint is of another number of machines") // none of its parts fits
)

// errTaken says that a name that may be created only once holds something else.
var errTaken = errors.New("the name is taken")

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

// Store is the place of one job's checkpoints and outputs in a bucket:
//
//	claims/<epoch>-<session>            who may write
//	fences/<epoch>-<session>            the manifests that counted when it was claimed
//	manifests/<epoch>-<seq>             one for each checkpoint
//	objects/<epoch>-<session>/<sha256>  parts of files, under the claim that stored them
//	objects/kept/<sha256>               parts of outputs
//	starts/<epoch>-<session>            the checkpoint from which the machines of a gang start
//	shares/<epoch>-<session>-<rank>-<step>   a rank's share of a step, until the step is published
//	objects/<epoch>-<session>-<rank>-<step>/<sha256>  its parts
//	outputs/<name>/<seq>                one manifest for each time outputs were kept
type Store struct {
	bucket   *blob.Bucket
	prefix   string
	part     int64
	workers  int
	unseeded bool // epoch 0, which holds a copy of another job's checkpoint, does not count
	rank     int  // of this machine in its gang
	nodes    int  // of the gang; 0: the caller is not in a gang
}

// Open returns the store below prefix. It reads and writes nothing yet. The caller keeps the bucket open while it
// uses the store.
func Open(bucket *blob.Bucket, prefix string) *Store {
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	return &Store{bucket: bucket, prefix: prefix, part: format.PartSize, workers: workersFor(bucket)}
}

// Unseeded returns the store without what was copied from another job, so that the remains of a submission that was
// cut short do not count.
func (s *Store) Unseeded() *Store {
	u := *s
	u.unseeded = true
	return &u
}

// list returns the names below folder, sorted.
func (s *Store) list(ctx context.Context, folder string) ([]string, error) {
	var names []string
	at := s.prefix + folder + "/"
	for it := s.bucket.List(&blob.ListOptions{Prefix: at}); ; {
		o, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", folder, err)
		}
		names = append(names, strings.TrimPrefix(o.Key, at))
	}
	slices.Sort(names)
	return names, nil
}

// read returns a whole small object.
func (s *Store) read(ctx context.Context, key string) (data []byte, err error) {
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
	return fmt.Errorf("read %s: %w: it has more than %d MiB", key, ErrDamaged, format.MostBytes>>20)
}

// readError distinguishes damage, which no retry repairs, from a store that does not answer.
func readError(key string, err error) error {
	switch {
	case err == nil:
		return nil
	case ours.Missing(err):
		return fmt.Errorf("read %s: %w: it is missing", key, ErrDamaged)
	case errors.Is(err, syscall.EIO), ours.Damaged(err):
		return fmt.Errorf("read %s: %w: %w", key, ErrDamaged, err)
	}
	return fmt.Errorf("read %s: %w", key, err)
}

// writeOptions apply to every object. They set the type so that no driver guesses it.
func writeOptions(absent bool) *blob.WriterOptions {
	return &blob.WriterOptions{ContentType: "application/octet-stream", IfNotExist: absent}
}

// putOnce creates a small object, or returns errTaken if another one exists. If an answer is lost, it reads the
// object back, so data must be unique.
func (s *Store) putOnce(ctx context.Context, key string, data []byte) error {
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
			return fmt.Errorf("create %s: %w", key, errTaken)
		}
	}
	return fmt.Errorf("create %s: %w", key, err)
}
