package workblob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"time"

	gcblob "gocloud.dev/blob"

	"scrimp/internal/content/blob"
	"scrimp/internal/content/blob/scopedcreds"
	"scrimp/internal/content/tarball"
	"scrimp/internal/lib/wait"
	"scrimp/internal/server/artifacts"
	"scrimp/internal/wire/api"
)

// errOther means that the blob in the bucket is not the folder.
var errOther = errors.New("the blob in the bucket differs from the folder")

// open opens the store of a job with credentials for the job's own prefix.
func (b *Blobs) open(ctx context.Context, job, store string) (*gcblob.Bucket, error) {
	l, prefix := b.Lender(store, job)
	if l == nil {
		return nil, fmt.Errorf("no engine lends credentials for %s", store)
	}
	return blob.OpenLent(ctx, store, blob.Loan{Prefix: artifacts.OwnKeys(job),
		Fetch: func(ctx context.Context) (scopedcreds.Credentials, error) { return l.Lend(ctx, prefix, job) }})
}

// put uploads the folder of a job unless the bucket already has it, and records it after reading it back.
func (b *Blobs) put(ctx context.Context, job, store string) (r record, err error) {
	ctx, moved, end := wait.Moving(ctx, stalled)
	defer end()
	ref, err := b.Folders.Of(job)
	if err != nil {
		return r, err
	}
	folder, err := b.Folders.Tree(job)
	if err != nil {
		return r, err
	}
	told := newSummed(moved)
	if _, err := folder.Write(ctx, told, 0); err != nil {
		return r, err
	}
	r = record{Store: store, Tree: ref.Tree, SHA256: told.sum(), Bytes: told.n}
	if err := b.note(job, r); err != nil { // recorded first, so that a removal always finds the blob
		return r, err
	}
	bucket, err := b.open(ctx, job, store)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, bucket.Close()) }()
	key := artifacts.OwnKeys(job) + r.blob().Key()
	for try := range 2 {
		if err = write(ctx, bucket, key, folder, r, moved); err != nil {
			return r, withCause(ctx, err)
		}
		if err = check(ctx, bucket, key, r, moved); !errors.Is(err, errOther) || try == 1 {
			break
		}
		if err := bucket.Delete(ctx, key); err != nil && !blob.Missing(err) { // a wrong blob is of no use
			return r, withCause(ctx, err)
		}
	}
	if err != nil {
		return r, withCause(ctx, err)
	}
	r.Whole = true
	return r, b.note(job, r)
}

// withCause joins an error with the reason for which its context ended.
func withCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return err
}

// write uploads the blob unless it exists. The blob appears whole or not at all.
func write(ctx context.Context, to *gcblob.Bucket, key string, folder *tarball.Folder, r record,
	moved func()) error {
	there, err := to.Exists(ctx, key)
	if err != nil || there {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := to.NewWriter(ctx, key, &gcblob.WriterOptions{ContentType: "application/x-tar", IfNotExist: true,
		BufferSize: 5 << 20, MaxConcurrency: 3})
	if err != nil {
		return err
	}
	sent := newSummed(moved)
	_, err = folder.Write(ctx, io.MultiWriter(w, sent), 0)
	if err == nil && (sent.n != r.Bytes || sent.sum() != r.SHA256) {
		err = errors.New("the folder has changed on the server's disk")
	}
	if err != nil {
		cancel() // cancels the upload
		return errors.Join(err, w.Close())
	}
	if err := w.Close(); err != nil && !blob.Taken(err) { // another server has written it meanwhile
		return err
	}
	return nil
}

// check reads back the blob in the bucket and compares it with the folder.
func check(ctx context.Context, from *gcblob.Bucket, key string, r record, moved func()) (err error) {
	in, err := from.NewReader(ctx, key, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if in.Size() != r.Bytes {
		return fmt.Errorf("%w: %s has %d bytes, not %d", errOther, key, in.Size(), r.Bytes)
	}
	got := newSummed(moved)
	if _, err := io.Copy(got, in); blob.Damaged(err) {
		return fmt.Errorf("%w: %w", errOther, err)
	} else if err != nil {
		return err
	}
	if got.n != r.Bytes || got.sum() != r.SHA256 {
		return fmt.Errorf("%w: %s", errOther, key)
	}
	return nil
}

// summed counts and hashes the bytes written to it.
type summed struct {
	hash.Hash
	n     int64
	moved func()
}

func newSummed(moved func()) *summed { return &summed{Hash: sha256.New(), moved: moved} }

func (s *summed) Write(p []byte) (int, error) {
	s.moved()
	s.n += int64(len(p))
	return s.Hash.Write(p)
}

func (s *summed) sum() string { return hex.EncodeToString(s.Sum(nil)) }

// errGoesOn means that a folder cannot be removed from its bucket during its upload.
var errGoesOn = errors.New("its upload is in progress")

// Drop deletes the copies of a job's work folders from its bucket. If that fails, the record stays, so Jobs still
// lists the job.
func (b *Blobs) Drop(ctx context.Context, job string) error {
	r, err := b.record(job)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		if l, _ := b.Lender(r.Store, job); l == nil { // keep the record until an engine declares the store again
			return nil
		}
		err = b.alone(job, r.Store, func() error { return b.empty(ctx, job, r.Store) })
	}
	if err != nil {
		return fmt.Errorf("remove the copy of the work folder from %s: %w", r.Store, err)
	}
	return nil
}

// errAway means that a store has just failed, so that a thousand jobs do not wait for it one after the other.
var errAway = errors.New("the bucket has just failed for another job")

// alone calls do while no upload of the job can run.
func (b *Blobs) alone(job, store string, do func() error) (err error) {
	b.mu.Lock()
	at, failed := b.away[store]
	switch {
	case b.puts[job] != nil || b.removed[job]:
		err = errGoesOn
	case failed && time.Since(at) < b.Rests:
		err = errAway
	default:
		b.removed[job] = true
	}
	b.mu.Unlock()
	if err != nil {
		return err
	}
	err = do()
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.removed, job)
	if delete(b.away, store); err != nil {
		b.away[store] = time.Now()
	}
	return err
}

// empty deletes all blobs of a job's work folders, then the record of them.
func (b *Blobs) empty(ctx context.Context, job, store string) (err error) {
	ctx, moved, end := wait.Moving(ctx, stalled)
	defer end()
	bucket, err := b.open(ctx, job, store)
	if err != nil {
		return withCause(ctx, err)
	}
	defer func() { err = errors.Join(err, bucket.Close()) }()
	for it := bucket.List(&gcblob.ListOptions{Prefix: artifacts.OwnKeys(job) + api.WorkBlobs}); ; {
		o, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			return os.Remove(b.file(job))
		}
		if err == nil {
			if err = bucket.Delete(ctx, o.Key); blob.Missing(err) {
				err = nil
			}
		}
		if err != nil {
			return withCause(ctx, err)
		}
		moved()
	}
}
