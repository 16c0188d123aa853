package step

import (
	"encoding/binary"
	"maps"
	"slices"

	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/state"
)

// GroupKey appends the key of the group of a job in that equivalence class. The key starts with the length of the
// class key, so no two groups share a key.
func GroupKey(b []byte, equivalence string, j *state.Job) []byte {
	b = binary.AppendUvarint(b, uint64(len(equivalence)))
	return ownerOf(append(b, equivalence...), &j.Terms().Owner, j.User())
}

// ownerOf appends the key of a job's owner, as scopes see it.
func ownerOf(b []byte, o *ledger.Owner, user string) []byte {
	text := func(s string) {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	text(o.Team)
	text(o.Project)
	text(user)
	labels := o.Labels()
	if len(labels) == 0 {
		return b
	}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		text(k)
		text(labels[k])
	}
	return b
}
