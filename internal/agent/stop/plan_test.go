package stop

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "scrimp/internal/test/sameseed"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return epoch.Add(time.Duration(seconds * float64(time.Second)))
}

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
