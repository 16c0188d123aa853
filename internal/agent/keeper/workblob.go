package keeper

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	gcblob "gocloud.dev/blob"

	"scrimp/internal/agent/wire"
	"scrimp/internal/content/blob"
	"scrimp/internal/content/tarball"
	"scrimp/internal/lib/wait"
	"scrimp/internal/wire/api"
)

// How long to wait for a work folder in a bucket before the server sends it.
const (
	workAsks  = time.Minute      // until the server answers with the location
	workComes = 15 * time.Minute // while the server copies it there
	workMoves = 30 * time.Second // without a byte from the bucket
	workTries = 5                // failed connections in a row without a byte
)

// errWork reports that the blob in the bucket is not the work folder.
var errWork = errors.New("it is not the work folder that the server uploaded")

// fetchLent fills dir with the work folder from the job's bucket. If the blob is missing, damaged
// or does not arrive, done is false and dir is empty, and the caller fetches it from the server.
func (k *store) fetchLent(ctx context.Context, dir string) (done bool, err error) {
	at, err := k.workBlob(ctx)
	if err == nil && at.SHA256 == "" {
		return false, nil // the server did not put it into the bucket
	}
	if err == nil {
		begin := time.Now()
		if err = unpackWork(ctx, k.bucket, k.a.Checkpoint.Prefix, at, dir); err == nil {
			k.log.Info("the work folder came from the bucket", "bytes", at.Bytes, "sha256", at.SHA256,
				"took", time.Since(begin).Round(time.Millisecond))
			return true, nil
		}
		err = errors.Join(err, empty(dir))
	}
	if errors.Is(err, wire.ErrFenced) {
		return false, err
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	k.log.Warn("the work folder does not come from the bucket: the server sends it", "error", err)
	if at.SHA256 != "" {
		if _, err := k.works(ctx, refusal(err)); err != nil { // best effort: tell the server
			k.log.Warn("report that the work folder in the bucket was rejected", "error", err)
		}
	}
	return false, nil
}

// workBlob asks the server for the location of the work folder, and waits while the server copies it there.
func (k *store) workBlob(ctx context.Context) (at api.WorkBlob, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, workComes, fmt.Errorf("the server did not copy it there within "+
		"%v", workComes))
	defer cancel()
	for {
		asks, end := context.WithTimeoutCause(ctx, workAsks, fmt.Errorf("the server did not answer within %v", workAsks))
		err = wire.Retry(asks, func(ctx context.Context) (err error) {
			at, err = k.works(ctx, "")
			return err
		})
		end()
		if err != nil || !at.Wait {
			return at, err
		}
		if err := wait.For(ctx, 100*time.Millisecond); err != nil { // the server has already waited before its answer
			return at, err
		}
	}
}

// unpackWork unpacks the work folder from the bucket and verifies its hash, before any program runs.
func unpackWork(ctx context.Context, b *gcblob.Bucket, prefix string, at api.WorkBlob, dir string) error {
	if sum, err := hex.DecodeString(at.SHA256); err != nil || len(sum) != sha256.Size {
		return fmt.Errorf("%w: %.70q is not a SHA-256", errWork, at.SHA256)
	}
	ctx, moved, end := wait.Moving(ctx, workMoves)
	defer end()
	from := &workReader{ctx: ctx, bucket: b, key: prefix + at.Key(), size: at.Bytes, sum: sha256.New(), moved: moved}
	defer from.close()
	err := tarball.Unpack(ctx, from, dir)
	switch {
	case from.err != nil:
		return from.err
	case err != nil: // includes bytes that are not a tar file: the server sent one
		if from.rest() == nil && from.matches(at) {
			return err // the machine's disk, or a folder that no machine accepts
		}
		return fmt.Errorf("%w: %w", errWork, err)
	case !from.matches(at):
		return fmt.Errorf("%w: %s has another SHA-256", errWork, from.key)
	}
	return nil
}

// refusal returns the protocol's reason for rejecting the work folder in the bucket.
func refusal(err error) string {
	switch {
	case errors.Is(err, errWork):
		return api.WorkDamaged
	case blob.Missing(err):
		return api.WorkMissing
	}
	return api.WorkAway
}

// workReader reads a blob of known size, and resumes at its position after a broken connection.
type workReader struct {
	ctx    context.Context // for the single read of the blob
	bucket *gcblob.Bucket
	key    string
	size   int64
	moved  func()
	sum    hash.Hash
	at     int64
	open   *gcblob.Reader // nil while not connected
	err    error          // permanent error
}

// Read implements io.Reader.
func (r *workReader) Read(p []byte) (n int, err error) {
	for try := 0; r.err == nil; try++ {
		if n, err = r.read(p); n > 0 {
			r.at += int64(n)
			_, _ = r.sum.Write(p[:n])
			r.moved()
			return n, nil
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF) && r.at == r.size:
			return 0, io.EOF
		case r.ctx.Err() != nil:
			r.err = fmt.Errorf("fetch %s: %w", r.key, context.Cause(r.ctx))
		case blob.Damaged(err):
			r.err = fmt.Errorf("fetch %s: %w: %w", r.key, errWork, err)
		case errors.Is(err, errWork), blob.Missing(err), try == workTries:
			r.err = fmt.Errorf("fetch %s: %w", r.key, err)
		default:
			r.close()
		}
	}
	return 0, r.err
}

func (r *workReader) read(p []byte) (int, error) {
	if r.at == r.size {
		return 0, io.EOF
	}
	if r.open == nil {
		in, err := r.bucket.NewRangeReader(r.ctx, r.key, r.at, -1, nil)
		if err != nil {
			return 0, err
		}
		if r.open = in; in.Size() != r.size {
			return 0, fmt.Errorf("%w: it has %d bytes, not %d", errWork, in.Size(), r.size)
		}
	}
	return r.open.Read(p[:min(int64(len(p)), r.size-r.at)])
}

// rest reads to the end.
func (r *workReader) rest() error {
	_, err := io.Copy(io.Discard, r)
	return err
}

func (r *workReader) matches(at api.WorkBlob) bool {
	return r.at == at.Bytes && hex.EncodeToString(r.sum.Sum(nil)) == at.SHA256
}

func (r *workReader) close() {
	if r.open != nil {
		_ = r.open.Close() // only read
		r.open = nil
	}
}
