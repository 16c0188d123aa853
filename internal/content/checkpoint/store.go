// Package checkpoint keeps what a program saves: captured on its machine,
// stored by content, published by one manifest, fenced by claims, and verified
// whenever it is read back. docs/design/checkpoints.md says why it is safe.
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

// A caller acts on these with errors.Is, never on the text.
var (
	ErrFenced  = errors.New("fenced: a newer attempt has the claim")           // stop, publish nothing more
	ErrDamaged = format.ErrDamaged                                             // what is stored is not what was published
	ErrChanged = folder.ErrChanged                                             // capture again
	ErrNone    = errors.New("nothing is kept")                                 // there is nothing to fetch
	ErrSkipped = errors.New("a machine of the gang has no part of this step")  // the next step may be whole
	ErrRanks   = errors.New("the checkpoint is of another number of machines") // none of its parts fits
)

// errTaken says that a name that is created once holds something else.
var errTaken = errors.New("the name is taken")

// workersFor returns how many parts are in flight, each of which is in memory: for a
// folder as many as processors can hash (4 hash 7 GB/s), for a server on this machine a few
// more, since it works while they hash, for a store behind a network enough to fill it while
// answers are on their way.
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
//	starts/<epoch>-<session>            what the machines of a gang begin from
//	shares/<epoch>-<session>-<rank>-<step>   what a rank has stored of a step, until that is published
//	objects/<epoch>-<session>-<rank>-<step>/<sha256>  its parts
//	outputs/<name>/<seq>                one manifest for each time outputs were kept
type Store struct {
	bucket   *blob.Bucket
	prefix   string
	part     int64
	workers  int
	unseeded bool // epoch 0, of what was copied from another job, counts for nothing
	rank     int  // of this machine in its gang
	nodes    int  // of the gang; 0: whoever asks is none of it
}

// Open returns the store below prefix. It reads and writes nothing yet. The
// caller keeps the bucket open for as long as it uses the store.
func Open(bucket *blob.Bucket, prefix string) *Store {
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	return &Store{bucket: bucket, prefix: prefix, part: format.PartSize, workers: workersFor(bucket)}
}

// Unseeded returns the store without what was copied there from another job: what a
// submission that was cut short has left counts for nobody.
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

// read returns a small object whole.
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

// readError tells damage, which no new try repairs, from a store that does not answer.
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

// writeOptions describe every object. The type is given so that nobody guesses it.
func writeOptions(absent bool) *blob.WriterOptions {
	return &blob.WriterOptions{ContentType: "application/octet-stream", IfNotExist: absent}
}

// putOnce creates a small object, or returns errTaken where there is another
// one. An answer that is lost on the way is asked for again: data must be
// unlike anybody else's.
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
			continue // it may be there or not
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
