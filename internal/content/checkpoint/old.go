package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"gocloud.dev/blob"
)

// Old lists the checkpoints that an ended job no longer needs.
type Old struct {
	Names []string
	Bytes int64 // of the parts that only they use
	keys  []string
}

// Old returns all checkpoints except the newest that counts; with newest, that one, too. Nobody may write to the
// store meanwhile.
func (s *Store) Old(ctx context.Context, newest bool) (Old, error) {
	var old Old
	used := map[string]bool{}
	stays := newest // the newest readable one has been passed, or is dropped with the others
	err := s.each(ctx, func(l Listed) bool {
		if stays || l.Fenced || l.Damaged != nil {
			old.Names = append(old.Names, l.Name)
			return true
		}
		stays = true
		for _, p := range l.Parts() {
			used[p.Key()] = true
		}
		return true
	})
	if err != nil {
		return Old{}, err
	}
	if !stays && len(old.Names) > 0 { // all are damaged: somebody may repair one
		return Old{}, nil
	}
	at := s.prefix + "objects/"
	for it := s.bucket.List(&blob.ListOptions{Prefix: at}); ; {
		o, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			return old, nil
		}
		if err != nil {
			return Old{}, fmt.Errorf("list objects: %w", err)
		}
		home, _, _ := strings.Cut(strings.TrimPrefix(o.Key, at), "/")
		if key := strings.TrimPrefix(o.Key, s.prefix); home != kept && !used[key] {
			old.Bytes, old.keys = old.Bytes+o.Size, append(old.keys, key)
		}
	}
}

// DropOld removes what Old lists: the manifests first, so that none lacks its parts.
func (s *Store) DropOld(ctx context.Context, old Old) error {
	w := Writer{store: s}
	for _, name := range old.Names {
		if err := w.remove(ctx, "manifests/"+name); err != nil {
			return err
		}
	}
	for _, key := range old.keys {
		if err := w.remove(ctx, key); err != nil {
			return err
		}
	}
	return nil
}
