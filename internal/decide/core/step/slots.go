package step

import (
	"time"

	"scrimp/internal/decide/state"
)

// What the parts keep of a job beside the state, each in a slot of its own.
const (
	ofTimes = iota
	OfQueue
	OfAdmission
	OfPlacement
)

// Slot is what a part keeps of j, which is made where there is nothing yet.
func Slot[T any](j *state.Job, part int) *T {
	p, ok := j.Slots[part].(*T)
	if !ok {
		p = new(T)
		j.Slots[part] = p
	}
	return p
}

// hours are when a job wants to be looked at.
type hours struct {
	Wake    time.Time // when it wants to be reviewed; zero: not by time
	Posts   time.Time // when its next posting is due
	Archive time.Time // when it is archived; zero: it is not over
	Back    time.Time // when it was rehydrated; zero: it was not
}

// TimesOf are those of j.
func TimesOf(j *state.Job) *hours { return Slot[hours](j, ofTimes) }
