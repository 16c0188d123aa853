package hours

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// A window opens and closes at the hours it names, on its own clock, also over midnight. A walk minute by minute counts
// the same open time and closings as Between.
func TestWindow_AgreesWithWalkByMinutes(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 1))
	for range 300 {
		w := Window{From: time.Duration(rng.IntN(1440)) * time.Minute, Until: time.Duration(rng.IntN(1440)) * time.Minute,
			Offset: time.Duration(rng.IntN(57)-28) * 30 * time.Minute}
		isOpen := func(at time.Time) bool {
			of := at.UTC().Add(w.Offset)
			minute := time.Duration(of.Hour()*60+of.Minute()) * time.Minute
			switch {
			case w.From == w.Until:
				return true
			case w.From < w.Until:
				return w.From <= minute && minute < w.Until
			}
			return minute >= w.From || minute < w.Until
		}
		from := time.Date(2026, 3, 1, 0, rng.IntN(100_000), 0, 0, time.UTC)
		to := from.Add(time.Duration(rng.IntN(6000)) * time.Minute)
		var open time.Duration
		closings := 0
		for at := from; at.Before(to); at = at.Add(time.Minute) {
			if isOpen(at) {
				open += time.Minute
				if next := at.Add(time.Minute); next.Before(to) && !isOpen(next) {
					closings++
				}
			}
			closes, opened := w.Closes(at)
			if w.Always() {
				continue
			}
			if opened != isOpen(at) {
				t.Fatalf("%+v at %v: open %v", w, at, opened)
			}
			if opened && (isOpen(closes) || !isOpen(closes.Add(-time.Minute))) {
				t.Fatalf("%+v at %v closes at %v", w, at, closes)
			}
			if opens := w.Opens(at); !isOpen(opens) || isOpen(opens.Add(-time.Minute)) || !opens.After(at) || opens.Sub(at) > day {
				t.Fatalf("%+v at %v opens at %v", w, at, opens)
			}
		}
		if got, n := w.Between(from, to); got != open || n != closings {
			t.Fatalf("%+v from %v to %v: open %v with %d closings, want %v with %d", w, from, to, got, n, open, closings)
		}
	}
}

func TestParse_ReadsHoursAndOffset(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Window{
		"22:00-06:00":        {From: 22 * time.Hour, Until: 6 * time.Hour},
		"00:30-23:59 UTC":    {From: 30 * time.Minute, Until: 23*time.Hour + 59*time.Minute},
		"09:00-17:30 +02:00": {From: 9 * time.Hour, Until: 17*time.Hour + 30*time.Minute, Offset: 2 * time.Hour},
		"09:00-17:30 -03:30": {From: 9 * time.Hour, Until: 17*time.Hour + 30*time.Minute, Offset: -210 * time.Minute},
		"9:00-17:00":         {From: 9 * time.Hour, Until: 17 * time.Hour},
		" 22:00 - 06:00 ":    {From: 22 * time.Hour, Until: 6 * time.Hour},
		"22:00–06:00 Z":      {From: 22 * time.Hour, Until: 6 * time.Hour},
		"22:00-06:00Z":       {From: 22 * time.Hour, Until: 6 * time.Hour},
		"18:00-24:00 +2":     {From: 18 * time.Hour, Offset: 2 * time.Hour},
		"18:00-19:00-0530":   {From: 18 * time.Hour, Until: 19 * time.Hour, Offset: -330 * time.Minute},
		"00:00-24:00":        {},
	} {
		if got, err := Parse(text); got != want || err != nil {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]error{
		"": ErrForm, "22-6": ErrForm, "24:00-06:00": ErrForm, "22:00-06:60": ErrForm, "22:00-06:00 CET": ErrForm, "22:00-24:30": ErrForm,
		"10pm-6am": ErrForm, "22:00": ErrForm, "22:00-06:00 +02:60": ErrForm,
		"22:00-06:00 +15:00": ErrForm, "22:00-22:00": ErrEmpty,
	} {
		if got, err := Parse(text); !errors.Is(err, want) || got != (Window{}) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

// The error of an invalid window names the wrong part.
func TestParse_NamesTheWrongPart(t *testing.T) {
	t.Parallel()
	for text, part := range map[string]string{"10pm-06:00": "10pm", "22:00-25:00": "25:00", "22:00-06:00 CET": "CET"} {
		if _, err := Parse(text); err == nil || !strings.HasPrefix(err.Error(), `"`+part+`" is `) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The hours before a deadline run out while the window is open and stand still while it is closed.
func TestWindow_DeadlineCountsOpenHours(t *testing.T) {
	t.Parallel()
	at := func(day, hour int) time.Time { return time.Date(2026, 3, day, hour, 0, 0, 0, time.UTC) }
	w := Window{From: 22 * time.Hour, Until: 6 * time.Hour}
	for _, c := range []struct{ now, deadline, want time.Time }{
		{at(1, 22), at(2, 4), at(2, 4)},                       // within one night
		{at(1, 22), at(2, 12), at(1, 22).Add(7 * time.Hour)},  // eight hours, and one closing costs an hour
		{at(2, 12), at(3, 4), at(2, 12).Add(6 * time.Hour)},   // closed now
		{at(1, 22), at(3, 23), at(1, 22).Add(15 * time.Hour)}, // two nights, one hour, two closings
		{at(2, 7), at(2, 20), at(2, 7)},                       // it never opens before
		{at(2, 7), at(2, 6), at(2, 6)}, {at(2, 7), time.Time{}, time.Time{}},
	} {
		if got := w.Deadline(c.now, c.deadline, time.Hour); !got.Equal(c.want) {
			t.Errorf("at %v before %v: %v, want %v", c.now, c.deadline, got, c.want)
		}
	}
	if got := (Window{}).Deadline(at(1, 1), at(2, 2), time.Hour); !got.Equal(at(2, 2)) {
		t.Errorf("without a window: %v", got)
	}
}
