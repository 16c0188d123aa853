package step

import (
	"time"

	"scrimp/internal/decide/state"
)

// Wakes are the times at which jobs want to be looked at, as a heap with the earliest
// first; an entry whose job has another time by now is passed over. It is no
// heap.Interface: that would put each entry on the program's heap twice.
type Wakes []Wake

type Wake struct {
	At  time.Time
	Job *state.Job
}

func (w Wake) before(v Wake) bool {
	if !w.At.Equal(v.At) {
		return w.At.Before(v.At)
	}
	return w.Job.Order() < v.Job.Order()
}

func (w *Wakes) Push(x Wake) {
	list := append(*w, x)
	*w = list
	for i := len(list) - 1; i > 0; {
		above := (i - 1) / 2
		if !list[i].before(list[above]) {
			return
		}
		list[i], list[above] = list[above], list[i]
		i = above
	}
}

// Pop takes the earliest.
func (w *Wakes) Pop() Wake {
	list := *w
	first, last := list[0], len(list)-1
	list[0], list[last] = list[last], Wake{}
	list = list[:last]
	*w = list
	for i := 0; ; {
		least := i
		for _, below := range [...]int{2*i + 1, 2*i + 2} {
			if below < len(list) && list[below].before(list[least]) {
				least = below
			}
		}
		if least == i {
			return first
		}
		list[i], list[least] = list[least], list[i]
		i = least
	}
}
