package core

import "time"

// wakes are the times at which jobs want to be looked at; an entry whose job
// has another time by now is passed over.
type wakes []wake

type wake struct {
	at  time.Time
	job *Job
}

func (w wakes) Len() int { return len(w) }
func (w wakes) Less(i, j int) bool {
	if !w[i].at.Equal(w[j].at) {
		return w[i].at.Before(w[j].at)
	}
	return w[i].job.place.order < w[j].job.place.order
}
func (w wakes) Swap(i, j int) { w[i], w[j] = w[j], w[i] }
func (w *wakes) Push(x any)   { *w = append(*w, x.(wake)) }
func (w *wakes) Pop() any {
	last := len(*w) - 1
	x := (*w)[last]
	(*w)[last] = wake{}
	*w = (*w)[:last]
	return x
}
