package marketd

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"scrimp/internal/engine"
	"scrimp/internal/market"
	"scrimp/internal/test/eventually"
	"scrimp/internal/test/must"
)

// jumping is a clock that tests can set.
type jumping struct{ ahead atomic.Int64 }

func (j *jumping) now() time.Time { return time.Now().Add(time.Duration(j.ahead.Load())) }

func (j *jumping) by(d time.Duration) { j.ahead.Add(int64(d)) }

func TestClock_HandlesJumps(t *testing.T) {
	t.Parallel()
	for _, restart := range []bool{false, true} {
		name := map[bool]string{false: "while the daemon runs", true: "while none runs"}[restart]
		t.Run(name, func(t *testing.T) {
			dir, clock := folder(t), &jumping{}
			set := func(o *Options) { o.now = clock.now }
			s := serveHere(t, dir, testTrace(1), set)
			jump := func(by time.Duration) {
				if restart {
					s.stop()
				}
				clock.by(by)
				if restart {
					s = serveHere(t, dir, testTrace(1), set)
				}
			}
			ended := func(id string) engine.Instance {
				t.Helper()
				var i engine.Instance
				eventually.True(t, "the end of "+id, func() (ok bool) {
					i, ok = s.listed(id)
					return ok && i.State == engine.Ended
				})
				return i
			}
			rent := func(key string, offer market.OfferID) engine.Instance {
				t.Helper()
				i, err := s.rent(key, offer)
				must.Do(t, err)
				return i
			}

			stays, lost := rent("a.1", always), rent("a.2", fleeing)
			jump(10 * time.Hour) // the interruption due in 90 s happens then and is billed to that time
			if i := ended(lost.ID); i.Cause != engine.Interrupted || i.Ended.Sub(i.Launched) != 90*time.Second {
				t.Errorf("taken as %+v", i)
			}
			if i, _ := s.listed(stays.ID); i.State != engine.Running {
				t.Errorf("the other one is %+v", i)
			}
			late := rent("a.3", always) // ten hours later
			before := quoted(t, s)

			jump(-5 * time.Hour) // time stands still, and no bill is negative
			if after := quoted(t, s); after.Before(before.Add(-time.Second)) && !restart {
				t.Errorf("the market ran back from %v to %v", before, after)
			}
			next := rent("a.4", always)
			if next.Launched.Before(late.Launched) {
				t.Errorf("rented at %v, after one at %v", next.Launched, late.Launched)
			}
			for _, i := range []engine.Instance{stays, late, next} {
				must.Do(t, s.Terminate(t.Context(), i.ID))
				end := ended(i.ID)
				span := end.Ended.Sub(end.Launched)
				if span < 0 || end.Ended.Before(late.Launched) || len(end.Bill) > 1 {
					t.Errorf("%s ended as %+v", i.ID, end)
				}
				if len(end.Bill) == 1 && end.Bill[0].Amount != end.Rate.Until(span) {
					t.Errorf("%v is billed as %+v", span, end.Bill)
				}
			}
			if i, _ := s.listed(stays.ID); i.Ended.Sub(i.Launched) < 10*time.Hour {
				t.Errorf("ten hours and the time before are billed as %v", i.Ended.Sub(i.Launched))
			}
			list, err := s.List(t.Context())
			if err != nil || !slices.IsSortedFunc(list, func(a, b engine.Instance) int { return a.Launched.Compare(b.Launched) }) {
				t.Errorf("the order of launches: %+v, %v", list, err)
			}
		})
	}
}

// quoted returns the market time of the offers.
func quoted(t *testing.T, s *serving) time.Time {
	t.Helper()
	_, quotes, err := s.Offers(t.Context())
	if err != nil || len(quotes) == 0 {
		t.Fatalf("quotes %v, %v", quotes, err)
	}
	var at time.Time
	for _, q := range quotes {
		if q.At.After(at) {
			at = q.At
		}
	}
	return at
}
