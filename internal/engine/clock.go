package engine

import (
	"fmt"
	"slices"
	"time"

	"scrimp/internal/lib/quantity"
	"scrimp/internal/market"
)

// Clock turns wall time into market time, which runs Speed times as fast. The zero Clock
// is the wall's.
type Clock struct {
	Name   string    `json:"name"`   // of the market; "": it has none
	Wall   time.Time `json:"wall"`   // a moment on the wall
	Market time.Time `json:"market"` // the same moment on the market
	Speed  float64   `json:"speed"`  // market seconds a wall second
}

// ToMarket returns the market time at wall time t.
func (c Clock) ToMarket(t time.Time) time.Time {
	if c.Speed == 0 || t.IsZero() {
		return t.UTC()
	}
	return c.Market.Add(c.passes(t.Round(0).Sub(c.Wall))).UTC()
}

// ToWall returns the wall time at market time t.
func (c Clock) ToWall(t time.Time) time.Time {
	if c.Speed == 0 {
		return t.UTC()
	}
	return c.Wall.Add(c.Shrink(t.Sub(c.Market))).UTC()
}

// Stretch turns a wall span into the market span that passes meanwhile, ten years at most, which is the
// longest that an event has: a week is centuries on a market that is fast enough.
func (c Clock) Stretch(d time.Duration) time.Duration { return min(c.passes(d), quantity.Decade) }

// passes is the market span that passes in a wall span.
func (c Clock) passes(d time.Duration) time.Duration {
	if c.plain() { // to the nanosecond
		return d
	}
	return time.Duration(quantity.Int(float64(d) * c.Speed))
}

// Shrink turns a market span into the wall span that it takes.
func (c Clock) Shrink(d time.Duration) time.Duration {
	if c.plain() {
		return d
	}
	return time.Duration(quantity.Int(float64(d) / c.Speed))
}

// plain reports whether a second of the market is one of the wall.
func (c Clock) plain() bool { return c.Speed == 1 || c.Speed == 0 }

// From turns a time by another clock into the time by this one. Of two markets that were
// opened one after the other each has a clock of its own; zero stays zero.
func (c Clock) From(other Clock, t time.Time) time.Time {
	if t.IsZero() || c == other {
		return t
	}
	return c.ToMarket(other.ToWall(t))
}

// Common is the clock of a server with these engines: that of the first that has one.
// A market whose time runs faster or slower than the wall's must be the only engine,
// since prices and deadlines of the others are on the wall.
func Common(engines []Engine) (Clock, error) {
	var common Clock
	for _, e := range engines {
		if !e.Clock.plain() && len(engines) > 1 {
			return common, fmt.Errorf("engine %s: its market runs at speed %g, and other engines run with the wall's clock: "+
				"open it with a market of speed 1, or leave the others out", e.Name, e.Clock.Speed)
		}
		if common.Speed == 0 {
			common = e.Clock
		}
	}
	if common.Speed == 0 {
		common = Clock{Wall: time.Unix(0, 0).UTC(), Market: time.Unix(0, 0).UTC(), Speed: 1}
	}
	return common, nil
}

// clocks turns the times of one clock into those of another.
type clocks struct{ to, from Clock }

func (c clocks) same() bool { return c.to == c.from }

func (c clocks) time(t time.Time) time.Time { return c.to.From(c.from, t) }

func (c clocks) instance(i Instance) Instance {
	i.Launched, i.Ended, i.Bill = c.time(i.Launched), c.time(i.Ended), c.lines(i.Bill)
	return i
}

func (c clocks) instances(list []Instance) []Instance {
	if c.same() {
		return list
	}
	list = slices.Clone(list)
	for n := range list {
		list[n] = c.instance(list[n])
	}
	return list
}

func (c clocks) lines(lines []Line) []Line {
	if c.same() || lines == nil {
		return lines
	}
	lines = slices.Clone(lines)
	for n := range lines {
		lines[n].From, lines[n].To = c.time(lines[n].From), c.time(lines[n].To)
	}
	return lines
}

func (c clocks) sale(offers []market.Offer, quotes []market.Quote) ([]market.Offer, []market.Quote) {
	if c.same() {
		return offers, quotes
	}
	offers, quotes = slices.Clone(offers), slices.Clone(quotes)
	for n := range offers {
		r := &offers[n].Reserved
		r.From, r.Until = c.time(r.From), c.time(r.Until)
	}
	for n := range quotes {
		quotes[n].At = c.time(quotes[n].At)
	}
	return offers, quotes
}
