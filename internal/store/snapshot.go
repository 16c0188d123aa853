package store

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
)

// Whole returns the newest snapshot as one value, in the form of core.Machine.Snapshot.
func Whole(ctx context.Context, s Store) (Snapshot, bool, error) {
	for {
		snap, ok, err := s.LatestSnapshot(ctx)
		if err != nil || !ok || snap.Parts == 0 {
			return snap, ok, err
		}
		text, err := join(snap.State, s.SnapshotParts(ctx, snap))
		if errors.Is(err, ErrGone) {
			continue
		}
		return Snapshot{Seq: snap.Seq, Version: snap.Version, State: text}, true, err
	}
}

func join(head json.RawMessage, parts iter.Seq2[json.RawMessage, error]) (json.RawMessage, error) {
	text := append(append([]byte(`{"head":`), head...), `,"parts":[`...)
	first := true
	for part, err := range parts {
		if err != nil {
			return nil, err
		}
		if !first {
			text = append(text, ',')
		}
		first = false
		text = append(text, part...)
	}
	return append(text, "]}"...), nil
}
