package checkpoint

import (
	"context"
	"strings"

	"scrimp/internal/content/checkpoint/output"
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
	err = s.objects.Each(ctx, "objects", func(name string, size int64) {
		home, _, _ := strings.Cut(name, "/")
		if key := "objects/" + name; home != output.Home && !used[key] {
			old.Bytes, old.keys = old.Bytes+size, append(old.keys, key)
		}
	})
	if err != nil {
		return Old{}, err
	}
	return old, nil
}

// DropOld removes what Old lists: the manifests first, so that none lacks its parts.
func (s *Store) DropOld(ctx context.Context, old Old) error {
	for _, name := range old.Names {
		if err := s.objects.Remove(ctx, "manifests/"+name); err != nil {
			return err
		}
	}
	for _, key := range old.keys {
		if err := s.objects.Remove(ctx, key); err != nil {
			return err
		}
	}
	return nil
}
