package fair

import (
	"slices"
	"time"
)

// spans is the number of parts of the window for which Deadlines keeps separate counts.
const spans = 32

// Ended counts the jobs with a deadline that ended in one part of the window.
type Ended struct {
	From   time.Time `json:"from"` // begin of the part
	Met    int       `json:"met,omitempty"`
	Missed int       `json:"missed,omitempty"`
}

// Deadlines counts the jobs of a team that had a deadline, by the time at which they ended, the oldest first. A job met
// its deadline if it succeeded by then, and missed it if it ended later. A job that ended earlier without success, such
// as a cancelled one, did neither.
type Deadlines []Ended

// Outcome reports whether a job that ended met its deadline; ok is false if it did neither, or had none.
func Outcome(deadline, ended time.Time, succeeded bool) (met, ok bool) {
	late := ended.After(deadline)
	return succeeded && !late, !deadline.IsZero() && (succeeded || late)
}

// Add returns d with n jobs that ended at t; n is negative for a job that goes on after its end. It drops what is older
// than the window, and changes nothing that d shares with others.
func (d Deadlines) Add(t time.Time, window time.Duration, met bool, n int) Deadlines {
	from := t.Truncate(window / spans)
	old := from.Add(-window)
	d = slices.DeleteFunc(slices.Clone(d), func(e Ended) bool { return !e.From.After(old) })
	i, found := slices.BinarySearchFunc(d, from, func(e Ended, t time.Time) int { return e.From.Compare(t) })
	if !found {
		if n < 0 {
			return d
		}
		d = slices.Insert(d, i, Ended{From: from})
	}
	count := &d[i].Missed
	if met {
		count = &d[i].Met
	}
	*count = max(0, *count+n)
	return d
}

// In returns how many jobs met and missed their deadline in the window that ends at t. The window begins with a whole
// part: it is up to a 32nd shorter.
func (d Deadlines) In(t time.Time, window time.Duration) (met, missed int) {
	for _, e := range d {
		if !e.From.Before(t.Add(-window)) {
			met, missed = met+e.Met, missed+e.Missed
		}
	}
	return met, missed
}
