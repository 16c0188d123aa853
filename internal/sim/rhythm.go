package sim

import (
	"cmp"
	"sort"
	"time"
)

// rhythm is how a program's time differs from steps at one pace, and how often it is heard of. The zero rhythm is that
// pace alone, heard of as often as usual.
type rhythm struct {
	first    time.Duration // before its first step, each time that it begins
	every    int64         // steps between two pauses of its own, such as validations; 0: none
	pause    time.Duration // one of them
	sleeps   int64         // the step before which its machine sleeps; 0: never
	asleep   time.Duration
	slower   int64         // from that step on a step takes three times as long; 0: never
	reported time.Duration // between two reports; 0: reportEvery
	saved    time.Duration // the least between two saves
}

// takes is how long the steps after from take up to to, on a machine that makes so many an hour.
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

// step is what the program has reached after such a time.
func (r *rhythm) step(from int64, t time.Duration, pace float64) int64 {
	most := int64(max(0, t.Hours()*pace)) // without anything that holds it up
	if *r == (rhythm{reported: r.reported, saved: r.saved}) {
		return from + most
	}
	return from + int64(sort.Search(int(most), func(n int) bool { return r.takes(from, from+int64(n)+1, pace) > t }))
}

// reports is the time between two of its reports.
func (r *rhythm) reports() time.Duration { return cmp.Or(r.reported, reportEvery) }
