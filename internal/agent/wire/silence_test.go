package wire

import (
	"testing"
	"time"
)

func at(seconds float64) time.Time {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

func began(limit time.Duration, seconds float64) *Silence {
	s := NewSilence(limit, at(seconds))
	return &s
}

func TestSilence(t *testing.T) {
	t.Parallel()
	look := func(s *Silence, from, to float64) (due float64) {
		for x := from; x <= to; x++ {
			if s.Due(at(x)) {
				return x
			}
		}
		return -1
	}
	t.Run("a server that is away", func(t *testing.T) {
		s := began(time.Minute, 0)
		if got := look(s, 0, 100); got != 61 {
			t.Errorf("given up after %g s, want 61", got)
		}
	})
	t.Run("a laptop that slept tries again first", func(t *testing.T) {
		s := began(time.Minute, 0)
		look(s, 0, 10)
		if got := look(s, 7200, 7300); got != 7220 {
			t.Errorf("given up at %g s, want 20 s after waking", got)
		}
	})
	t.Run("and stays where it is answered", func(t *testing.T) {
		s := began(time.Minute, 0)
		look(s, 0, 10)
		look(s, 7200, 7205)
		s.Answer(at(7205))
		if got := look(s, 7206, 7260); got != -1 {
			t.Errorf("given up at %g s", got)
		}
	})
	t.Run("a clock that is set back", func(t *testing.T) {
		s := began(time.Minute, 7200)
		if got := look(s, 0, 100); got != 61 {
			t.Errorf("given up after %g s, want a minute of the new clock", got)
		}
	})
	t.Run("no limit", func(t *testing.T) {
		if got := look(began(0, 0), 0, 1000); got != -1 {
			t.Errorf("given up at %g s", got)
		}
	})
}
