package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// partKey identifies a piece of a snapshot: the snapshot that it was written for, and its number. The state itself,
// or the head, is stored in pieces, too.
type partKey struct {
	seq  uint64
	part int
}

// sourcesPart is the number of the piece that lists, as JSON, the snapshot that each part was saved for. A snapshot
// without it owns its parts, which are the state.
const sourcesPart = -1

// cut divides s.State into numbered pieces of at most partSize bytes: from 0 up if it is the whole state, otherwise
// from -2 down, plus the sources.
func (s Snapshot) cut(from []uint64) map[int][]byte {
	pieces := map[int][]byte{}
	if s.Parts > 0 {
		pieces[sourcesPart], _ = json.Marshal(from) // marshalling numbers never fails
	}
	state := s.State
	for n := 0; n == 0 || len(state) > 0; n++ {
		size := min(len(state), partSize)
		number := n
		if s.Parts > 0 {
			number = sourcesPart - 1 - n
		}
		pieces[number] = append([]byte{}, state[:size]...) // empty rather than NULL
		state = state[size:]
	}
	return pieces
}

// sources returns, by part, the snapshot that it was saved for. base is the list of the snapshot Base.
func (s Snapshot) sources(base []uint64) ([]uint64, error) {
	from := make([]uint64, s.Parts)
	copy(from, base)
	for _, n := range s.New {
		if n < 0 || n >= s.Parts {
			return nil, fmt.Errorf("save snapshot %d: it has no part %d", s.Seq, n)
		}
		from[n] = s.Seq
	}
	if n := slices.Index(from, 0); n >= 0 {
		return nil, fmt.Errorf("save snapshot %d: part %d is missing", s.Seq, n)
	}
	return from, nil
}

func readSources(text []byte) (from []uint64, err error) {
	if len(text) > 0 {
		err = json.Unmarshal(text, &from)
	}
	return from, err
}

// unused returns the pieces that no snapshot needs.
func unused(pieces []partKey, snapshots map[uint64][]uint64) []partKey {
	needed := map[partKey]bool{}
	for _, from := range snapshots {
		for n, seq := range from {
			needed[partKey{seq, n}] = true
		}
	}
	return slices.DeleteFunc(pieces, func(k partKey) bool {
		from, kept := snapshots[k.seq]
		return needed[k] || kept && (k.part < 0 || len(from) == 0)
	})
}

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
