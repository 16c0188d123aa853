package sim

import (
	"cmp"
	"sort"
	"time"
)

// rhythm describes how a program's time differs from a constant pace, and how often it reports. The zero rhythm is the
// constant pace with the usual reports.
type rhythm struct {
	first    time.Duration // before the first step of each start
	every    int64         // steps between two pauses, for example validations; 0 for none
	pause    time.Duration // length of a pause
	sleeps   int64         // the step before which its machine sleeps; 0 for never
	asleep   time.Duration
	slower   int64         // from this step on a step takes three times as long; 0 for never
	reported time.Duration // time between two reports; 0 means reportEvery
	saved    time.Duration // minimum time between two saves
}

// takes returns the duration of the steps from..to on a machine with the given pace in steps an hour.
func (r *rhythm) takes(from, to int64, pace float64) time.Duration {
	d := r.first + time.Duration(float64(to-from)/pace*float64(time.Hour))
	if r.every > 0 {
		d += time.Duration(to/r.every-from/r.every) * r.pause
	}
	if from < r.sleeps && r.sleeps <= to {
		d += r.asleep
	}
	if r.slower > 0 && to > max(from, r.slower) {
		d += time.Duration(2 * float64(to-max(from, r.slower)) / pace * float64(time.Hour))
	}
	return d
}

// step returns the step that the program reaches in the given time.
func (r *rhythm) step(from int64, t time.Duration, pace float64) int64 {
	most := int64(max(0, t.Hours()*pace)) // without pauses
	if *r == (rhythm{reported: r.reported, saved: r.saved}) {
		return from + most
	}
	return from + int64(sort.Search(int(most), func(n int) bool { return r.takes(from, from+int64(n)+1, pace) > t }))
}

// reports returns the time between two reports.
func (r *rhythm) reports() time.Duration { return cmp.Or(r.reported, reportEvery) }
