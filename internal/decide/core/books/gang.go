package books

import (
	"scrimp/internal/decide/state"
)

// incomplete reports whether the instance is of an allocation that has not all its machines.
func (bk *Books) incomplete(i *state.Instance) bool {
	return len(i.Seats()) > 0 && bk.State.Allocation(i.Seats()[0].Attempt) != nil
}
