package layout

import (
	"encoding/json"
	"fmt"
	"slices"

	"scrimp/internal/store"
)

// Piece identifies a piece of a snapshot: the snapshot that it was written for, and its number. The state itself,
// or the head, is stored in pieces, too.
type Piece struct {
	Seq  uint64
	Part int
}

// SourcesPart is the number of the piece that lists, as JSON, the snapshot that each part was saved for. A snapshot
// without it owns its parts, which are the state.
const SourcesPart = -1

// Cut divides s.State into numbered pieces of at most partSize bytes: from 0 up if it is the whole state, otherwise
// from -2 down, plus the sources.
func Cut(s store.Snapshot, from []uint64) map[int][]byte {
	pieces := map[int][]byte{}
	if s.Parts > 0 {
		pieces[SourcesPart], _ = json.Marshal(from) // marshalling numbers never fails
	}
	state := s.State
	for n := 0; n == 0 || len(state) > 0; n++ {
		size := min(len(state), partSize)
		number := n
		if s.Parts > 0 {
			number = SourcesPart - 1 - n
		}
		pieces[number] = append([]byte{}, state[:size]...) // empty rather than NULL
		state = state[size:]
	}
	return pieces
}

// Sources returns, by part, the snapshot that it was saved for. base is the list of the snapshot Base.
func Sources(s store.Snapshot, base []uint64) ([]uint64, error) {
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

// ReadSources parses the piece that lists the sources; empty text has none.
func ReadSources(text []byte) (from []uint64, err error) {
	if len(text) > 0 {
		err = json.Unmarshal(text, &from)
	}
	return from, err
}

// Unused returns the pieces that no snapshot needs.
func Unused(pieces []Piece, snapshots map[uint64][]uint64) []Piece {
	needed := map[Piece]bool{}
	for _, from := range snapshots {
		for n, seq := range from {
			needed[Piece{seq, n}] = true
		}
	}
	return slices.DeleteFunc(pieces, func(k Piece) bool {
		from, kept := snapshots[k.Seq]
		return needed[k] || kept && (k.Part < 0 || len(from) == 0)
	})
}

// partSize is the number of bytes of a snapshot in one row: small enough that an append does not wait long behind it.
const partSize = 4 << 20
