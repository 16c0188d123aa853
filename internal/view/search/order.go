package search

import (
	"encoding/binary"
	"time"

	"scrimp/internal/decide/state"
)

// An Order of jobs in a list. Jobs that are equal in it follow the newest first.
type Order string

// Orders of jobs.
const (
	ByAge      Order = ""         // newest first
	BySpent    Order = "spent"    // dearest first
	ByRate     Order = "rate"     // highest price an hour first
	ByDeadline Order = "deadline" // the nearest deadline first, then jobs that are over, then those without one
	ByName     Order = "name"
	ByState    Order = "state"
)

// Orders lists every order but ByAge.
var Orders = []Order{BySpent, ByRate, ByDeadline, ByName, ByState}

// AppendKey appends the place of a job in the order at a moment: keys that are lower as bytes come first.
func (o Order) AppendKey(b []byte, j *state.Job, now time.Time) []byte {
	switch o {
	case BySpent:
		from := len(b)
		b = j.Spent(now).AppendBinary(b)
		b[from] ^= 0x80 // negative amounts are lower
		for i := range b[from:] {
			b[from+i] ^= 0xff
		}
	case ByRate:
		rate := uint64(0)
		if a := j.Live(); a != nil && j.Finished().IsZero() {
			rate = uint64(max(0, a.Rate()))
		}
		b = binary.BigEndian.AppendUint64(b, ^rate)
	case ByDeadline:
		end := j.Terms().Deadline
		switch {
		case end.IsZero():
			return append(b, 2)
		case j.State().Over():
			b = binary.BigEndian.AppendUint64(append(b, 1), uint64(end.Sub(j.Finished()))^1<<63)
		default: // the same at every moment: the nearest deadline comes first
			b = binary.BigEndian.AppendUint64(append(b, 0), uint64(end.Sub(time.Unix(0, 0)))^1<<63)
		}
	case ByName:
		b = append(b, j.ID()...)
	case ByState:
		b = append(b, j.State()...)
	case ByAge:
	}
	return b
}
