package hazard

import (
	"math"
	"time"
)

// Record is what was observed of one zone's spot capacity: its current state, and tallies of earlier periods. The
// zero Record has observed nothing. It is a plain value that depends only on the polls. A poll that finds the same
// state changes nothing but Seen.
type Record struct {
	Known bool `json:"known,omitempty"`
	Found bool `json:"found,omitempty"` // the start of the current state was not seen
	Up    bool `json:"up,omitempty"`
	// start of the current state: half way between the polls before and after the change
	Since time.Time `json:"since,omitzero"`
	Seen  time.Time `json:"seen,omitzero"` // last poll
	// Tallies of the periods before the current one, with their weight at Since.
	Loss Tally `json:"loss,omitzero"`
	Back Tally `json:"back,omitzero"`
	// Lately is Loss with a memory of hours.
	Lately Tally   `json:"lately,omitzero"`
	UpFor  float64 `json:"up_hours,omitempty"`
	All    float64 `json:"hours,omitempty"`
}

// Tally counts one kind of event: the observed number, and the number expected in a zone of scale 1 in the same
// time.
type Tally struct {
	Events   float64 `json:"events"`
	Expected float64 `json:"expected"`
}

// See returns the record after a poll. A poll that is not later than the last one changes nothing.
func (r Record) See(at time.Time, up bool) Record {
	switch {
	case !r.Known:
		return Record{Known: true, Found: true, Up: up, Since: at, Seen: at}
	case !at.After(r.Seen):
		return r
	case up == r.Up:
		r.Seen = at
		return r
	}
	turn := r.Seen.Add(at.Sub(r.Seen) / 2)
	r = r.Until(turn)
	if r.Up {
		r.Loss.Events++
		r.Lately.Events++
	} else {
		r.Back.Events++
	}
	r.Found, r.Up, r.Since, r.Seen = false, up, turn, at
	return r
}

// Until returns the record with the current state counted up to t, which must not be before Since.
func (r Record) Until(t time.Time) Record {
	h := t.Sub(r.Since).Hours()
	if h <= 0 {
		return r
	}
	keep, part := math.Exp(-h/forget), math.Exp(-h/2/forget)
	r.Loss, r.Back = r.Loss.times(keep), r.Back.times(keep)
	r.UpFor, r.All = float64(r.UpFor*keep), float64(r.All*keep)+float64(h*part)
	a := r.first()
	r.Lately = r.Lately.times(math.Exp(-h / MoodLasts))
	if r.Up {
		r.Lately.Expected += lately(a, h)
		r.UpFor += float64(h * part)
		r.Loss.Expected += float64(part * Loss.Cumulative(a, a+h))
	} else {
		r.Back.Expected += float64(part * Return.Cumulative(a, a+h))
	}
	return r
}

// lately is the expected number of events in a period that began at age a and lasts h hours, weighted as of its
// end, computed in pieces from the end.
func lately(a, h float64) float64 {
	const piece = 1.5
	sum := 0.0
	for end := h; end > max(0, h-5*MoodLasts); end -= piece {
		begin := max(0, end-piece)
		sum += float64(math.Exp(-(h-(begin+end)/2)/MoodLasts) * Loss.Cumulative(a+begin, a+end))
	}
	return sum
}

func (t Tally) times(x float64) Tally { return Tally{t.Events * x, t.Expected * x} }

// first is the age of the current state at Since, in hours.
func (r *Record) first() float64 {
	if r.Found {
		return seenFirst
	}
	return 0
}

// Age is the age of the current state when last seen, in hours. It is 0 if clocks disagree.
func (r *Record) Age() float64 { return max(0, r.first()+r.Seen.Sub(r.Since).Hours()) }

// Idle is the age of a state that is not up, in hours; 0 if nothing was observed.
func (r *Record) Idle() float64 {
	if !r.Known {
		return 0
	}
	return r.Age()
}

// Chance is the probability that the zone is up at t: its last seen state, fading towards share.
func (r *Record) Chance(t time.Time, share float64) float64 {
	if !r.Known {
		return share
	}
	last := 0.0
	// A change after t was not seen yet at t. Only the last one is known.
	if r.Up != (r.Since.After(t) && !r.Found) {
		last = 1
	}
	if h := t.Sub(r.Seen).Hours(); h > 0 {
		return share + float64((last-share)*math.Exp(-h/mixing))
	}
	return last
}
