package core

import "time"

// What the parts keep of a job beside the state, each in a slot of its own.
const (
	ofTimes = iota
	ofQueue
	ofAdmission
	ofPlacement
)

// slot is what a part keeps of j, which is made where there is nothing yet.
func slot[T any](j *Job, part int) *T {
	p, ok := j.Slots[part].(*T)
	if !ok {
		p = new(T)
		j.Slots[part] = p
	}
	return p
}

// hours are when a job wants to be looked at.
type hours struct {
	wake    time.Time // when it wants to be reviewed; zero: not by time
	posts   time.Time // when its next posting is due
	archive time.Time // when it is archived; zero: it is not over
	back    time.Time // when it was rehydrated; zero: it was not
}

// timesOf are those of j.
func timesOf(j *Job) *hours { return slot[hours](j, ofTimes) }
