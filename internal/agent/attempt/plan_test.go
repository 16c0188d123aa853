package attempt

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "scrimp/internal/test/sameseed"
)

func TestPlanStop_StaysWithinNotice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		left, lead, upload, signal, kill float64
	}{
		{120, 0, 20, 0, 100},
		{120, 90, 20, 30, 100},
		{30, 90, 5, 0, 25},
		{10, 0, 20, 0, 5},
		{3, 0, 1, 0, 3},
		{-5, 0, 1, 0, 2},
		{120, 10, 20, 0, 100}, // signalled before the kill
	} {
		seconds := func(f float64) time.Duration { return time.Duration(f * float64(time.Second)) }
		p := planStop(epoch, at(c.left), seconds(c.lead), seconds(c.upload))
		if !p.signal.Equal(at(c.signal)) || !p.kill.Equal(at(c.kill)) {
			t.Errorf("%+v: signal after %v, kill after %v", c, p.signal.Sub(epoch), p.kill.Sub(epoch))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		left := time.Duration(rapid.Int64Range(-10, 600).Draw(t, "left")) * time.Second
		p := planStop(epoch, epoch.Add(left), time.Duration(rapid.IntRange(0, 300).Draw(t, "lead"))*time.Second,
			time.Duration(rapid.IntRange(0, 900).Draw(t, "upload"))*time.Second)
		if p.signal.After(p.kill) || p.signal.Before(epoch) {
			t.Fatalf("a program is signalled before it is killed: %+v", p)
		}
		if p.kill.After(epoch.Add(max(left, late))) {
			t.Fatalf("a program never stays longer than the machine: %+v", p)
		}
	})
}

func TestDue(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		since, interval time.Duration
		asked, stopping bool
		want            bool
	}{
		{time.Minute, 0, false, false, false},
		{59 * time.Second, time.Minute, false, false, false},
		{time.Minute, time.Minute, false, false, true},
		{0, 0, true, false, true},
		{0, time.Hour, false, true, true},
	} {
		if got := due(epoch.Add(c.since), epoch, c.interval, c.asked, c.stopping); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func began(limit time.Duration, seconds float64) *silence {
	s := newSilence(limit, at(seconds))
	return &s
}

func TestSilence(t *testing.T) {
	t.Parallel()
	look := func(s *silence, from, to float64) (due float64) {
		for x := from; x <= to; x++ {
			if s.due(at(x)) {
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
		s.answer(at(7205))
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
