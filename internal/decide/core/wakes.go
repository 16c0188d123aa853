package core

import "time"

// wakes are the times at which jobs want to be looked at, as a heap with the earliest
// first; an entry whose job has another time by now is passed over. It is no
// heap.Interface: that would put each entry on the program's heap twice.
type wakes []wake

type wake struct {
	at  time.Time
	job *Job
}

func (w wake) before(v wake) bool {
	if !w.at.Equal(v.at) {
		return w.at.Before(v.at)
	}
	return w.job.Order() < v.job.Order()
}

func (w *wakes) push(x wake) {
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

// pop takes the earliest.
func (w *wakes) pop() wake {
	list := *w
	first, last := list[0], len(list)-1
	list[0], list[last] = list[last], wake{}
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
