// Package checkpoint stores what a program saves: captured on its machine, addressed by content, published by one
// manifest, fenced by claims, and verified whenever it is read back. docs/design/checkpoints.md explains why it is
// safe.
package checkpoint

import (
	"errors"

	"gocloud.dev/blob"

	"scrimp/internal/content/checkpoint/folder"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/content/checkpoint/object"
	"scrimp/internal/content/checkpoint/output"
)

// Callers test for these errors with errors.Is, never by their text.
var (
	ErrFenced  = errors.New("fenced: a newer attempt has the claim")           // stop, publish nothing more
	ErrDamaged = format.ErrDamaged                                             // differs from what was published
	ErrChanged = folder.ErrChanged                                             // capture again
	ErrFolder  = folder.ErrFolder                                              // it cannot be listed; a retry is useless
	ErrNone    = output.ErrNone                                                // there is nothing to fetch
	ErrSkipped = errors.New("a machine of the gang has no part of this step")  // the next step may be complete
	ErrRanks   = errors.New("the checkpoint is of another number of machines") // none of its parts fits
)

// Store is the place of one job's outputs and checkpoints in a bucket:
//
//	claims/<epoch>-<session>            who may write
//	fences/<epoch>-<session>            the manifests that counted when it was claimed
//	manifests/<epoch>-<seq>             one for each checkpoint
//	objects/<epoch>-<session>/<sha256>  parts of files, under the claim that stored them
//	starts/<epoch>-<session>            the checkpoint from which the machines of a gang start
//	shares/<epoch>-<session>-<rank>-<step>   a rank's share of a step, until the step is published
//	objects/<epoch>-<session>-<rank>-<step>/<sha256>  its parts
type Store struct {
	output.Store
	objects  *object.Store
	unseeded bool // epoch 0, which holds a copy of another job's checkpoint, does not count
	rank     int  // of this machine in its gang
	nodes    int  // of the gang; 0: the caller is not in a gang
}

// Open returns the store below prefix. It reads and writes nothing yet. The caller keeps the bucket open while it
// uses the store.
func Open(bucket *blob.Bucket, prefix string) *Store {
	objects := object.Open(bucket, prefix)
	return &Store{Store: output.Open(objects), objects: objects}
}

// Unseeded returns the store without what was copied from another job, so that the remains of a submission that was
// cut short do not count.
func (s *Store) Unseeded() *Store {
	u := *s
	u.unseeded = true
	return &u
}
