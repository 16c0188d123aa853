package market_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scrimp/internal/lib/money"
	"scrimp/internal/market"
)

// The pieces of a span are consecutive, have one price each, and add up to the difference of the cumulative costs.
func TestPieces_AddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		at := start
		var segments []market.Segment
		for range rapid.IntRange(1, 6).Draw(t, "prices") {
			segments = append(segments, market.Segment{From: at, Rate: money.Rate(rapid.Int64Range(0, 1<<50).Draw(t, "rate"))})
			at = at.Add(time.Duration(rapid.Int64Range(1, int64(10*time.Hour)).Draw(t, "length")))
		}
		cut := func(name string) time.Time {
			return start.Add(time.Duration(rapid.Int64Range(0, int64(at.Sub(start))).Draw(t, name)))
		}
		from, to := cut("from"), cut("to")
		list := market.Pieces(segments, from, to)
		if !to.After(from) {
			if len(list) > 0 {
				t.Fatalf("from %v to %v there are %+v", from, to, list)
			}
			return
		}
		sum, next := money.Amount{}, from
		for _, p := range list {
			n, _ := slices.BinarySearchFunc(segments, p.Begin.Add(1), func(s market.Segment, t time.Time) int { return s.From.Compare(t) })
			if !p.Begin.Equal(next) || !p.End.After(p.Begin) || p.Rate != segments[n-1].Rate {
				t.Fatalf("%+v does not follow %v at %v", p, next, segments[n-1].Rate)
			}
			sum, next = sum.Add(p.Amount), p.End
		}
		if want := market.Cost(segments, to).Sub(market.Cost(segments, from)); sum != want || !next.Equal(to) {
			t.Fatalf("%+v add up to %v by %v, want %v by %v", list, sum, next, want, to)
		}
	})
}
