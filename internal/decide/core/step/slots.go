package step

import (
	"time"

	"scrimp/internal/decide/state"
)

// Slots of the parts that keep data about a job outside the state.
const (
	ofTimes = iota
	OfQueue
	OfAdmission
	OfPlacement
)

// Slot returns a part's data about j, and creates it if needed.
func Slot[T any](j *state.Job, part int) *T {
	p, ok := j.Slots[part].(*T)
	if !ok {
		p = new(T)
		j.Slots[part] = p
	}
	return p
}

// hours are the times at which a job is due.
type hours struct {
	Wake    time.Time // next review; zero: none scheduled
	Posts   time.Time // next posting
	Archive time.Time // when it is archived; zero: not scheduled
	Back    time.Time // when it was rehydrated; zero: never
}

// TimesOf returns the due times of j.
func TimesOf(j *state.Job) *hours { return Slot[hours](j, ofTimes) }
